// Names and messages that others wrote may hold characters that change the direction of the
// following text. In a sentence of the catalogue such a text is isolated by control characters; a
// separate element isolates it by style (base.css).

const FSI = '\u2068';
const PDI = '\u2069';
const OPENS = /[\u202a\u202b\u202d\u202e]/g;
const ISOLATES = /[\u2066-\u2068]/g;
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/** Returns the text so that it cannot turn the direction of anything around it; most texts are returned as they are. */
export function isolate(text: string): string {
  if (!TURNS.test(text)) return text;
  // Only isolates that it opened itself may end: an extra end would close our isolation.
  let open = 0;
  let own = '';
  for (const letter of text) {
    if (letter >= '\u2066' && letter <= '\u2068') open++;
    else if (letter === PDI && --open < 0) {
      open = 0;
      continue;
    }
    own += letter;
  }
  const pops = '\u202c'.repeat(own.match(OPENS)?.length ?? 0);
  const ends = PDI.repeat(Math.min(open, own.match(ISOLATES)?.length ?? 0));
  return FSI + own + pops + ends + PDI;
}

/** Returns a catalogue whose sentences isolate their arguments. */
export function isolateData<T>(catalogue: T): T {
  if (typeof catalogue === 'function')
    return ((...data: unknown[]) =>
      (catalogue as unknown as (...data: unknown[]) => unknown)(
        ...data.map((each) => (typeof each === 'string' ? isolate(each) : each)),
      )) as T;
  if (Array.isArray(catalogue)) return catalogue.map(isolateData) as T;
  if (catalogue === null || typeof catalogue !== 'object' || catalogue instanceof RegExp) return catalogue;
  return Object.fromEntries(Object.entries(catalogue).map(([key, each]) => [key, isolateData(each)])) as T;
}
