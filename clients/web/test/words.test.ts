import { describe, expect, it } from 'vitest';
import { isInPlace, type Gate } from '../src/screens/model/gate';
import { matchWords } from '../src/shell/palette';
import { explainCheck, nameMetric } from '../src/text/metrics';

describe('texts of metrics and checks', () => {
  it('names metrics, those of validation too, and leaves unknown keys', () => {
    expect(['male', 'val_f1_macro', 'own_score'].map(nameMetric)).toEqual([
      'Mean absolute log error',
      'Macro F1, validation',
      'own_score',
    ]);
  });

  it('shows what a check needs and shortens digests', () => {
    expect(explainCheck('male is 0.7631; wanted ≤ 0.88')).toBe('Mean absolute log error is 0.7631, needs ≤ 0.88');
    expect(explainCheck(`files have digest ${'90d7'}${'0'.repeat(56)}fcc5`)).toBe('files have digest 90d7…fcc5');
  });

  it('knows a version that stands where it would be moved', () => {
    const gate = (name: string) => ({ checks: [{ name, pass: false }] }) as unknown as Gate;
    expect([isInPlace(gate('to')), isInPlace(gate('from'))]).toEqual([true, false]);
  });
});

describe('the palette finds words', () => {
  it('wants each word whole, and prefers beginnings', () => {
    expect(matchWords('go Runs', 'run')).toBe(1);
    expect(matchWords('do retrain RuntimeClass', 'class retr')).toBe(0.5);
    expect(matchWords('go Configuration', 'run')).toBe(0);
  });
});
