// A reader for text/event-stream as fetch delivers it: EventSource cannot send an Authorization header.

export interface ServerEvent {
  id?: string;
  event: string;
  data: string;
  retry?: number;
}

/** Turns chunks of text into events; a chunk may end anywhere, between CR and LF too. */
export class EventParser {
  private buffer = '';
  private event = '';
  private data: string[] = [];
  private id: string | undefined;
  private retry: number | undefined;
  private endedInCR = false;

  push(chunk: string): ServerEvent[] {
    let text = chunk;
    if (this.endedInCR && text.startsWith('\n')) text = text.slice(1);
    if (text) this.endedInCR = text.endsWith('\r');
    this.buffer += text;
    const events: ServerEvent[] = [];
    const lines = this.buffer.split(/\r\n|\r|\n/);
    this.buffer = lines.pop() ?? '';
    for (const line of lines) {
      const event = this.readLine(line);
      if (event) events.push(event);
    }
    return events;
  }

  private readLine(line: string): ServerEvent | undefined {
    if (line === '') return this.flush();
    if (line.startsWith(':')) return undefined;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    if (field === 'event') this.event = value;
    else if (field === 'data') this.data.push(value);
    else if (field === 'id' && !value.includes('\0')) this.id = value;
    else if (field === 'retry' && /^\d+$/.test(value)) this.retry = Number(value);
    return undefined;
  }

  private flush(): ServerEvent | undefined {
    const { event, data, id, retry } = this;
    this.event = '';
    this.data = [];
    this.retry = undefined;
    if (data.length === 0 && retry === undefined) return undefined;
    return { id, event: event || 'message', data: data.join('\n'), retry };
  }
}
