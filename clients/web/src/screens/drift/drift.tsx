import { getRouteApi } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { autoRetrainQuery, driftQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { FilterBar, TextFilter } from '../../components/filters';
import { KeyHints } from '../../components/kbd';
import { PageHead } from '../../components/page';
import { QueryPanel } from '../../components/panel';
import { Segments } from '../../components/seg';
import { severityOf } from '../../components/state';
import { DataTable } from '../../components/table';
import { useMay } from '../../state/auth';
import { read, readLast, orElse } from '../../state/figure';
import { text } from '../../text';
import { TriggerDialog } from './acts';
import { columnsOf, driftKinds, driftReason, keyOf, type DriftRow } from './columns';
import { DriftFacts } from './facts';
import { InputDriftPanel } from './inputs';
import { DriftChart, MeanChart } from './series';
import { useQuery } from '../../state/query';
import { EvidenceProvider } from '../../components/evidence';

const route = getRouteApi('/shell/drift');
const words = text.drift;

export function DriftScreen() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(driftQuery());
  const autos = useQuery(autoRetrainQuery).data?.items;
  const mayManage = useMay('drift.manage');
  const [checking, setChecking] = useState(false);
  const { of = 'predictions', q = '', model, sort = 'status' } = search;
  const set = (change: Partial<typeof search>): void =>
    void navigate({ search: (prev) => ({ ...prev, ...change }), replace: true, resetScroll: false });
  const all = orElse(readLast(query), []);
  const needle = q.trim().toLowerCase();
  const rows = all.filter(
    (row) => needle === '' || `${row.model} ${row.alias} ${driftReason(row)}`.toLowerCase().includes(needle),
  );
  const worst = [...all].sort(
    (a, b) =>
      severityOf[driftKinds[a.overall] ?? 'unknown'] - severityOf[driftKinds[b.overall] ?? 'unknown'] ||
      (b.z_score ?? 0) - (a.z_score ?? 0),
  )[0];
  const current = all.find((row) => keyOf(row) === model || row.model === model) ?? worst;
  const columns = useMemo(() => columnsOf(autos), [autos]);
  const drifting = all.filter((row) => ['warn', 'critical'].includes(driftKinds[row.overall] ?? '')).length;
  const unmeasured = all.filter((row) => driftKinds[row.overall] === 'unknown').length;
  return (
    <>
      <PageHead
        title={words.title}
        says={[read(query, () => words.sub(drifting, all.length, unmeasured))]}
        actions={
          <>
            <Segments
              label={words.of.label}
              value={of}
              onChange={(value) => set({ of: value === 'predictions' ? undefined : value })}
              segments={[
                { value: 'predictions', label: words.of.predictions },
                { value: 'inputs', label: words.of.inputs },
              ]}
            />
            {mayManage && (
              <Button icon="retry" onPress={() => setChecking(true)}>
                {words.check}
              </Button>
            )}
          </>
        }
      />
      <div className="stack">
        {of === 'inputs' ? (
          <InputDriftPanel />
        ) : (
          <>
            <QueryPanel
              title={words.table}
              query={query}
              skeleton="table"
              flush
              untitled
              note={() => text.common.rows(rows.length, all.length)}
              footer={
                <KeyHints
                  hints={[
                    ['j k', text.common.hints.move],
                    ['Enter', text.common.hints.open],
                    ['/', text.common.hints.filter],
                  ]}
                />
              }
              empty={(data, of) =>
                data.length === 0 ? (
                  <Blank of={of} icon="drift" title={words.empty}>
                    {words.emptyHint}
                  </Blank>
                ) : undefined
              }
            >
              {(_, of) => (
                <>
                  <FilterBar>
                    <TextFilter label={words.filter} value={q} onChange={(value) => set({ q: value || undefined })} />
                  </FilterBar>
                  <DataTable
                    label={words.table}
                    rows={rows}
                    columns={columns}
                    rowKey={keyOf}
                    rowName={keyOf}
                    sort={sort}
                    onSort={(value) => set({ sort: value })}
                    current={current && keyOf(current)}
                    onOpen={(row) => set({ model: keyOf(row) })}
                    empty={<Blank of={of} icon="filter" title={text.common.noMatch} />}
                  />
                </>
              )}
            </QueryPanel>
            {current && (
              <EvidenceProvider value={readLast(query)}>
                <DriftDetail key={keyOf(current)} row={current} />
              </EvidenceProvider>
            )}
          </>
        )}
      </div>
      <TriggerDialog isOpen={checking} onClose={() => setChecking(false)} />
    </>
  );
}

function DriftDetail({ row }: { row: DriftRow }) {
  return (
    <div className="grid cols-main r-wide">
      <div className="stack">
        <DriftChart model={row.model} />
        <MeanChart model={row.model} />
      </div>
      <DriftFacts row={row} />
    </div>
  );
}
