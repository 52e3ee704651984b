import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { components } from '../src/api/gen/inference';
import { inputReportQuery } from '../src/api/queries';
import { binsOf, InputReport } from '../src/screens/drift/report';

type Report = components['schemas']['DriftReport'];
type Feature = components['schemas']['DriftFeature'];

const feature = (change: Partial<Feature>): Feature => ({
  name: 'procs',
  kind: 'number',
  status: 'OK',
  overall: 'CRITICAL',
  decided_by: 'psi',
  n: 100,
  n_baseline: 120,
  measures: {},
  histogram: { edges: [1, 8, 64], live: [0.1, 0.9], baseline: [0.75, 0.25] },
  ...change,
});

const report = (change: Partial<Report>): Report => ({
  model: 'RUNTIMECLASS',
  alias: 'Production',
  overall: 'CRITICAL',
  n_snapshots: 100,
  n_baseline: 120,
  statistics: [],
  features: [feature({})],
  ...change,
});

let client: QueryClient;
beforeEach(() => {
  client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
});

function show(data: Report) {
  client.setQueryData(inputReportQuery('RUNTIMECLASS').queryKey, data);
  render(
    <QueryClientProvider client={client}>
      <InputReport model="RUNTIMECLASS" />
    </QueryClientProvider>,
  );
}

describe('the report of the inputs', () => {
  it('shows bins whose rounded names are the same', () => {
    const complain = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    try {
      const edges = [0.1234561, 0.1234562, 0.1234563, 0.1234564];
      show(report({ features: [feature({ histogram: { edges, live: [0.2, 0.3, 0.5], baseline: [0.5, 0.3, 0.2] } })] }));
      expect(new Set(binsOf({ edges, live: [0, 0, 0], baseline: [0, 0, 0] }).map((bin) => bin.name)).size).toBe(1);
      expect(complain.mock.calls).toEqual([]);
    } finally {
      complain.mockRestore();
    }
  });

  it('shows each input with its state, what decided it, and both distributions', () => {
    show(report({}));
    const one = screen.getByRole('figure', { name: /procs/ });
    expect(within(one).getByText('Critical, decided by PSI')).toBeTruthy();
    const chart = within(one).getByRole('img', {
      name: 'Distribution of procs: 100 recent inputs beside 120 of the baseline',
    });
    const heights = [...chart.querySelectorAll('rect.bar1')].map((bar) => Number(bar.getAttribute('height')));
    expect(heights).toHaveLength(2);
    expect(heights[1]! / heights[0]!).toBeCloseTo(9);
    const cells = within(one)
      .getAllByRole('row', { hidden: true })
      .map((row) => row.textContent);
    expect(cells).toEqual(['From, toRecentBaseline', '1.00 to 8.0010 %75 %', '8.00 to 64.090 %25 %']);
    expect(screen.getByText(/100 recent, 120 of the baseline/)).toBeTruthy();
  });
  it('names the classes of a category', () => {
    expect(binsOf({ classes: ['main', '(other)'], live: [1], baseline: [0.5, 0.5] })).toEqual([
      { name: 'main', live: 1, baseline: 0.5 },
      { name: '(other)', live: 0, baseline: 0.5 },
    ]);
  });
  it('shows the statistics of a model whose input is an embedding', () => {
    show(report({ features: [], statistics: [feature({ name: 'norm' })] }));
    expect(screen.getByRole('figure', { name: /norm/ })).toBeTruthy();
  });
  it('keeps the long tail of inputs behind a button', async () => {
    show(report({ features: Array.from({ length: 9 }, (_, i) => feature({ name: `column ${i}` })) }));
    expect(document.querySelectorAll('figure')).toHaveLength(6); // by role takes seconds on a busy machine
    await userEvent.click(screen.getByText('Show all 9'));
    expect(document.querySelectorAll('figure')).toHaveLength(9);
  });
  it('reports a missing baseline', () => {
    show(report({ overall: 'NO_BASELINE', n_baseline: 0, features: [] }));
    expect(screen.getByText('No baseline of the inputs is set.')).toBeTruthy();
  });
});
