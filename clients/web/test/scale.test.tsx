// Lists that the server pages, filters and sorts, and the palette's search: what is asked, and what each answer shows.

import { QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router';
import { act, cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
// @ts-expect-error: plain JavaScript, for development and tests only
import { answer } from '../dev/fixtures.mjs';
import { router } from '../src/router';
import Palette from '../src/shell/palette';
import { Pace } from '../src/shell/pace';
import { queryClient } from '../src/state/live';

vi.mock('../src/components/plot', () => ({ default: () => null }));

type Answer = { status?: number; body: unknown } | undefined;
let asked: URL[];
let replace: (url: URL) => Answer;
// One history for all: the router keeps the first it was shown with.
router.update({ ...router.options, history: createMemoryHistory({ initialEntries: ['/preferences'] }) } as never);

beforeEach(() => {
  asked = [];
  replace = () => undefined;
  vi.stubGlobal('scrollTo', () => undefined);
  Element.prototype.scrollIntoView = () => undefined;
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
    asked.push(url);
    const other = replace(url);
    const body =
      other?.body ??
      (answer as (...args: unknown[]) => unknown)('GET', url.pathname, url.searchParams, undefined, 'admin');
    const status = other?.status ?? (body === undefined ? 404 : 200);
    return new Response(JSON.stringify(body ?? { status: 404, code: 'not_found', title: 'Not found' }), {
      status,
      headers: { 'content-type': status === 200 ? 'application/json' : 'application/problem+json' },
    });
  });
});
afterEach(() => vi.unstubAllGlobals());

async function open(path: string): Promise<void> {
  cleanup();
  queryClient.clear();
  queryClient.setDefaultOptions({ queries: { ...queryClient.getDefaultOptions().queries, retry: false } });
  await act(async () => {
    render(
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>,
    );
  });
  asked = [];
  queryClient.clear();
  await act(async () => void router.navigate({ href: path }));
  await waitFor(
    () => {
      expect(router.state.location.pathname).toBe(path.replace(/\?.*/, ''));
      expect(router.state.isLoading).toBe(false);
      expect(document.querySelector('h1')).toBeTruthy();
      expect(queryClient.isFetching()).toBe(0);
      expect(document.querySelector('.sk')).toBeNull();
    },
    { timeout: 4_000, interval: 25 },
  );
}

const queriesOf = (path: string): URLSearchParams[] =>
  asked.filter((url) => url.pathname === path).map((url) => url.searchParams);
const problem = (status: number, code: string): Answer => ({
  status,
  body: { status, code, title: 'No', detail: 'No.' },
});

const entry = {
  id: '019a0000-0000-7000-8000-000000000901',
  seq: 48_210,
  at: '2026-11-22T10:00:05.123456Z',
  actor: 'local:admin',
  action: 'model.promote',
  target: 'model:JPCP',
  source: 'control-plane',
  outcome: 'ok',
  details: { from: 1, to: 2 },
  request_id: 'req-7',
  hash: 'b41f00aa',
};
const auditPage = (items: unknown[], total = items.length, next: string | null = null): Answer => ({
  body: { items, total, next_cursor: next },
});
const ofAudit = (to: Answer) => (url: URL) => (url.pathname === '/api/audit' ? to : undefined);

describe('audit log', () => {
  it('loaded: shows number and time in UTC, and the whole entry beside the list', async () => {
    replace = ofAudit(auditPage([entry], 48_210, 'next'));
    await open('/audit');
    const row = screen.getByText('model.promote').closest('tr') as HTMLElement;
    expect(row.textContent).toContain('48210');
    expect(row.textContent).toContain('UTC');
    fireEvent.keyDown(row, { key: 'Enter' });
    const drawer = await screen.findByRole('dialog');
    for (const shown of [entry.at, entry.id, 'req-7', 'b41f00aa', '"to": 2', 'local:admin'])
      expect(drawer.textContent).toContain(shown);
    expect(drawer.closest('.beside')).toBeTruthy();
  });
  it('asks the server for the text, the filters of the address and a page', async () => {
    replace = ofAudit(auditPage([entry]));
    await open('/audit?q=promote%20JPCP&since=2026-11-01T00:00:00Z&model=JPCP');
    expect(Object.fromEntries(queriesOf('/api/audit')[0] as URLSearchParams)).toEqual({
      q: 'promote JPCP',
      since: '2026-11-01T00:00:00Z',
      model: 'JPCP',
      limit: '200',
    });
    expect(screen.getByLabelText<HTMLInputElement>('From, UTC').value).toBe('2026-11-01');
  });
  it('keeps what is no ISO date to itself, and says how to write one', async () => {
    replace = ofAudit(auditPage([entry]));
    await open('/audit');
    const field = screen.getByLabelText('From, UTC');
    fireEvent.change(field, { target: { value: '22/11/2026' } });
    fireEvent.blur(field);
    expect(screen.getByText(/Use 2026-01-31/)).toBeTruthy();
    expect(queriesOf('/api/audit')).toHaveLength(1);
    fireEvent.change(field, { target: { value: '2026-11-22' } });
    fireEvent.blur(field);
    await waitFor(() => expect(queriesOf('/api/audit').at(-1)?.get('since')).toBe('2026-11-22T00:00:00Z'));
  });
  it('empty: says that nothing matches only where the server said so', async () => {
    replace = ofAudit(auditPage([]));
    await open('/audit?q=nothing');
    expect(screen.getByText('Nothing matches the filters')).toBeTruthy();
  });
  it('failed: shows the problem and no count', async () => {
    replace = ofAudit(problem(502, 'upstream_unavailable'));
    await open('/audit');
    expect(document.querySelector('table[data-rows]')).toBeNull();
    expect(screen.getByRole('button', { name: /again|Retry/i })).toBeTruthy();
  });
});

describe('registry', () => {
  const path = '/api/v1/mlops/registry';
  it('loaded: asks for a page in the order of the address, and counts what the server counted', async () => {
    replace = (url) => {
      if (url.pathname !== path) return undefined;
      const view = answer('GET', path, url.searchParams, undefined, 'admin') as {
        registry: { rows: unknown[] };
        _partial?: string[];
        _sources: object;
      };
      const measured = {
        ...view,
        _partial: undefined,
        _sources: { tracker: { state: 'measured', status: 'ok', ms: 1 } },
      };
      const severities = { critical: 7, warn: 30, unknown: 0, ok: 4963 };
      return {
        body: {
          ...measured,
          registry: { ...view.registry, count: 5000, matching: 41, served: 4000, severities, next_cursor: 'c' },
        },
      };
    };
    await open('/models?sort=-fresh&stage=%5B%22Production%22%5D');
    const [query] = queriesOf(path);
    expect(query?.get('sort')).toBe('-freshness');
    expect(query?.get('stage')).toBe('Production');
    expect(query?.get('limit')).toBe('200');
    expect(document.body.textContent).toContain('5000 models, 4000 in Production.');
    expect(document.body.textContent).toContain('37 need attention.');
    expect(document.body.textContent).toContain('41 of 5');
  });
  it('each letter filters at the server', async () => {
    await open('/models');
    fireEvent.change(screen.getByRole('textbox'), { target: { value: 'jp' } });
    await waitFor(() => expect(queriesOf(path).at(-1)?.get('q')).toBe('jp'));
  });
  it('failed: shows the problem and claims nothing', async () => {
    replace = (url) => (url.pathname === path ? problem(502, 'upstream_unavailable') : undefined);
    await open('/models');
    expect(document.querySelector('table[data-rows]')).toBeNull();
    expect(document.body.textContent).not.toContain('None needs attention');
  });
});

describe('palette', () => {
  const model = (id: string) => ({ kind: 'model', id, label: id, url: `/models/${id}`, score: 80, source: 'tracker' });
  const found = (...ids: string[]): Answer => ({
    body: {
      search: { query: '', count: ids.length, results: ids.map(model), groups: {} },
      _sources: { tracker: { state: 'measured', status: 'ok', ms: 1, as_of: new Date().toISOString() } },
    },
  });
  const names = () => screen.getAllByRole('option').map((option) => option.textContent ?? '');
  const search = '/api/v1/search';

  async function openPalette(): Promise<HTMLElement> {
    await open('/preferences');
    await act(async () => {
      render(
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} defaultComponent={() => null} />
          <Palette onClose={() => undefined} />
        </QueryClientProvider>,
      );
    });
    return within(screen.getByRole('dialog')).getByRole('combobox');
  }
  const type = (input: HTMLElement, value: string) => act(async () => fireEvent.change(input, { target: { value } }));

  it('searches at the server from two letters on, for twenty rows', async () => {
    replace = (url) => (url.pathname === search ? found('JPCP') : undefined);
    const input = await openPalette();
    await type(input, 'j');
    expect(queriesOf(search)).toHaveLength(0);
    await type(input, 'jp');
    expect(queriesOf(search).map((query) => [query.get('q'), query.get('limit')])).toEqual([['jp', '20']]);
  });
  it('offers the acts of the chosen row only', async () => {
    replace = (url) => (url.pathname === search ? found('JPCP', 'JPCQ', 'JPCR') : undefined);
    const input = await openPalette();
    await type(input, 'jp');
    await waitFor(() => expect(names()).toContain('JPCP'));
    const acts = () => names().filter((name) => /^(Retrain|Promote) /.test(name));
    expect(acts()).toEqual(['Retrain JPCP…', 'Promote JPCP…']);
    for (let i = 0; i < 3; i++) {
      await act(async () => fireEvent.keyDown(input, { key: 'ArrowDown' }));
    }
    expect(acts()).toEqual(['Retrain JPCQ…', 'Promote JPCQ…']);
  });
  it('lists one row per model for an act that is typed', async () => {
    replace = (url) => (url.pathname === search ? found('JPCP', 'JPCQ') : undefined);
    const input = await openPalette();
    await type(input, 'retrain jp');
    expect(queriesOf(search)[0]?.get('q')).toBe('jp');
    await waitFor(() => expect(names()).toContain('Retrain JPCQ…'));
    expect(names()).not.toContain('Promote JPCP…');
  });
  it('failed: does not say that nothing was found', async () => {
    replace = (url) => (url.pathname === search ? problem(502, 'upstream_unavailable') : undefined);
    const input = await openPalette();
    await type(input, 'zz');
    await waitFor(() => expect(within(screen.getByRole('dialog')).getByRole('status')).toBeTruthy());
    expect(screen.getByRole('dialog').textContent).not.toContain('Nothing found');
  });
  it('empty: says so once the server answered', async () => {
    replace = (url) => (url.pathname === search ? found() : undefined);
    const input = await openPalette();
    await type(input, 'zz');
    await waitFor(() => expect(screen.getByRole('dialog').textContent).toContain('Nothing found'));
  });
});

describe('Pace', () => {
  it('lets a burst go at once, then one per interval, within the limit of the server', () => {
    const pace = new Pace({ burst: 8, every: 500 });
    let sent = 0;
    for (let now = 0; now < 10_000; now += 50)
      if (pace.wait(now) === 0) {
        pace.take(now);
        sent++;
      }
    expect(sent).toBeLessThanOrEqual(30);
    expect(sent).toBeGreaterThan(20);
  });
});
