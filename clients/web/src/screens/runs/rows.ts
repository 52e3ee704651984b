// What the list of runs shows, and in which order, apart from how it looks.

import type { components } from '../../api/gen/dashboard';
import type { StateKind } from '../../components/icon';
import { formatDay, formatHour, parseTime } from '../../format/time';
import { runTabs } from '../../router-params';
import { activeStates } from '../../shell/counts';
import { type Figure, Unknown, mapFigure } from '../../state/figure';

export type RunRow = components['schemas']['RunRow'];
export type RunRecord = components['schemas']['RunRecord'];
type FigureState = components['schemas']['FigureState'];

export const runKinds: Record<string, StateKind> = {
  RUNNING: 'running',
  CANCELLING: 'running',
  COMPLETED: 'ok',
  FAILED: 'critical',
  CRASHED: 'critical',
  LOST: 'critical',
  CANCELLED: 'unknown',
  PENDING: 'unknown',
  SCHEDULED: 'unknown',
  PAUSED: 'warn',
};

export function stateOf(run: { state_type: string }): string {
  return run.state_type.toUpperCase();
}

export function isActive(run: { state_type: string }): boolean {
  return activeStates.has(stateOf(run));
}

export type RunTab = (typeof runTabs)[number];

export function inTab(run: { state_type: string }, tab: RunTab): boolean {
  const state = stateOf(run);
  switch (tab) {
    case 'all':
      return true;
    case 'active':
      return activeStates.has(state);
    case 'failed':
      return runKinds[state] === 'critical';
    default:
      return state === tab.toUpperCase();
  }
}

export interface RunFilters {
  state: RunTab;
  q: string;
  model: readonly string[];
  cause: readonly string[];
  requester: readonly string[];
}

/** Returns the runs that match; the state apart, since its counts are of all that match the rest. */
export function filterRuns(runs: readonly RunRow[], { q, model, cause, requester }: RunFilters): RunRow[] {
  const needle = q.trim().toLowerCase();
  return runs.filter(
    (run) =>
      (model.length === 0 || model.includes(run.model_id)) &&
      (cause.length === 0 || cause.includes(run.cause)) &&
      (requester.length === 0 || requester.includes(run.requester ?? '')) &&
      (needle === '' ||
        [run.model_id, run.dataset_name, run.flow_run_id, run.commit_sha ?? '', run.requester ?? ''].some((each) =>
          each.toLowerCase().includes(needle),
        )),
  );
}

/** Returns each value with its count, most frequent first; values that are filtered by stay, even without a run. */
export function countValues(
  runs: readonly RunRow[],
  of: (run: RunRow) => string | undefined,
  chosen: readonly string[],
): { id: string; count: number }[] {
  const counts = new Map(chosen.map((id) => [id, 0]));
  for (const run of runs) {
    const id = of(run);
    if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return [...counts].map(([id, count]) => ({ id, count })).sort((a, b) => b.count - a.count || (a.id < b.id ? -1 : 1));
}

/** Returns how long a run took, or has taken so far; undefined if it never started. */
export function durationOf(
  run: Pick<RunRow, 'started_at' | 'ended_at' | 'state_type'>,
  now: number,
): number | undefined {
  const started = parseTime(run.started_at)?.getTime();
  const ended = parseTime(run.ended_at)?.getTime();
  if (started === undefined) return undefined;
  if (ended !== undefined) return ended - started;
  return isActive(run) ? Math.max(0, now - started) : undefined;
}

/** Reads a figure of the view. Only a measured one has a value, whatever else it carries. */
export function figureOf<T extends { state: FigureState; reason?: string }, V>(
  view: Figure<unknown>,
  of: T,
  pick: (of: T) => V | null | undefined,
): Figure<V> {
  const unknown = new Unknown(of.reason ?? '', of.state === 'failed');
  return mapFigure(view, () => (of.state === 'measured' ? (pick(of) ?? unknown) : unknown));
}

/** The change in the metric's own direction, so that sorting puts what improved most, relative to Production, at one end. */
export function improvementOf(run: RunRow): number | undefined {
  const { state, difference, from } = run.change;
  if (state !== 'measured' || typeof difference !== 'number' || typeof from !== 'number') return undefined;
  const share = from === 0 ? difference : difference / Math.abs(from);
  return run.metric.better === 'lower' ? -share : share;
}

/** Returns 30 Nov, 16:22, with the year if it is not this one; the column says UTC. */
export function formatStart(at: Date, now: Date): string {
  const year = at.getUTCFullYear() === now.getUTCFullYear() ? '' : ` ${at.getUTCFullYear()}`;
  return `${formatDay(at)}${year}, ${formatHour(at)}`;
}

export interface CompareRow {
  key: string;
  /** One for each run; undefined where the run has none. */
  values: readonly (string | undefined)[];
  differs: boolean;
}

/** Returns a row for each name that a run has, with the runs' values side by side. A run without an answer differs from none. */
export function compareBy(
  records: readonly (Readonly<Record<string, unknown>> | undefined)[],
  show: (value: unknown) => string = String,
): CompareRow[] {
  const names = [...new Set(records.flatMap((record) => Object.keys(record ?? {})))].sort();
  return names.map((key) => {
    const answered = records.filter((record) => record !== undefined).map((record) => record[key] ?? undefined);
    return {
      key,
      values: records.map((record) => {
        const value = record?.[key];
        return value === undefined || value === null ? undefined : show(value);
      }),
      // By the value itself: two figures that read the same may differ further on.
      differs: answered.some((value) => value !== answered[0]),
    };
  });
}
