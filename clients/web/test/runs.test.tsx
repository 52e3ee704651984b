import { chosen, sourceless } from '../src/state/figure';
// The list of runs: what it shows and in which order, and each state that its page can be in.

import { QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router';
import { act, cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
// @ts-expect-error: plain JavaScript, for development and tests only
import { answer } from '../dev/fixtures.mjs';
import { columnsOf, defaultColumns } from '../src/screens/runs/columns';
import {
  compareBy,
  countValues,
  durationOf,
  figureOf,
  filterRuns,
  formatStart,
  improvementOf,
  inTab,
  type RunRow,
} from '../src/screens/runs/rows';
import { sortRows } from '../src/components/table';

const base: RunRow = {
  flow_run_id: 'r1',
  model_id: 'JPCP',
  dataset_name: 'JobsPower',
  origin: 'api',
  cause: 'manual',
  state_type: 'COMPLETED',
  is_dummy: false,
  commit_sha: 'c0ffee',
  approval_id: null,
  model_version: '2',
  started_at: '2026-11-30T10:00:00Z',
  ended_at: '2026-11-30T10:01:30Z',
  requester: 'alice',
  metric: { state: 'measured', name: 'rmse', better: 'lower', value: 9 },
  change: { state: 'measured', version: '1', from: 10, difference: -1, verdict: 'better' },
  cost: { state: 'measured', usd: 2, synthetic: false },
};
const run = (more: Partial<RunRow>): RunRow => ({ ...base, ...more });
const unmeasured = { state: 'not_measured', reason: 'the run has not ended' } as const;
const none = { state: 'all', q: '', model: [], cause: [], requester: [] } as const;

describe('a run', () => {
  it('took from start to end, takes until now while it is active, and nothing is known of one that was lost', () => {
    const now = Date.parse('2026-11-30T11:00:00Z');
    expect(durationOf(base, now)).toBe(90_000);
    expect(durationOf(run({ state_type: 'RUNNING', ended_at: null }), now)).toBe(3_600_000);
    expect(durationOf(run({ state_type: 'LOST', ended_at: null }), now)).toBeUndefined();
    expect(durationOf(run({ state_type: 'PENDING', started_at: null, ended_at: null }), now)).toBeUndefined();
  });

  it.each([
    ['RUNNING', ['all', 'active']],
    ['completed', ['all', 'completed']],
    ['CRASHED', ['all', 'failed']],
    ['CANCELLED', ['all', 'cancelled']],
  ])('that is %s is under %j', (state_type, tabs) => {
    const all = ['all', 'active', 'completed', 'failed', 'cancelled'] as const;
    expect(all.filter((tab) => inTab({ state_type }, tab))).toEqual(tabs);
  });

  it('improves in the direction of its metric', () => {
    expect(improvementOf(base)).toBeCloseTo(0.1);
    expect(improvementOf(run({ metric: { ...base.metric, better: 'higher' } }))).toBeCloseTo(-0.1);
    expect(improvementOf(run({ change: { ...base.change, state: 'failed' } }))).toBeUndefined();
  });

  it('has a figure only if it was measured, whatever else the answer carries', () => {
    const view = chosen('answered');
    expect(figureOf(view, { state: 'measured' as const, value: 0 }, (f) => f.value)).toMatchObject({
      kind: 'measured',
      value: 0,
    });
    expect(figureOf(view, { state: 'not_measured', reason: 'why', value: 1 } as never, () => 1)).toMatchObject({
      kind: 'unmeasured',
      why: 'why',
    });
    expect(figureOf(view, { state: 'failed', reason: 'away' }, () => 1)).toMatchObject({ kind: 'failed', why: 'away' });
    expect(figureOf(view, { state: 'measured' }, () => undefined).kind).toBe('unmeasured');
    expect(figureOf(sourceless, { state: 'measured' }, () => 1).kind).toBe('unmeasured');
  });

  it('started on a date whose year is told if it is another', () => {
    const now = new Date('2026-11-30T11:00:00Z');
    expect(formatStart(new Date('2026-11-30T10:05:00Z'), now)).toBe('30 Nov, 10:05');
    expect(formatStart(new Date('2025-12-31T23:59:00Z'), now)).toBe('31 Dec 2025, 23:59');
  });
});

describe('the list', () => {
  const other = run({ flow_run_id: 'r2', model_id: 'MACK', cause: 'drift', requester: 'system:drift' });
  it.each([
    [{ model: ['MACK'] }, ['r2']],
    [{ cause: ['manual', 'drift'] }, ['r1', 'r2']],
    [{ cause: ['manual'], requester: ['system:drift'] }, []],
    [{ q: ' MACK ' }, ['r2']],
    [{ q: 'c0ff' }, ['r1', 'r2']],
    [{ q: 'ALICE' }, ['r1']],
  ])('filtered by %j has %j', (filters, ids) => {
    expect(filterRuns([base, other], { ...none, ...filters }).map((each) => each.flow_run_id)).toEqual(ids);
  });

  it('counts the values to filter by, and keeps one that is chosen', () => {
    expect(countValues([base, other, base], (each) => each.model_id, ['GONE'])).toEqual([
      { id: 'JPCP', count: 2 },
      { id: 'MACK', count: 1 },
      { id: 'GONE', count: 0 },
    ]);
  });

  it('sorts what was not measured last, whichever way', () => {
    const rows = [
      run({ flow_run_id: 'none', metric: unmeasured, change: unmeasured, cost: unmeasured }),
      run({ flow_run_id: 'more', metric: { ...base.metric, value: 12 }, cost: { state: 'measured', usd: 9 } }),
      run({ flow_run_id: 'less', metric: { ...base.metric, value: 8 }, cost: { state: 'measured', usd: 0 } }),
    ];
    const sorted = (by: string) => sortRows(rows, columnsOf(defaultColumns), by).map((each) => each.flow_run_id);
    for (const key of ['metric', 'cost']) {
      expect(sorted(key)).toEqual(['less', 'more', 'none']);
      expect(sorted(`-${key}`)).toEqual(['more', 'less', 'none']);
    }
  });

  it('has a run that waits for a worker among the newest', () => {
    const waiting = run({
      flow_run_id: 'waiting',
      started_at: null,
      ended_at: null,
      dispatched_at: '2026-11-30T11:00:00Z',
    });
    const ids = sortRows([base, waiting], columnsOf(defaultColumns), '-started').map((each) => each.flow_run_id);
    expect(ids).toEqual(['waiting', 'r1']);
  });

  it('sorts by every column that it shows', () => {
    expect(columnsOf(defaultColumns).filter((column) => !column.sort)).toEqual([]);
  });
});

describe('compareBy', () => {
  it('marks what differs, by the value and not by how it reads', () => {
    const rows = compareBy(
      [
        { a: 1, b: 1.0001, c: 3 },
        { a: 1, b: 1.0002 },
      ],
      (value) => Number(value).toFixed(1),
    );
    expect(rows).toEqual([
      { key: 'a', values: ['1.0', '1.0'], differs: false },
      { key: 'b', values: ['1.0', '1.0'], differs: true },
      { key: 'c', values: ['3.0', undefined], differs: true },
    ]);
  });

  it('tells no difference to a run whose record was not read', () => {
    expect(compareBy([{ a: 1 }, undefined, { a: 1 }])).toEqual([
      { key: 'a', values: ['1', undefined, '1'], differs: false },
    ]);
  });
});

describe('the page', () => {
  let view: unknown;
  let router: typeof import('../src/router').router;
  beforeEach(() => {
    view = undefined;
    vi.resetModules(); // a router of its own for each test
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
      if (pathname === '/api/v1/stream') return new Promise<Response>(() => undefined);
      if (pathname === '/api/v1/runs' && view instanceof Response) return view.clone();
      const body =
        pathname === '/api/v1/runs' && view !== undefined
          ? view
          : (answer as (...args: unknown[]) => unknown)('GET', pathname, searchParams, undefined, 'admin');
      return new Response(JSON.stringify(body ?? { status: 404, code: 'not_found', title: 'Not found' }), {
        status: body === undefined ? 404 : 200,
        headers: { 'content-type': body === undefined ? 'application/problem+json' : 'application/json' },
      });
    });
  });
  afterEach(() => {
    cleanup();
    localStorage.clear();
    vi.unstubAllGlobals();
  });

  async function open(path: string): Promise<HTMLElement> {
    ({ router } = await import('../src/router'));
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
    await waitFor(
      () => {
        expect(queryClient.isFetching()).toBe(0);
      },
      { timeout: 8000 },
    );
    return screen.getByRole('main');
  }
  const rowOf = (name: RegExp): string =>
    screen.getAllByRole('row', { name }).map((row) => row.textContent ?? '')[0] ?? '';
  const problem = (status: number, code: string): Response =>
    new Response(JSON.stringify({ status, code, title: code, detail: code }), {
      status,
      headers: { 'content-type': 'application/problem+json' },
    });

  it('shows duration, metric with its change, requester, cause and cost', async () => {
    await open('/runs');
    const row = rowOf(/Completed JPCP v13/);
    for (const part of ['50 min', '20.8', '−2.9 % better', 'v12: 21.4', 'ci', 'Change', '11.70'])
      expect(row).toContain(part);
    expect(rowOf(/Running MCBound/)).toContain('not measured');
    expect(rowOf(/Running MCBound/)).toContain('the run has not ended');
    expect(rowOf(/QueueWait v2/)).toContain('one of the two was a dummy run');
  });

  it('colours only a change that was measured', async () => {
    const main = await open('/runs');
    const judged = [...main.querySelectorAll('.plus, .minus')].map((each) => each.textContent);
    expect(judged.length).toBeGreaterThan(1);
    for (const each of judged) expect(each).toMatch(/[+−][\d.]+ % (better|worse)/);
  });

  it('takes filters and sorting from the address, and says how it is sorted', async () => {
    await open('/runs?model=%5B%22QueueWait%22%5D&sort=-duration');
    const table = screen.getByRole('table', { name: 'Training runs' });
    expect(within(table).getAllByRole('row').slice(1)).toHaveLength(3);
    expect(screen.getByRole('columnheader', { name: /Duration/ }).getAttribute('aria-sort')).toBe('descending');
    fireEvent.click(screen.getByRole('button', { name: 'Cost, USD' }));
    await waitFor(() => expect(router.state.location.search).toMatchObject({ sort: 'cost', model: ['QueueWait'] }));
  });

  it('keeps the columns that were chosen', async () => {
    localStorage.setItem('platform.columns.runs', 'commit,cost');
    await open('/runs');
    const heads = screen.getAllByRole('columnheader').map((head) => head.textContent);
    expect(heads).toEqual(['', 'State', 'Model', 'Cost, USD', 'Commit']);
  });

  it('compares two runs or more', async () => {
    await open('/runs');
    const compare = async (names: RegExp[]): Promise<void> => {
      for (const name of names) fireEvent.click(screen.getByRole('checkbox', { name }));
    };
    await compare([/Select JPCP v13/]);
    expect(screen.getByRole('button', { name: 'Compare' }).getAttribute('aria-disabled')).toBe('true');
    expect(screen.getByText('Select two runs or more')).toBeTruthy();
    await compare([/Select JPCP v11/]);
    fireEvent.click(screen.getByRole('button', { name: 'Compare' }));
    await screen.findByRole('heading', { level: 1, name: 'Compare runs' }, { timeout: 8000 });
    const trees = (await screen.findByText('trees', undefined, { timeout: 8000 })).closest('tr');
    expect(trees?.textContent).toBe('trees differs400300');
    expect(screen.getByText('seed').closest('tr')?.textContent).toBe('seed 77');
    fireEvent.click(screen.getByRole('switch', { name: 'Only what differs' }));
    await waitFor(() => expect(screen.queryByText('seed')).toBeNull());
  });

  it('without any run says so, and that none was started', async () => {
    view = { runs: { items: [], truncated: false }, _as_of: new Date().toISOString() };
    vi.stubGlobal(
      'fetch',
      ((inner) => async (request: Request) =>
        new URL(request.url).pathname.endsWith('/approvals')
          ? new Response('[]', { headers: { 'content-type': 'application/json' } })
          : inner(request))(fetch as unknown as (request: Request) => Promise<Response>),
    );
    expect((await open('/runs')).textContent).toContain('No run has been started');
  });

  it('without the tracker still has its rows, and nothing of Production', async () => {
    const full = (answer as (...args: unknown[]) => { runs: { items: RunRow[] } })(
      'GET',
      '/api/v1/runs',
      new URLSearchParams(),
    );
    const change = { state: 'failed', reason: 'the tracker gave no answer about Production' };
    view = {
      runs: { items: full.runs.items.map((each) => ({ ...each, change })), truncated: false },
      _partial: ['tracker'],
      _sources: { tracker: { state: 'failed', status: 'timeout', ms: 2000, error: 'no answer in time' } },
    };
    const main = await open('/runs');
    expect(rowOf(/Completed JPCP v13/)).toContain('20.8');
    expect(rowOf(/Completed JPCP v13/)).toContain('the tracker gave no answer about Production');
    expect(main.textContent).toContain('Not measured: tracker');
    expect(main.querySelectorAll('.plus, .minus')).toHaveLength(0);
  });

  it('without the control plane claims neither runs nor their absence', async () => {
    view = {
      _partial: ['runs'],
      _sources: { runs: { state: 'failed', status: 'error', ms: 1, error: 'the service cannot be reached' } },
    };
    const main = await open('/runs');
    expect(main.textContent).toContain('No figures from the run records: the service cannot be reached.');
    expect(main.textContent).not.toMatch(/0 running|No run has been started|0 in all/);
  });

  it('says that it failed, with another try', async () => {
    view = problem(500, 'internal');
    await open('/runs');
    expect(screen.getByRole('button', { name: 'Try again' })).toBeTruthy();
  });

  it('says that the role does not allow it', async () => {
    view = problem(403, 'role_required');
    expect((await open('/runs')).textContent).toContain('Your role does not allow this');
  });

  it('says of a run that is unknown where it may be', async () => {
    const main = await open('/runs/nosuch');
    await waitFor(() => expect(main.textContent).toContain('There is no such run'), { timeout: 9000 });
  }, 15_000);

  it('of 5,000 runs draws those in sight, and counts all', async () => {
    const full = (answer as (...args: unknown[]) => { runs: { items: RunRow[] } })(
      'GET',
      '/api/v1/runs',
      new URLSearchParams(),
    );
    const items = Array.from({ length: 5000 }, (_, i) => ({
      ...full.runs.items[i % full.runs.items.length],
      flow_run_id: `run-${i}`,
    }));
    view = { runs: { items, truncated: true } };
    const main = await open('/runs');
    expect(screen.getByRole('table', { name: 'Training runs' }).getAttribute('aria-rowcount')).toBe('5001');
    expect(main.querySelectorAll('tbody tr').length).toBeLessThan(100);
    expect(main.textContent).toContain('5000 in all, the newest 5,000');
  });
});
