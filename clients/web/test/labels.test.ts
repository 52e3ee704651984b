import { describe, expect, it } from 'vitest';
import { groupLabels } from '../src/components/labels';

describe('labels over a plot', () => {
  it('joins those that would lie on each other', () => {
    const labels = [
      { label: 'v1 Staging', at: 101 },
      { label: 'v1', at: 100 },
      { label: 'v2', at: 400 },
      { label: 'v1 Canary', at: 102 },
    ];
    expect(groupLabels(labels, 72)).toEqual([
      { label: 'v1 +2', at: 100 },
      { label: 'v2', at: 400 },
    ]);
  });
});
