// What is known of a value. A service that gives no answer has not reported 0, "none" or "all
// well": a component that shows a number, a count, a tick or a sentence such as "nothing waits"
// takes a Figure, and can show it only if it was measured. Only this file makes figures, from
// answers, so that each names the services it comes from and the time it was true.

import type { components } from '../api/gen/dashboard';
import { explainProblem } from '../api/explain';
import type { Reading, Source } from './query';
import { text } from '../text';

type SourceState = components['schemas']['SourceState'];

declare const made: unique symbol;

export interface Origin {
  /** The services that the value comes from. */
  readonly from: readonly Source[];
  /** When the value was true. */
  readonly asOf?: Date;
}

export type Figure<T> = Origin & { readonly [made]: true } & (
    | { readonly kind: 'measured'; readonly value: T }
    | { readonly kind: 'loading' }
    /** Nothing was measured, and why. */
    | { readonly kind: 'unmeasured'; readonly why: string }
    /** What failed. */
    | { readonly kind: 'failed'; readonly why: string }
  );

type State<T> =
  | { kind: 'measured'; value: T }
  | { kind: 'loading' }
  | { kind: 'unmeasured'; why: string }
  | { kind: 'failed'; why: string };

const words = text.common.figures;

const make = <T>(state: State<T>, { from, asOf }: Origin): Figure<T> =>
  (asOf ? { ...state, from, asOf } : { ...state, from }) as Figure<T>;

/** What a change of a figure returns where nothing was measured after all. */
export class Unknown {
  constructor(
    readonly why: string,
    readonly failed = false,
  ) {}
}

/** A value that the browser itself knows, such as how many rows somebody chose. */
export const chosen = <T>(value: T): Figure<T> => make({ kind: 'measured', value }, { from: ['browser'] });

/** What a service answered to an act, just now. */
export const answered = <T>(value: T, from: Source): Figure<T> =>
  make({ kind: 'measured', value }, { from: [from], asOf: new Date() });

/** Nothing names a source: nothing was measured. */
export const sourceless: Figure<never> = make({ kind: 'unmeasured', why: words.noValue }, { from: [] });

/** A view of the dashboard reports the state of each source. */
interface View {
  _partial?: readonly string[];
  _as_of?: string;
  _sources?: Record<string, SourceState>;
}

/** The service behind each source of a view; all others are lists of the control plane. */
const services: Record<string, Source> = {
  tracker: 'tracker',
  models: 'tracker',
  drift: 'serving',
  serving: 'serving',
  traffic: 'serving',
  docs: 'dashboard',
  comments: 'dashboard',
};

const unique = <T>(all: readonly T[]): T[] => [...new Set(all)];

/** Returns the sources among those named that gave no answer; all of the view's, if none are named. */
export function silentSources(view: unknown, sources?: readonly string[]): string[] {
  const { _partial = [] } = (view ?? {}) as View;
  return _partial.filter((source) => !sources || sources.includes(source));
}

/** Explains why sources gave no answer. */
export function explainSilence(view: unknown, silent: readonly string[]): string {
  const { _sources = {} } = (view ?? {}) as View;
  return silent
    .map((source) => {
      const why = _sources[source]?.error ?? _sources[source]?.reason;
      return why
        ? words.because(words.sources[source] ?? source, why)
        : words.noAnswer(words.sources[source] ?? source);
    })
    .join(' ');
}

/** Returns where a query's answer comes from, and when it was true: by the word of its sources, else when it came. */
function originOf(query: Reading<unknown>, sources?: readonly string[]): Origin {
  const { _sources = {}, _as_of } = (query.data ?? {}) as View;
  const named = sources ?? Object.keys(_sources);
  const from = named.length > 0 ? unique(named.map((name) => services[name] ?? 'control_plane')) : query.from;
  const times = named.flatMap((name) => _sources[name]?.as_of ?? []).sort();
  const at = times[0] ?? _as_of ?? query.dataUpdatedAt;
  return { from, asOf: query.data !== undefined && at ? new Date(at) : undefined };
}

/**
 * Returns a value's state in a query. sources are those of the view that the value comes from: the value of a
 * source without an answer is not taken, whatever its placeholder. An answer from before the query failed is not
 * one of now.
 */
export function read<T, V>(
  query: Reading<T>,
  pick: (data: T) => V | Unknown | null | undefined,
  sources?: readonly string[],
): Figure<V> {
  const origin = originOf(query, sources);
  if (query.isError) return make({ kind: 'failed', why: explainProblem(query.error).title }, origin);
  if (query.data === undefined) return make({ kind: 'loading' }, origin);
  const silent = silentSources(query.data, sources);
  if (silent.length > 0) return make({ kind: 'failed', why: explainSilence(query.data, silent) }, origin);
  return given(pick(query.data), origin);
}

/** Returns what the last answer had, which may be of before the query failed: for panels that say so and from when. */
export function readLast<T>(query: Reading<T>, sources?: readonly string[]): Figure<T> {
  if (query.data === undefined) return read(query, (data) => data, sources);
  const { _sources } = query.data as View;
  // Of the sources that a panel does not name, those without an answer have measured nothing of it.
  const answered = sources ?? Object.keys(_sources ?? {}).filter((name) => !silentSources(query.data).includes(name));
  return make({ kind: 'measured', value: query.data }, originOf(query, answered));
}

function given<V>(value: V | Unknown | null | undefined, origin: Origin): Figure<V> {
  if (value instanceof Unknown) return make({ kind: value.failed ? 'failed' : 'unmeasured', why: value.why }, origin);
  if (value === null || value === undefined) return make({ kind: 'unmeasured', why: words.noValue }, origin);
  return make({ kind: 'measured', value }, origin);
}

/** Changes a measured value; what the change does not return was not measured. */
export function mapFigure<T, V>(figure: Figure<T>, change: (value: T) => V | Unknown | null | undefined): Figure<V> {
  return figure.kind === 'measured' ? given(change(figure.value), figure) : figure;
}

/** Returns a figure of the same origin that was not measured. */
export const withhold = (figure: Figure<unknown>, unknown: Unknown): Figure<never> =>
  figure.kind === 'measured' ? given<never>(unknown, figure) : (figure as Figure<never>);

/** Adds a service that part of the value comes from. */
export const alsoFrom = <T>(figure: Figure<T>, source: Source): Figure<T> => ({
  ...figure,
  from: unique([...figure.from, source]),
});

/** Joins two figures; a statement about both needs both. */
export function join<A, B, V>(
  a: Figure<A>,
  b: Figure<B>,
  change: (a: A, b: B) => V | Unknown | null | undefined,
): Figure<V> {
  const times = [a.asOf, b.asOf].filter((at): at is Date => at !== undefined);
  const origin: Origin = {
    from: unique([...a.from, ...b.from]),
    asOf: times.length ? new Date(Math.min(...times.map(Number))) : undefined,
  };
  if (a.kind === 'measured' && b.kind === 'measured') return given(change(a.value, b.value), origin);
  const rank = { failed: 0, unmeasured: 1, loading: 2, measured: 3 };
  return make((rank[a.kind] <= rank[b.kind] ? a : b) as State<never>, origin);
}

/** Joins any number of figures; a list of none needs nothing. */
export function joinAll<T>(figures: readonly Figure<T>[]): Figure<readonly T[]> {
  return figures.reduce<Figure<readonly T[]>>((all, each) => join(all, each, (list, value) => [...list, value]), {
    ...chosen<readonly T[]>([]),
    from: [],
  });
}

/** Returns the value, or another where none was measured; for order and choice, never for what is shown. */
export function orElse<T, U>(figure: Figure<T>, other: U): T | U {
  return figure.kind === 'measured' ? figure.value : other;
}

/** Reports how many things have an unknown value, as an unmeasured figure; '' if all are known. */
export function countUnknown(
  kinds: Figure<readonly string[]>,
  say: (unknown: number, all: number) => string,
): Figure<string> {
  return mapFigure(kinds, (all) => {
    const unknown = all.filter((kind) => kind === 'unknown').length;
    return unknown > 0 ? new Unknown(say(unknown, all.length)) : '';
  });
}
