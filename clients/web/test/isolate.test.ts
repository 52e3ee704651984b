import { describe, expect, it } from 'vitest';
import { isolate, isolateData } from '../src/text/isolate';

const RLO = '\u202e';
const FSI = '\u2068';
const PDI = '\u2069';

/** Returns how far the text leaves the direction turned at its end. */
function left(text: string): number {
  let depth = 0;
  for (const letter of text) {
    if (/[\u2066-\u2068]/.test(letter)) depth++;
    if (letter === PDI) depth--;
  }
  return depth;
}

describe('a text that others wrote', () => {
  it.each([`abc${RLO}cba`, `${FSI}open`, `${PDI}${PDI}closed`, `a${RLO}${PDI}b`, `\u2067x${PDI}${PDI}${RLO}`])(
    '%j turns nothing beside it',
    (given) => {
      const said = isolate(given);
      expect(said.startsWith(FSI) && said.endsWith(PDI)).toBe(true);
      expect(left(said)).toBe(0);
      expect(left(said.slice(0, -1))).toBe(1);
    },
  );
  it('stays as it is without such letters', () => expect(isolate('Köln 東京 עברית')).toBe('Köln 東京 עברית'));
  it('is isolated in every sentence of a catalogue', () => {
    const words = isolateData({ deep: { say: (name: string, n: number) => `${name}: ${n}` }, plain: 'plain' });
    expect(words.deep.say(`x${RLO}`, 3)).toBe(`${FSI}x${RLO}\u202c${PDI}: 3`);
    expect(words.plain).toBe('plain');
  });
});
