// Where a link of a document leads. Documents are untrusted Markdown, so only these targets exist:
// another page, a heading, or another site over http or mail.

export type DocLink =
  | { kind: 'page'; path: string; hash?: string }
  | { kind: 'hash'; hash: string }
  | { kind: 'external'; href: string }
  | { kind: 'none' };

/** Reads a link as the page at `from` means it. */
export function readDocLink(href: string | undefined, from: string): DocLink {
  const target = (href ?? '').trim();
  if (target === '') return { kind: 'none' };
  if (target.startsWith('#')) return { kind: 'hash', hash: decodeHash(target.slice(1)) };
  if (/^(https?:\/\/|mailto:)/i.test(target)) return { kind: 'external', href: target };
  // Any other scheme, and addresses of another host, lead nowhere.
  if (/^[a-z][a-z0-9+.-]*:/i.test(target) || target.startsWith('//') || target.includes('\\')) return { kind: 'none' };
  const [path = '', hash] = target.split('#', 2);
  const parts = path.startsWith('/') ? [] : from.split('/').slice(0, -1);
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined) return { kind: 'none' };
  }
  const resolved = parts.join('/');
  if (!resolved.endsWith('.md')) return { kind: 'none' };
  return { kind: 'page', path: resolved, hash: hash ? decodeHash(hash) : undefined };
}

function decodeHash(hash: string): string {
  try {
    return decodeURIComponent(hash);
  } catch {
    return hash;
  }
}

/** Returns a heading's anchor as the search index makes it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

/** Returns a function that gives each heading of one page its anchor; repeats are numbered. */
export function numberAnchors(): (heading: string) => string {
  const seen = new Map<string, number>();
  return (heading) => {
    const base = anchorOf(heading);
    const n = seen.get(base) ?? 0;
    seen.set(base, n + 1);
    return n ? `${base}-${n}` : base;
  };
}

/** Returns the headings of a page's second and third level; those in code blocks are none. */
export function headingsOf(markdown: string): { level: number; title: string; anchor: string }[] {
  const found: { level: number; title: string; anchor: string }[] = [];
  const number = numberAnchors();
  let fence: string | undefined;
  for (const line of markdown.split('\n')) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark) {
      if (!fence) fence = mark;
      else if (mark[0] === fence[0] && mark.length >= fence.length) fence = undefined;
      continue;
    }
    const match = fence ? null : /^(#{1,3})\s+(.+?)\s*#*$/.exec(line);
    if (!match?.[1] || !match[2]) continue;
    const title = match[2].replaceAll(/[`*]|\[([^\]]*)\]\([^)]*\)/g, '$1');
    const anchor = number(title);
    if (match[1].length > 1) found.push({ level: match[1].length, title, anchor });
  }
  return found;
}
