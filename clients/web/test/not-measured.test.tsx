// No page claims anything about a service that is unreachable. What a page shows of a service is
// found by experiment: whatever differs between the answers of a service that has nothing, one with
// everything well and a normal one is derived from that service. None of it may be on the page
// while the service is unreachable.

import { QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router';
import { act, cleanup, render, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { router } from '../src/router';
import { queryClient } from '../src/state/live';
import { answerWith, services, type Mood, type Service } from './stopped';

vi.mock('../src/components/plot', () => ({ default: () => null }));

const began = new Date();
let now: { service: Service; mood: Mood };

beforeEach(() => {
  // Ages are the same in all answers: they are of no interest here.
  vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime(began);
  vi.stubGlobal('scrollTo', () => undefined);
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
      unobserve() {}
    },
  );
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener() {}, removeEventListener() {} }));
  localStorage.setItem(
    'dashboard_auth',
    JSON.stringify({ token: 't', role: 'admin', expires_at: new Date(Date.now() + 3.6e6) }),
  );
  vi.stubGlobal('fetch', async (request: Request) => {
    const url = new URL(request.url);
    if (url.pathname === '/api/v1/stream') return new Promise<Response>(() => undefined);
    const body = answerWith(url, now.service, now.mood);
    if (body !== undefined)
      return new Response(JSON.stringify(body), { headers: { 'content-type': 'application/json' } });
    return new Response(JSON.stringify({ status: 502, code: 'upstream_unavailable', title: 'No answer' }), {
      status: 502,
      headers: { 'content-type': 'application/problem+json' },
    });
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Opens a page and waits until no request is in flight. */
async function open(path: string, service: Service, mood: Mood): Promise<void> {
  cleanup();
  queryClient.clear();
  queryClient.setDefaultOptions({ queries: { ...queryClient.getDefaultOptions().queries, retry: false } });
  now = { service, mood };
  router.update({ ...router.options, history: createMemoryHistory({ initialEntries: [path] }) } as never);
  await act(async () => {
    render(
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>,
    );
  });
  await waitFor(
    () => {
      expect(document.querySelector('h1')).toBeTruthy();
      expect(router.state.isLoading).toBe(false);
      expect(queryClient.isFetching()).toBe(0);
      expect(document.querySelector('.sk')).toBeNull();
    },
    { timeout: 20_000, interval: 25 },
  );
}

/** Returns the statements of the page: each text with the parts of the page that contain it, and each tick. */
function statements(): Set<string> {
  const said = new Set<string>();
  for (const element of document.querySelectorAll('.main *, .side .count')) {
    const own = [...element.childNodes]
      .filter((node) => node.nodeType === Node.TEXT_NODE)
      .map((node) => node.textContent)
      .join(' ')
      .trim();
    const tick = element.tagName === 'svg' && /st-ok|\bok\b/.test(element.getAttribute('class') ?? '');
    // "Not measured" is no claim.
    if ((own === '' && !tick) || element.closest('.nm, .big-nm, .asof, .conn, [data-unmeasured]')) continue;
    const places: string[] = [];
    for (let at = element.parentElement; at; at = at.parentElement) {
      const name =
        at.getAttribute('aria-label') ??
        (/^(LI|TR|A)$/.test(at.tagName) || at.matches('.figures > div, .fact')
          ? at.querySelector('.name, dt, b, td.name, span')?.textContent
          : undefined);
      if (name && name !== own) places.unshift(name);
    }
    said.add(`${places.join(' > ')}: ${own || 'tick'}`);
  }
  return said;
}

const pages = [
  '/',
  '/models',
  '/models/RuntimeRegressor',
  ...['versions', 'drift', 'traffic', 'cost', 'governance', 'discussion'].map(
    (t) => `/models/RuntimeRegressor?tab=${t}`,
  ),
  '/models/RuntimeRegressor/promote',
  '/approvals',
  '/runs',
  '/drift',
  '/alerts',
  '/facility',
  '/finops',
  '/llmops',
  '/governance',
  '/audit',
  '/search?q=jp',
];

describe.each(services)('while %s is away', (service) => {
  it.each(pages)(
    '%s claims nothing of what it has not said',
    async (path) => {
      const answered: Set<string>[] = [];
      // Only for serving does a view state that all is well.
      for (const mood of service === 'serving' ? (['full', 'empty', 'well'] as const) : (['full', 'empty'] as const)) {
        await open(path, service, mood);
        answered.push(statements());
      }
      const always = [...(answered[0] ?? [])].filter((each) => answered.every((set) => set.has(each)));
      const claims = new Set(answered.flatMap((set) => [...set]).filter((each) => !always.includes(each)));
      await open(path, service, 'away');
      const said = [...statements()];
      expect(said.filter((each) => claims.has(each))).toEqual([]);
    },
    90_000,
  );
});
