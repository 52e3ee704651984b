// The pseudo locale: every catalogue text is accented and 30 % longer, so that a test finds words which
// are not in the catalogue, and a person sees where longer languages would not fit.

const ACCENTED: Record<string, string> = {};
const PLAIN = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const MARKED = 'åƀçđéƒğĥîĵķļɱñöƥɋŕšŧûṽŵẋýžÅƁÇĐÉƑĞĤÎĴĶĻṀÑÖƤɊŔŠŦÛṼŴẊÝŽ';
[...PLAIN].forEach((letter, i) => (ACCENTED[letter] = [...MARKED][i] ?? letter));

const OPEN = '\ue000';
const CLOSE = '\ue001';

/** Accents a text; text between the marks is data and unchanged. */
function accent(text: string): string {
  let out = '';
  let data = 0;
  for (const letter of text) {
    if (letter === OPEN) data++;
    else if (letter === CLOSE) data--;
    else out += data > 0 ? letter : (ACCENTED[letter] ?? letter);
  }
  return out;
}

function lengthen(text: string): string {
  return text.length > 3 ? text + '\u00b7'.repeat(Math.ceil(text.length * 0.3)) : text;
}

/** Returns the catalogue in the pseudo locale; functions keep their arguments as they are. */
export function pseudoize<T>(value: T): T {
  if (typeof value === 'string') return lengthen(accent(value)) as T;
  if (typeof value === 'function') {
    const write = value as unknown as (...args: unknown[]) => unknown;
    const wrapped = (...args: unknown[]): unknown => {
      const written = write(...args.map((arg) => (typeof arg === 'string' ? OPEN + arg + CLOSE : arg)));
      return typeof written === 'string' ? lengthen(accent(written)) : written;
    };
    return wrapped as unknown as T;
  }
  if (Array.isArray(value)) return value.map(pseudoize) as T;
  if (value !== null && typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, pseudoize(member)])) as T;
  return value;
}
