// The assistant's answers are written in a small part of Markdown. They quote logs and events that anybody may have
// written, so nothing in them becomes a link, an image or markup: this parser yields text in known places only.

export type Span = { kind: 'text' | 'code' | 'strong' | 'em'; text: string };

export type Block =
  | { kind: 'paragraph' | 'heading'; spans: Span[] }
  | { kind: 'list'; ordered: boolean; items: { spans: Span[]; depth: number }[] }
  | { kind: 'code'; language: string; text: string }
  | { kind: 'table'; head: Span[][]; rows: Span[][][] };

/** Splits a line into text, code, strong and emphasis. An open mark stays as it is written. */
export function readSpans(line: string): Span[] {
  const spans: Span[] = [];
  const pattern = /(`+)(.+?)\1|\*\*(.+?)\*\*|(?<![\w*])\*([^*\s][^*]*?)\*(?![\w*])/g;
  let at = 0;
  for (let match = pattern.exec(line); match; match = pattern.exec(line)) {
    if (match.index > at) spans.push({ kind: 'text', text: line.slice(at, match.index) });
    const [, , code, strong, em] = match;
    if (code !== undefined) spans.push({ kind: 'code', text: code.trim() || code });
    else if (strong !== undefined) spans.push({ kind: 'strong', text: strong });
    else spans.push({ kind: 'em', text: em ?? '' });
    at = match.index + match[0].length;
  }
  if (at < line.length) spans.push({ kind: 'text', text: line.slice(at) });
  return spans;
}

const cellsOf = (line: string): Span[][] =>
  line
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => readSpans(cell.replaceAll('\\|', '|').trim()));

const item = /^(\s*)([-*]|\d{1,3}[.)])\s+(.*)$/;
const rule = /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/;

/** Reads an answer into blocks; a fence that is still open while the answer streams is code already. */
export function readProse(text: string): Block[] {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const blocks: Block[] = [];
  let paragraph: string[] = [];
  const flush = (): void => {
    if (paragraph.length) blocks.push({ kind: 'paragraph', spans: readSpans(paragraph.join(' ')) });
    paragraph = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    const fence = /^\s*```\s*(\w*)\s*$/.exec(line);
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    const listed = item.exec(line);
    if (fence) {
      flush();
      const code: string[] = [];
      while (++i < lines.length && !/^\s*```\s*$/.test(lines[i] ?? '')) code.push(lines[i] ?? '');
      blocks.push({ kind: 'code', language: fence[1] ?? '', text: code.join('\n') });
    } else if (/^( {4}|\t)\S/.test(line) && paragraph.length === 0 && !listed) {
      const code = [line.replace(/^( {4}|\t)/, '')];
      while (/^( {4}|\t)/.test(lines[i + 1] ?? '')) code.push((lines[++i] ?? '').replace(/^( {4}|\t)/, ''));
      blocks.push({ kind: 'code', language: '', text: code.join('\n') });
    } else if (heading) {
      flush();
      blocks.push({ kind: 'heading', spans: readSpans(heading[1] ?? '') });
    } else if (line.includes('|') && rule.test(lines[i + 1] ?? '') && (lines[i + 1] ?? '').includes('-')) {
      flush();
      const head = cellsOf(line);
      const rows: Span[][][] = [];
      i++;
      while ((lines[i + 1] ?? '').includes('|')) rows.push(cellsOf(lines[++i] ?? ''));
      blocks.push({ kind: 'table', head, rows });
    } else if (listed) {
      flush();
      addItem(blocks, listed);
    } else if (line.trim() === '') flush();
    else paragraph.push(line.trim());
  }
  flush();
  return blocks;
}

function addItem(blocks: Block[], [, indent = '', mark = '', words = '']: RegExpExecArray): void {
  const ordered = /\d/.test(mark);
  const depth = Math.min(2, Math.floor(indent.length / 2));
  const last = blocks.at(-1);
  const entry = { spans: readSpans(words), depth };
  if (last?.kind === 'list' && (depth > 0 || last.ordered === ordered)) last.items.push(entry);
  else blocks.push({ kind: 'list', ordered, items: [entry] });
}
