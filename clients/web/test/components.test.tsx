import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useQuery } from '../src/state/query';
import { render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState, type ReactNode } from 'react';
import { describe, expect, it, vi } from 'vitest';
import { Problem } from '../src/api/problem';
import { ActDialog } from '../src/components/act-dialog';
import { Blank } from '../src/components/blank';
import { formatCSV } from '../src/components/csv';
import { readPatch } from '../src/components/diff';
import { QueryPanel } from '../src/components/panel';
import { Measured } from '../src/components/state';
import { DataTable, sortRows, type Column } from '../src/components/table';
import { isBetter } from '../src/screens/model/compare';
import { combineSeries, perSecond } from '../src/screens/overview/overview';
import { storePreference } from '../src/state/preferences';

interface Row {
  name: string;
  z: number | null;
}
const rows: Row[] = [
  { name: 'b', z: 2 },
  { name: 'a', z: null },
  { name: 'c', z: 10 },
];
const columns: Column<Row>[] = [
  { key: 'name', header: 'Name', isName: true, sort: (row) => row.name, cell: (row) => row.name },
  {
    key: 'z',
    header: 'z',
    numeric: true,
    sort: (row) => row.z,
    cell: (row) => <Measured value={row.z}>{(z) => String(z)}</Measured>,
  },
];
const names = (list: readonly Row[]): string => list.map((row) => row.name).join('');

function Table({ onOpen }: { onOpen?: (row: Row) => void }) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  return (
    <DataTable
      label="Rows"
      rows={rows}
      columns={columns}
      rowKey={(row) => row.name}
      rowName={(row) => row.name}
      onOpen={onOpen}
      selected={selected}
      onSelect={setSelected}
    />
  );
}

describe('DataTable', () => {
  it('puts what was not measured last in both directions', () => {
    expect(names(sortRows(rows, columns, 'z'))).toBe('bca');
    expect(names(sortRows(rows, columns, '-z'))).toBe('cba');
  });

  it('moves with j and k, opens with Enter and selects with x', async () => {
    const onOpen = vi.fn();
    const user = userEvent.setup();
    render(<Table onOpen={onOpen} />);
    await user.keyboard('j');
    const body = screen.getAllByRole('row').slice(1);
    expect(document.activeElement).toBe(body[0]);
    await user.keyboard('jx{Enter}');
    expect(document.activeElement).toBe(body[1]);
    expect(body[1]?.getAttribute('aria-selected')).toBe('true');
    expect(onOpen).toHaveBeenCalledWith(rows[1]);
    await user.keyboard('k');
    expect(document.activeElement).toBe(body[0]);
  });

  it('leaves single keys alone once they are switched off', async () => {
    storePreference('keys', 'off');
    render(<Table />);
    await userEvent.keyboard('j');
    expect(document.activeElement).toBe(document.body);
  });

  it('says its direction to assistive technology', async () => {
    render(<Table />);
    await userEvent.click(screen.getByRole('button', { name: 'z' }));
    expect(screen.getByRole('columnheader', { name: 'z' }).getAttribute('aria-sort')).toBe('ascending');
    await userEvent.click(screen.getByRole('button', { name: 'z' }));
    expect(screen.getByRole('columnheader', { name: 'z' }).getAttribute('aria-sort')).toBe('descending');
  });
});

describe('QueryPanel', () => {
  function Subject({ load }: { load: () => Promise<{ n: number; _partial?: string[]; _as_of?: string }> }) {
    const query = useQuery({ queryKey: ['subject'], queryFn: load, retry: false });
    return (
      <QueryPanel
        title="Subject"
        query={query}
        empty={(data, of) => (data.n === 0 ? <Blank of={of} title="Nothing yet" /> : undefined)}
      >
        {(data) => <span>figure {data.n}</span>}
      </QueryPanel>
    );
  }
  const show = (node: ReactNode): void =>
    void render(<QueryClientProvider client={new QueryClient()}>{node}</QueryClientProvider>);

  it('shows a skeleton, then the figures with their time', async () => {
    show(<Subject load={async () => ({ n: 3, _as_of: '2026-11-22T14:18:02Z' })} />);
    expect(screen.getByRole('status', { name: 'Loading' })).toBeTruthy();
    expect(await screen.findByText('figure 3')).toBeTruthy();
    expect(screen.getByText(/as of 14:18:02/).className).toContain('asof');
  });

  it('names the sources that gave no answer', async () => {
    show(<Subject load={async () => ({ n: 3, _partial: ['serving'] })} />);
    expect(await screen.findByText('Not measured: serving')).toBeTruthy();
  });

  it('names what is empty instead of showing zero', async () => {
    show(<Subject load={async () => ({ n: 0 })} />);
    expect(await screen.findByText('Nothing yet')).toBeTruthy();
    expect(screen.queryByText('figure 0')).toBeNull();
  });

  it('tells a failure with its request id and tries again', async () => {
    let tries = 0;
    show(
      <Subject
        load={async () => {
          if (++tries === 1)
            throw new Problem(502, { code: 'upstream_credentials', detail: 'Set tracker_token.', request_id: 'r-1' });
          return { n: 9 };
        }}
      />,
    );
    expect(await screen.findByText('r-1')).toBeTruthy();
    expect(screen.getByText(/HTTP 502 upstream_credentials/)).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByText('figure 9')).toBeTruthy();
  });

  it('offers no second try for what the role may not see', async () => {
    show(<Subject load={() => Promise.reject(new Problem(403, { code: 'role_required', detail: 'Only admins.' }))} />);
    expect(await screen.findByText('Your role does not allow this')).toBeTruthy();
    expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull();
  });
});

describe('ActDialog', () => {
  it('sends nothing before a required reason, and shows a refusal as an alert', async () => {
    const fetched = vi.fn(
      async () =>
        new Response(JSON.stringify({ status: 409, code: 'already_decided', detail: 'Decided by ada.' }), {
          status: 409,
          headers: { 'content-type': 'application/problem+json' },
        }),
    );
    vi.stubGlobal('fetch', fetched);
    const onClose = vi.fn();
    render(
      <ActDialog
        title="Reject?"
        isOpen
        onClose={onClose}
        reason={{ label: 'Reason', required: true }}
        act={(reason) => ({
          title: 'Reject',
          method: 'POST',
          path: '/x',
          body: { reason },
          confirm: 'Reject change',
          done: 'Rejected',
          topics: [],
        })}
      />,
    );
    const dialog = await screen.findByRole('alertdialog', { name: 'Reject?' });
    const confirm = within(dialog).getByRole('button', { name: 'Reject change' });
    expect(confirm.getAttribute('aria-disabled')).toBe('true');
    await userEvent.click(confirm);
    expect(fetched).not.toHaveBeenCalled();
    await userEvent.type(within(dialog).getByRole('textbox', { name: /Reason/ }), 'wrong data');
    await userEvent.click(confirm);
    expect((await within(dialog).findByRole('alert')).textContent).toContain('Decided by ada.');
    expect(onClose).not.toHaveBeenCalled();
    vi.unstubAllGlobals();
  });
});

describe('rules of the screens', () => {
  it('knows which way a metric gets better', () => {
    expect(isBetter('rmse', 10, 9)).toBe(true);
    expect(isBetter('latency_p95', 7, 8)).toBe(false);
    expect(isBetter('f1_macro', 0.6, 0.7)).toBe(true);
    expect(isBetter('r2', 0.7, 0.7)).toBeUndefined();
  });

  it('adds series up without taking a gap for zero', () => {
    const a = [
      [1, 2],
      [2, null],
      [3, 4],
    ];
    const b = [
      [1, 5],
      [2, null],
      [3, null],
    ];
    expect(combineSeries([a, b], (values) => values.reduce((x, y) => x + y, 0))).toEqual([
      [1, 7],
      [2, null],
      [3, 4],
    ]);
  });

  it('reads a patch with the line numbers of both sides', () => {
    const lines = readPatch(
      '--- a/m\n+++ b/m\n@@ -12,2 +12,3 @@ x\n same\n-old\n+new\n+more\n\\ No newline at end of file\n',
    );
    expect(lines.map((line) => [line.kind, line.number, line.text])).toEqual([
      ['hunk', undefined, '@@ -12,2 +12,3 @@ x'],
      ['same', 12, 'same'],
      ['del', 13, 'old'],
      ['add', 13, 'new'],
      ['add', 14, 'more'],
    ]);
  });

  it('keeps formulas and commas out of a spreadsheet’s reach', () => {
    expect(
      formatCSV(
        ['a', 'b'],
        [
          ['=1+1', 'x,"y"'],
          [null, -2],
        ],
      ),
    ).toBe('a,b\r\n\'=1+1,"x,""y"""\r\n,-2\r\n');
  });
});

describe('rates', () => {
  it('divides counts by the step and leaves gaps', () => {
    expect(
      perSecond([
        [0, 120],
        [60_000, null],
        [120_000, 6],
      ]),
    ).toEqual([
      [0, 2],
      [60_000, null],
      [120_000, 0.1],
    ]);
  });
});
