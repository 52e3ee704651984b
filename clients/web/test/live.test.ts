import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Problem } from '../src/api/problem';
import { EventParser } from '../src/live/sse';
import { EventStream, reconnectDelay, type PlatformEvent } from '../src/live/stream';
import { topicsOf } from '../src/live/topics';

describe('EventParser', () => {
  it('reads events however the text is cut', () => {
    const wire =
      'retry: 3000\r\nevent: hello\r\ndata: {"a":1}\r\n\r\n: keep-alive\n\nid: 7\nevent: job.started\ndata: one\ndata: two\n\n';
    for (let size = 1; size < 9; size++) {
      const parser = new EventParser();
      const events = [];
      for (let at = 0; at < wire.length; at += size) events.push(...parser.push(wire.slice(at, at + size)));
      expect(events, `chunks of ${size}`).toEqual([
        { id: undefined, event: 'hello', data: '{"a":1}', retry: 3000 },
        { id: '7', event: 'job.started', data: 'one\ntwo', retry: undefined },
      ]);
    }
  });
});

describe('topicsOf', () => {
  it('makes old what an event changes, and nothing for unknown events', () => {
    expect(topicsOf('approval.created')).toContain('approvals');
    expect(topicsOf('deploy.alias_changed')).toEqual(expect.arrayContaining(['registry', 'model']));
    expect(topicsOf('event.flag_changed')).toContain('flags');
    expect(topicsOf('weather.changed')).toEqual([]);
  });
});

describe('reconnectDelay', () => {
  it('stays between 1 and 30 s and grows with the failures', () => {
    expect(reconnectDelay(1, () => 0)).toBe(1000);
    expect(reconnectDelay(1, () => 1)).toBe(2000);
    expect(reconnectDelay(20, () => 1)).toBe(30_000);
  });
});

describe('EventStream', () => {
  const encoder = new TextEncoder();
  let send: (text: string) => void;
  let end: () => void;
  let requests: RequestInit[];

  function open(answer: () => Response | Promise<Response>): {
    stream: EventStream;
    events: PlatformEvent[];
    gaps: () => number;
  } {
    const events: PlatformEvent[] = [];
    let gaps = 0;
    requests = [];
    const stream = new EventStream({
      random: () => 0,
      onEvent: (event) => events.push(event),
      onGap: () => gaps++,
      fetch: async (_url, init) => {
        requests.push(init);
        return answer();
      },
    });
    return { stream, events, gaps: () => gaps };
  }
  const live = (): Response =>
    new Response(
      new ReadableStream<Uint8Array>({
        start(controller) {
          send = (text) => controller.enqueue(encoder.encode(text));
          end = () => controller.close();
        },
      }),
    );
  const settle = (): Promise<void> => vi.advanceTimersByTimeAsync(0).then(() => undefined);

  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('goes live at hello and hands on events', async () => {
    const { stream, events } = open(live);
    stream.start();
    await settle();
    send(
      'event: hello\ndata: {"resumed":false,"gap":false}\n\nid: 4711\nevent: job.started\ndata: {"model":"JPCP","_event":{"id":"e1","time":"2026-11-22T14:00:00Z","actor":"a"}}\n\n',
    );
    await settle();
    expect(stream.getState().kind).toBe('live');
    expect(events).toEqual([expect.objectContaining({ id: 'e1', name: 'job.started', actor: 'a' })]);
    stream.stop();
  });

  it('resumes after the last event and refetches when events are missing', async () => {
    const { stream, gaps } = open(live);
    stream.start();
    await settle();
    send('event: hello\ndata: {"resumed":false,"gap":false}\n\nid: 4711\nevent: job.started\ndata: {}\n\n');
    await settle();
    end();
    await settle();
    expect(stream.getState().kind).toBe('reconnecting');
    await vi.advanceTimersByTimeAsync(1000);
    expect((requests[1]?.headers as Record<string, string>)['Last-Event-ID']).toBe('4711');
    send('event: hello\ndata: {"resumed":true,"gap":false}\n\n');
    await settle();
    expect(gaps()).toBe(0);
    end();
    await vi.advanceTimersByTimeAsync(1000);
    send('event: hello\ndata: {"resumed":true,"gap":true}\n\n');
    await settle();
    expect(gaps()).toBe(1);
    stream.stop();
  });

  it('polls after two failures, honours Retry-After and recovers', async () => {
    let answers = 0;
    const { stream } = open(() => {
      if (++answers <= 2) throw new Problem(503, { code: 'stream_unavailable' }, { retryAfter: 5 });
      return live();
    });
    stream.start();
    await settle();
    expect(stream.getState().kind).toBe('reconnecting');
    await vi.advanceTimersByTimeAsync(4999);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(stream.getState().kind).toBe('polling');
    await vi.advanceTimersByTimeAsync(5000);
    send('event: hello\ndata: {}\n\n');
    await settle();
    expect(stream.getState().kind).toBe('live');
    stream.stop();
  });

  it('stops at the end of the session instead of asking on', async () => {
    const { stream } = open(() => {
      throw new Problem(401, { code: 'invalid_token' });
    });
    stream.start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(stream.getState().kind).toBe('stopped');
    expect(requests).toHaveLength(1);
  });

  it('gives a silent connection up after 40 s', async () => {
    const { stream } = open(live);
    stream.start();
    await settle();
    send('event: hello\ndata: {}\n\n');
    await settle();
    await vi.advanceTimersByTimeAsync(39_000);
    expect(stream.getState().kind).toBe('live');
    await vi.advanceTimersByTimeAsync(1100);
    expect(stream.getState().kind).toBe('reconnecting');
    stream.stop();
  });
});
