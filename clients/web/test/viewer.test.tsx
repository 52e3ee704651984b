// A viewer's pages request nothing that the server refuses them.

import { QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router';
import { act, cleanup, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
// @ts-expect-error: plain JavaScript, for development and tests only
import { answer } from '../dev/fixtures.mjs';
import { router } from '../src/router';
import { queryClient } from '../src/state/live';

vi.mock('../src/components/plot', () => ({ default: () => null }));

/** What the dashboard keeps to admins: internal/app/routes.go and namesLedger in internal/proxy/admit.go. */
const admins = /^\/api\/(proxy\/control_plane\/(audit|outbox)\b|audit$|v1\/flags\/admin$|v1\/notifications\/)/;
let refused: string[];

beforeEach(() => {
  refused = [];
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
  vi.stubGlobal('fetch', async (request: Request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/api/v1/stream') return new Promise<Response>(() => undefined);
    if (admins.test(pathname) || request.method !== 'GET') refused.push(`${request.method} ${pathname}`);
    const body = (answer as (...args: unknown[]) => unknown)('GET', pathname, searchParams, undefined, 'viewer');
    return new Response(JSON.stringify(body ?? { status: 404, code: 'not_found', title: 'Not found' }), {
      status: body === undefined ? 404 : 200,
      headers: { 'content-type': body === undefined ? 'application/problem+json' : 'application/json' },
    });
  });
});
afterEach(() => vi.unstubAllGlobals());

it.each([
  '/governance',
  '/',
  '/models',
  '/models/JPCP?tab=governance',
  '/approvals',
  '/runs',
  '/drift',
  '/alerts',
  '/audit',
  '/flags',
  '/notifications',
  '/config',
  '/finops',
  '/llmops',
])(
  '%s makes no call that a viewer is refused',
  async (path) => {
    cleanup();
    queryClient.clear();
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
      },
      { timeout: 20_000 },
    );
    expect(refused).toEqual([]);
    if (path !== '/governance') return;
    for (const name of ['Verify now', 'Export ledger'])
      expect(screen.getByRole('button', { name }).getAttribute('aria-disabled')).toBe('true');
  },
  60_000,
);
