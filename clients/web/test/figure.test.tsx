import { render, screen } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { Problem } from '../src/api/problem';
import { Blank } from '../src/components/blank';
import { Count, Says } from '../src/components/figure';
import { countDrifting, countServed } from '../src/screens/overview/loop';
import type { RegistryRow } from '../src/screens/registry/health';
import { assessRisk, type Approval } from '../src/screens/approvals/risk';
import { chosen, countUnknown, join, orElse, read, Unknown, withhold, type Figure } from '../src/state/figure';

interface View {
  _partial?: string[];
  _sources?: Record<
    string,
    { state: 'measured' | 'not_measured' | 'failed'; status: 'ok'; ms: number; error?: string }
  >;
  rows: number[];
}
const query = (data?: View, error?: Error) =>
  ({ data, error: error ?? null, isError: error !== undefined, from: ['control_plane'] }) as never;
const count = (data: View): number => data.rows.length;

describe('a figure', () => {
  it('is measured only by an answer of now from its sources', () => {
    expect(read(query({ rows: [1] }), count)).toMatchObject({ kind: 'measured', value: 1 });
    expect(read(query(), count).kind).toBe('loading');
    expect(read(query({ rows: [] }, new Problem(502, { title: 'Gone' })), count).kind).toBe('failed');
    const view: View = {
      rows: [],
      _partial: ['drift'],
      _sources: { drift: { state: 'failed', status: 'ok', ms: 1, error: 'no answer in time' } },
    };
    expect(read(query(view), count, ['drift'])).toMatchObject({
      kind: 'failed',
      from: ['serving'],
      why: 'No figures from drift: no answer in time.',
    });
    expect(read(query(view), count, ['tracker'])).toMatchObject({ kind: 'measured', value: 0, from: ['tracker'] });
    expect(read(query({ rows: [] }), () => undefined).kind).toBe('unmeasured');
  });
  it('of two is known when both are', () => {
    const away: Figure<number> = withhold(chosen(0), new Unknown('away', true));
    expect(join(chosen(1), away, (a, b: number) => a + b)).toMatchObject({ kind: 'failed', why: 'away' });
    expect(join(chosen(1), chosen(2), (a, b) => a + b)).toMatchObject({ kind: 'measured', value: 3 });
    expect(orElse(away, undefined)).toBeUndefined();
  });
  it('that is not known is no number, no sentence and no emptiness', () => {
    const away: Figure<number> = withhold(chosen(0), new Unknown('No answer from serving.', true));
    render(
      <>
        <Count figure={away} />
        <Blank of={away} title="Nothing has happened yet" />
        <Says sentences={[chosen('3 run.'), withhold(chosen(''), new Unknown('No answer from serving.', true))]} />
      </>,
    );
    expect(screen.queryByText(/\b0\b/)).toBeNull();
    expect(screen.queryByText('Nothing has happened yet')).toBeNull();
    expect(screen.getByText('3 run.')).toBeTruthy();
    expect(screen.getByText('Not measured: No answer from serving.')).toBeTruthy();
  });
});

const row = (change: Partial<RegistryRow>): RegistryRow =>
  ({
    name: 'M',
    trackerName: 'm',
    version: 1,
    stage: 'Production',
    health: 'ok',
    aliases: { Production: 1 },
    ...change,
  }) as RegistryRow;

describe('the loop', () => {
  it('counts as served only what serving has said of', () => {
    expect(countServed(chosen([row({ served: true }), row({ served: false })]))).toMatchObject({
      value: { served: 1, all: 2 },
    });
    expect(countServed(chosen([row({ served: true }), row({})])).kind).toBe('unmeasured');
  });
  it('counts drift among what was compared', () => {
    expect(countDrifting(chosen([row({}), row({ driftStatus: 'NO_BASELINE' })])).kind).toBe('unmeasured');
    expect(
      countDrifting(chosen([row({ driftStatus: 'OK' }), row({ driftStatus: 'CRITICAL' }), row({})])),
    ).toMatchObject({
      value: { drifting: 1, critical: 1, compared: 2, all: 3 },
    });
  });
  it('names how many it does not know', () => {
    expect(countUnknown(chosen(['ok', 'unknown']), (n, all) => `${n} of ${all}`)).toMatchObject({
      kind: 'unmeasured',
      why: '1 of 2',
    });
  });
});

describe('the risk of an approval', () => {
  it('is not low because the tracker is away', () => {
    const approval = { kind: 'retrain', changed_files: [] as string[] } as Approval;
    expect(assessRisk(approval, undefined).level).toBe('medium');
    expect(assessRisk(approval, row({ aliases: {} })).level).toBe('low');
  });
});
