import { queryOptions, type QueryKey, type UseQueryOptions, type UseQueryResult } from '@tanstack/react-query';
import { useQuery, type Source } from './query';
import { useSyncExternalStore } from 'react';
import { bodyOf, dashboard, onSessionOver, sendJSON } from '../api/client';
import type { components } from '../api/gen/dashboard';
import { meQuery } from '../api/queries';
import { clearSession, storeSession } from '../api/session';
import { forgetEvents, queryClient, stream } from './live';

export type Identity = components['schemas']['Identity'];

/** Returns who is signed in; undefined while that is not known. */
export function useMe(): Identity | undefined {
  return useQuery(queryOptions(meQuery)).data;
}

/** Reports whether the person may do something; the server decides again. */
export function useMay(capability: string): boolean {
  return useMe()?.capabilities.includes(capability) ?? false;
}

/** Runs a query only for callers who may read: no request is sent that the server would refuse. */
export function useAllowedQuery<T, E, D, K extends QueryKey>(
  query: UseQueryOptions<T, E, D, K>,
  capability: string,
): UseQueryResult<D, E> & { readonly from: readonly Source[] } {
  const may = useMay(capability);
  return useQuery({ ...query, enabled: may && query.enabled !== false });
}

let over = false;
const listeners = new Set<() => void>();

function setOver(value: boolean): void {
  if (over === value) return;
  over = value;
  for (const listener of listeners) listener();
}

// Only a session that was there can be over; a first visit goes to the login page instead.
onSessionOver(() => {
  if (queryClient.getQueryData(meQuery.queryKey) !== undefined) setOver(true);
});

export function useSessionOver(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => over,
  );
}

/** Signs in by password. The views are read again, since another person may have signed in. */
export async function signInWithPassword(password: string): Promise<void> {
  storeSession(await bodyOf(dashboard.POST('/api/auth/login', { body: { password } })));
  setOver(false);
  stream.stop();
  if (queryClient.getQueryData(meQuery.queryKey) === undefined) {
    queryClient.clear();
    return;
  }
  // A page is open: it stays, and its figures are read again with the new session.
  await queryClient.invalidateQueries();
  stream.start();
}

/** Ends the session here and on every replica, and at the provider if it was a single sign-on. */
export async function signOut(me: Identity | undefined): Promise<void> {
  let elsewhere: string | undefined;
  try {
    if (me?.auth_method === 'sso') {
      const answer = await sendJSON<{ end_session_url?: string }>('POST', '/api/auth/sso/logout');
      elsewhere = answer?.end_session_url;
    } else await bodyOf(dashboard.POST('/api/auth/logout'));
  } catch {
    // The session may have ended already; the goal was to leave it here.
  }
  clearSession();
  stream.stop();
  forgetEvents();
  queryClient.clear();
  setOver(false);
  location.assign(elsewhere ?? '/login');
}

/** Returns a path of this origin, or the overview: a link cannot redirect to another site. */
export function safeReturnTo(path: string | undefined): string {
  if (!path || !/^\/(?![/\\])/.test(path) || /[\\\u0000-\u001f]/.test(path) || path.startsWith('/api/')) return '/';
  return path;
}

/** Returns a provider's login address that comes back to this page. */
export function loginAddress(loginUrl: string, returnTo: string): string {
  return `${loginUrl}${loginUrl.includes('?') ? '&' : '?'}return_to=${encodeURIComponent(safeReturnTo(returnTo))}`;
}
