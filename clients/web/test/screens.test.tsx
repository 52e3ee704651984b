// Every screen of the loop against answers in the documents' shapes, in English and in the pseudo locale.

import { QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router';
import { act, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
// @ts-expect-error: plain JavaScript, for development and tests only
import { answer } from '../dev/fixtures.mjs';

vi.mock('../src/components/plot', () => ({ default: () => null }));

beforeEach(() => {
  vi.resetModules();
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
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/api/v1/stream') return new Response(new ReadableStream());
    const body = (answer as (...args: unknown[]) => unknown)(
      request.method,
      pathname,
      searchParams,
      undefined,
      'admin',
    );
    if (body === undefined)
      return new Response(JSON.stringify({ status: 404, code: 'not_found', title: 'Not found', detail: pathname }), {
        status: 404,
        headers: { 'content-type': 'application/problem+json' },
      });
    return new Response(JSON.stringify(body), { status: 200, headers: { 'content-type': 'application/json' } });
  });
});

afterEach(() => vi.unstubAllGlobals());

async function open(path: string): Promise<void> {
  const { router } = await import('../src/router');
  const { queryClient } = await import('../src/state/live');
  router.update({ ...router.options, history: createMemoryHistory({ initialEntries: [path] }) } as never);
  await act(async () => {
    render(
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>,
    );
  });
  await screen.findByRole('heading', { level: 1 }, { timeout: 8000 });
}

/** The id of a run of the fixtures. */
const run = (n: number): string => `018f3a00-0000-7000-8000-${String(n).padStart(12, '0')}`;
const routes = ['/', '/models', '/models/RuntimeRegressor', '/approvals', '/runs', '/drift', '/alerts', '/gallery'];

describe('screens', () => {
  it.each([
    ['/', 'Overview', 'JPCP: predictions have drifted'],
    ['/models', 'Registry', 'Drift z 4.18, above 3.0'],
    ['/models/RuntimeRegressor', /RuntimeRegressor/, 'p90_error'],
    ['/approvals', 'Approvals', 'Why high risk'],
    ['/runs', 'Runs', '−2.9 % better'],
    ['/runs?as=timeline', 'Runs', 'JPCP v13'],
    [`/runs/${run(84)}`, 'JPCP v13', 'Train and evaluate'],
    [`/runs?id=${run(84)}`, 'JPCP v13', 'Train and evaluate'],
    [`/runs/compare?run=${JSON.stringify([run(84), run(89)])}`, 'Compare runs', 'trees'],
    ['/drift', 'Drift', 'decided by z score'],
    ['/alerts', 'Alerts', 'What to do'],
  ])('%s shows its object and what is so', async (path, title, figure) => {
    await open(path);
    expect(await screen.findByRole('heading', { level: 1, name: title }, { timeout: 8000 })).toBeTruthy();
    await waitFor(() => expect(screen.getAllByText(figure).length).toBeGreaterThan(0), { timeout: 8000 });
    expect(screen.queryByText('This panel could not be drawn')).toBeNull();
  });

  it('shows no value that was not measured as zero', async () => {
    await open('/models');
    const row = (await screen.findByRole('link', { name: 'JPCP-gpu' })).closest('tr');
    expect(row?.textContent).toContain('not measured');
    expect(row?.textContent).not.toMatch(/\b0\.00\b/);
  });

  it('goes to sign-in when no one is signed in, and remembers where to return', async () => {
    localStorage.clear();
    vi.stubGlobal(
      'fetch',
      async () =>
        new Response(JSON.stringify({ status: 401, code: 'unauthenticated', providers: [], local_login: true }), {
          status: 401,
          headers: { 'content-type': 'application/problem+json' },
        }),
    );
    const { router } = await import('../src/router');
    await open('/models?view=attention');
    expect(router.state.location.pathname).toBe('/login');
    expect((router.state.location.search as { return_to?: string }).return_to).toBe('/models?view=attention');
  });
});

describe('pseudo locale', () => {
  // What a person or a service named is data and stays as it is.
  const data =
    /^(?:[\d\s.,%·–−…/:()+]*|v\d.*|g|[a-z]|Esc|Enter|Ctrl K|USD|req\/s|ms.*|z.*|GPU h|UTC|s|hpc-centre|local.*|AD|PSI|W1\/σ|KS p)$/;
  it.each(routes)('%s has every heading, column and button in the catalogue', async (path) => {
    localStorage.setItem('platform.language', 'pseudo');
    await open(path);
    await waitFor(() => expect(document.querySelectorAll('h2').length).toBeGreaterThan(1), { timeout: 8000 });
    const plain = [
      ...document.querySelectorAll('h1, h2, h3, th, .btn, .seg button, label, summary, .nav a > span:first-of-type'),
    ]
      .flatMap((element) =>
        [...element.childNodes]
          .filter((node) => node.nodeType === Node.TEXT_NODE)
          .map((node) => node.textContent?.trim() ?? ''),
      )
      .filter((words) => words !== '' && !data.test(words) && /^[\u0000-\u007f]*$/.test(words));
    const names =
      /JPCP|RuntimeRegressor|MACK|MCBound|RuntimeClass|QueueWait|NodeThermal|LinkFlap|PowerCap|jobs-1993|drift:|Budget of/;
    expect(plain.filter((words) => !names.test(words))).toEqual([]);
  });
});
