// What is known of a value. A service that gives no answer has not reported 0, "none" or "all
// well": a component that shows a number, a count, a tick or a sentence such as "nothing waits"
// takes a Figure, and can show it only if it was measured.

import type { UseQueryResult } from '@tanstack/react-query';
import type { components } from '../api/gen/dashboard';
import { explainProblem } from '../components/blank';
import { text } from '../text';

type SourceState = components['schemas']['SourceState'];

export type Figure<T> =
  | { readonly kind: 'measured'; readonly value: T }
  | { readonly kind: 'loading' }
  /** Nothing was measured, and why. */
  | { readonly kind: 'unmeasured'; readonly why: string }
  /** What failed. */
  | { readonly kind: 'failed'; readonly why: string };

const words = text.common.figures;

export const measured = <T>(value: T): Figure<T> => ({ kind: 'measured', value });

/** Returns the value as a figure; an absent one was not measured. */
export function given<T>(value: T | null | undefined, why: string = words.noValue): Figure<T> {
  return value === null || value === undefined ? { kind: 'unmeasured', why } : { kind: 'measured', value };
}

/** A view of the dashboard reports the state of each source. */
interface View {
  _partial?: readonly string[];
  _sources?: Record<string, SourceState>;
}

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

type Query<T> = Pick<UseQueryResult<T>, 'data' | 'error' | 'isError'>;

/**
 * Returns a value's state in a query. sources are those of the view that the value comes from: the value of a
 * source without an answer is not taken, whatever its placeholder. An answer from before the query failed is not
 * one of now.
 */
export function read<T, V>(
  query: Query<T>,
  pick: (data: T) => V | null | undefined,
  sources?: readonly string[],
): Figure<V> {
  if (query.isError) return { kind: 'failed', why: explainProblem(query.error).title };
  if (query.data === undefined) return { kind: 'loading' };
  const silent = silentSources(query.data, sources);
  if (silent.length > 0) return { kind: 'failed', why: explainSilence(query.data, silent) };
  return given(pick(query.data));
}

export function mapFigure<T, V>(figure: Figure<T>, change: (value: T) => V): Figure<V> {
  return figure.kind === 'measured' ? measured(change(figure.value)) : figure;
}

/** Joins two figures; a statement about both needs both. */
export function join<A, B, V>(a: Figure<A>, b: Figure<B>, change: (a: A, b: B) => V): Figure<V> {
  if (a.kind === 'measured' && b.kind === 'measured') return measured(change(a.value, b.value));
  const rank = { failed: 0, unmeasured: 1, loading: 2, measured: 3 };
  return (rank[a.kind] <= rank[b.kind] ? a : b) as Figure<never>;
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
  if (kinds.kind !== 'measured') return kinds;
  const unknown = kinds.value.filter((kind) => kind === 'unknown').length;
  return unknown > 0 ? { kind: 'unmeasured', why: say(unknown, kinds.value.length) } : measured('');
}
