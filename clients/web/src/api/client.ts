// The one way to the services: the dashboard's own routes, and through its proxy those of the control
// plane and of serving. Every failure is a Problem.

import createClient from 'openapi-fetch';
import type { paths as ControlPlanePaths } from './gen/controlplane';
import type { paths as DashboardPaths } from './gen/dashboard';
import type { paths as InferencePaths } from './gen/inference';
import { Problem, readProblem } from './problem';
import { clearSession, credentialHeaders } from './session';

type Listener = (problem: Problem) => void;
const listeners = new Set<Listener>();

/** Calls the listener when the session turns out to be over. */
export function onSessionOver(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Fetches as the person who is signed in; anything but 2xx and 304 throws a Problem. */
export async function platformFetch(input: Request | string, init?: RequestInit): Promise<Response> {
  const request = new Request(input, { ...init, credentials: 'same-origin' });
  for (const [name, value] of Object.entries(credentialHeaders())) request.headers.set(name, value);
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Problem(0, { title: 'Unreachable', detail: '', code: 'unreachable' });
  }
  if (response.ok || response.status === 304) return response;
  const problem = await readProblem(response);
  // A failed login is the form's business, not the end of a session.
  if (problem.needsLogin && !new URL(request.url).pathname.startsWith('/api/auth/login')) {
    clearSession();
    for (const listener of listeners) listener(problem);
  }
  throw problem;
}

const base = typeof location === 'undefined' ? '' : location.origin;
const options = (prefix: string) => ({ baseUrl: base + prefix, fetch: platformFetch });

export const dashboard = createClient<DashboardPaths>(options(''));
export const controlPlane = createClient<ControlPlanePaths>(options('/api/proxy/control_plane'));
export const serving = createClient<InferencePaths>(options('/api/proxy/serving'));

/** Takes the body out of an answer; platformFetch has thrown for all that have none. */
export async function bodyOf<T>(answer: Promise<{ data?: T; response: Response }>): Promise<T> {
  const { data } = await answer;
  return data as T;
}

/** Sends a request that no OpenAPI document describes, or one that was put aside for a step-up. */
export async function sendJSON<T>(method: string, path: string, body?: unknown, ifMatch?: string): Promise<T> {
  const response = await platformFetch(base + path, {
    method,
    headers: {
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(ifMatch !== undefined && { 'If-Match': ifMatch }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as T;
}
