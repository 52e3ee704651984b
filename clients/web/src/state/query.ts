// The one way to read a service: a query that knows which service answers it. Screens use these instead of
// TanStack's hooks, so that each value on a page can say where it comes from.

import {
  useInfiniteQuery as useTanstackInfiniteQuery,
  useQueries as useTanstackQueries,
  useQuery as useTanstackQuery,
  type QueryKey,
  type UseInfiniteQueryOptions,
  type UseInfiniteQueryResult,
  type UseQueryOptions,
  type UseQueryResult,
} from '@tanstack/react-query';

/** Who measures. The browser knows its own choices only. */
export type Source = 'tracker' | 'serving' | 'control_plane' | 'orchestrator' | 'assistant' | 'dashboard' | 'browser';

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: { from: Source };
  }
}

/** A query's result with the services that answer it. */
export type Reading<T, E = Error> = Pick<
  UseQueryResult<T, E>,
  'data' | 'error' | 'isError' | 'isPending' | 'isFetching' | 'dataUpdatedAt' | 'refetch'
> & { readonly from: readonly Source[] };

// A copy would read every member, and the component would be drawn again at each change of any.
function withSource<R extends object>(result: R, from: readonly Source[]): R & { readonly from: readonly Source[] } {
  return new Proxy(result, {
    get: (target, key) => (key === 'from' ? from : Reflect.get(target, key)),
  }) as R & { readonly from: readonly Source[] };
}

const sourcesOf = ({ meta }: { meta?: { from: Source } }): readonly Source[] => [meta?.from ?? 'dashboard'];

export function useQuery<T, E = Error, D = T, K extends QueryKey = QueryKey>(
  options: UseQueryOptions<T, E, D, K>,
): UseQueryResult<D, E> & { readonly from: readonly Source[] } {
  return withSource(useTanstackQuery(options), sourcesOf(options));
}

export function useQueries<T, D = T, K extends QueryKey = QueryKey>(
  all: readonly UseQueryOptions<T, Error, D, K>[],
): (UseQueryResult<D> & { readonly from: readonly Source[] })[] {
  const results = useTanstackQueries({ queries: [...all] as UseQueryOptions<T, Error, D, K>[] });
  return results.map((result, i) => withSource(result as UseQueryResult<D>, sourcesOf(all[i] ?? {})));
}

export function useInfiniteQuery<T, E, D, K extends QueryKey, P>(
  options: UseInfiniteQueryOptions<T, E, D, K, P>,
): UseInfiniteQueryResult<D, E> & { readonly from: readonly Source[] } {
  return withSource(useTanstackInfiniteQuery(options), sourcesOf(options));
}
