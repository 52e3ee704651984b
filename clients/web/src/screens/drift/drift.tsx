import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import type { components } from '../../api/gen/inference';
import { Problem } from '../../api/problem';
import { autoRetrainQuery, driftQuery, inputDriftQuery, type InputDrift } from '../../api/queries';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { FilterBar, TextFilter } from '../../components/filters';
import { KeyHints } from '../../components/kbd';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { Segments } from '../../components/seg';
import { Sparkline } from '../../components/sparkline';
import { Facts } from '../../components/stat';
import { Measured, NotMeasured, severityOf, State, type StateKind } from '../../components/state';
import { DataTable, type Column } from '../../components/table';
import { RelativeTime } from '../../components/time';
import { formatCount, formatScore, formatZ } from '../../format/numbers';
import { useMay } from '../../state/auth';
import { text } from '../../text';
import { AutoRetrainDialog, BaselineDialog, ResetDialog, TriggerDialog, useAutoRetrain } from './acts';
import { DriftChart, MeanChart } from './series';

export type DriftRow = components['schemas']['DriftStatus'];

const route = getRouteApi('/shell/drift');
const words = text.drift;
export const driftKinds: Record<string, StateKind> = {
  OK: 'ok',
  WARNING: 'warn',
  CRITICAL: 'critical',
  CORRUPT: 'critical',
  NO_BASELINE: 'unknown',
  INSUFFICIENT: 'unknown',
};

const keyOf = (row: DriftRow): string => `${row.model}/${row.alias}`;

/** Why a copy is judged as it is, in words. */
export function driftReason(row: DriftRow): string {
  if (row.overall === 'OK') return '';
  return (
    row.reason ??
    words.reasons[row.overall] ??
    (row.decided_by ? words.decidedBy(words.measures[row.decided_by] ?? row.decided_by) : '')
  );
}

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
  const all = query.data ?? [];
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
        sub={query.data && words.sub(drifting, all.length, unmeasured)}
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
              note={text.common.rows(rows.length, all.length)}
              footer={
                <KeyHints
                  hints={[
                    ['j k', text.common.hints.move],
                    ['Enter', text.common.hints.open],
                    ['/', text.common.hints.filter],
                  ]}
                />
              }
              empty={(data) =>
                data.length === 0 ? (
                  <Blank icon="drift" title={words.empty}>
                    {words.emptyHint}
                  </Blank>
                ) : undefined
              }
            >
              {() => (
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
                    empty={<Blank icon="filter" title={text.common.noMatch} />}
                  />
                </>
              )}
            </QueryPanel>
            {current && <DriftDetail key={keyOf(current)} row={current} />}
          </>
        )}
      </div>
      <TriggerDialog isOpen={checking} onClose={() => setChecking(false)} />
    </>
  );
}

type AutoRow = { model: string; enabled: boolean; min_z: number; gate: 'approval' | 'direct'; gate_forced: boolean };

function columnsOf(autos: readonly AutoRow[] | undefined): Column<DriftRow>[] {
  const names = words.columns;
  const measure = (
    key: string,
    header: string,
    name: string,
    pick: 'value' | 'p_value' = 'value',
  ): Column<DriftRow> => ({
    key,
    header,
    numeric: true,
    className: 'drop-m',
    sort: (row) => row.measures[name]?.[pick],
    cell: (row) => {
      const status = row.measures[name]?.status;
      return (
        <Measured value={row.measures[name]?.[pick]}>
          {(value) => (
            <span
              className={status === 'WARNING' || status === 'CRITICAL' ? `st-${driftKinds[status]} strong` : undefined}
            >
              {formatScore(value)}
            </span>
          )}
        </Measured>
      );
    },
  });
  return [
    {
      key: 'status',
      header: names.status,
      isHealth: true,
      sort: (row) => severityOf[driftKinds[row.overall] ?? 'unknown'] * 1e6 - (row.z_score ?? 0),
      cell: (row) => (
        <>
          <State kind={driftKinds[row.overall] ?? 'unknown'}>{words.statuses[row.overall] ?? row.overall}</State>
          {driftReason(row) && (
            <span className="why" title={driftReason(row)}>
              {driftReason(row)}
            </span>
          )}
        </>
      ),
    },
    {
      key: 'model',
      header: names.model,
      isName: true,
      sort: (row) => row.model,
      cell: (row) => (
        <>
          <Link to="/models/$name" params={{ name: row.model }} search={{ tab: 'drift' }}>
            {row.model}
          </Link>
          <span className="why sub-d">
            {row.alias} v{row.version}
          </span>
        </>
      ),
    },
    {
      key: 'z',
      header: names.z,
      numeric: true,
      sort: (row) => row.z_score,
      cell: (row) => (
        <Measured value={row.z_score}>
          {(z) => (
            <span className={z >= 2 ? `st-${z >= 3 ? 'critical' : 'warn'} strong` : undefined}>{formatZ(z)}</span>
          )}
        </Measured>
      ),
    },
    {
      key: 'trend',
      header: names.trend,
      drop: 'phone',
      className: 'drop-m',
      cell: (row) => (
        <Sparkline
          label={words.recent(row.model)}
          state={driftKinds[row.overall]}
          points={row.recent.map((value) => (typeof value === 'number' ? value : null))}
        />
      ),
    },
    {
      key: 'live',
      header: names.live,
      numeric: true,
      sort: (row) => row.live_mean,
      cell: (row) => <Measured value={row.live_mean}>{(value) => formatScore(value)}</Measured>,
    },
    {
      key: 'baseline',
      header: names.baseline,
      numeric: true,
      sort: (row) => row.baseline_mean,
      cell: (row) => <Measured value={row.baseline_mean}>{(value) => formatScore(value)}</Measured>,
    },
    measure('psi', names.psi, 'psi'),
    measure('w1', names.w1, 'wasserstein'),
    {
      key: 'n',
      header: names.n,
      numeric: true,
      sort: (row) => row.n_snapshots,
      cell: (row) => formatCount(row.n_snapshots),
    },
    {
      key: 'auto',
      header: names.auto,
      className: 'drop-m',
      cell: (row) => {
        const auto = autos?.find((each) => each.model.toLowerCase() === row.model.toLowerCase());
        return (
          <span className={auto?.enabled ? 'muted' : 'faint'}>
            {auto?.enabled ? words.auto.short(auto.min_z.toFixed(1)) : words.auto.off}
          </span>
        );
      },
    },
  ];
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

/** The measures of one copy, its auto-retrain setting, and what can be done about it. */
export function DriftFacts({ row }: { row: DriftRow }) {
  const mayManage = useMay('drift.manage');
  const auto = useAutoRetrain(row.model);
  const [asked, setAsked] = useState<'auto' | 'baseline' | 'reset' | 'trigger'>();
  const close = (): void => setAsked(undefined);
  const refusal = mayManage ? undefined : words.noRole;
  const facts = words.facts;
  const spread = (mean: number | null | undefined, std: number | null | undefined) =>
    mean === null || mean === undefined ? (
      <NotMeasured />
    ) : std === null || std === undefined ? (
      formatScore(mean)
    ) : (
      words.spread(formatScore(mean), formatScore(std))
    );
  return (
    <div className="stack">
      <Panel title={facts.title} note={`${row.model} ${row.alias}`}>
        <table className="table plain">
          <tbody>
            {Object.entries(row.measures).map(([name, measure]) => (
              <tr key={name}>
                <td>
                  <State kind={driftKinds[measure.status] ?? 'unknown'}>{words.measures[name] ?? name}</State>
                </td>
                <td className="num">
                  <Measured value={measure.p_value ?? measure.value}>
                    {(value) =>
                      `${measure.p_value !== undefined && measure.p_value !== null ? 'p ' : ''}${formatScore(value)}`
                    }
                  </Measured>
                </td>
              </tr>
            ))}
            {Object.keys(row.measures).length === 0 && (
              <tr>
                <td>
                  <NotMeasured>{facts.none}</NotMeasured>
                </td>
              </tr>
            )}
          </tbody>
        </table>
        <div className="mt">
          <Facts
            facts={[
              [facts.live, spread(row.live_mean, row.live_std)],
              [facts.baseline, spread(row.baseline_mean, row.baseline_std)],
              [facts.snapshots, formatCount(row.n_snapshots)],
              [facts.set, row.baseline_set_at ? <RelativeTime at={row.baseline_set_at} /> : text.common.never],
            ]}
          />
        </div>
        <div className="row wrap mt">
          <Button disabledReason={refusal} onPress={() => setAsked('baseline')}>
            {words.baseline.act}
          </Button>
          <Button kind="danger" disabledReason={refusal} onPress={() => setAsked('reset')}>
            {words.reset.act}
          </Button>
        </div>
      </Panel>
      <Panel
        title={words.auto.title}
        actions={
          <Button disabledReason={refusal} onPress={() => setAsked('auto')}>
            {words.auto.edit}
          </Button>
        }
      >
        <p className="muted">
          {auto
            ? auto.enabled
              ? words.auto.on(auto.min_z.toFixed(1), words.auto.gates[auto.gate_forced ? 'approval' : auto.gate])
              : words.auto.off
            : words.auto.none}
        </p>
        {auto?.last_triggered_at && (
          <p className="small faint">
            {words.trigger.outcomes[auto.last_outcome ?? ''] ?? auto.last_outcome},{' '}
            <RelativeTime at={auto.last_triggered_at} />
          </p>
        )}
        {auto?.enabled && (
          <div className="row mt">
            <Button icon="retry" disabledReason={refusal} onPress={() => setAsked('trigger')}>
              {words.check}
            </Button>
          </div>
        )}
      </Panel>
      <AutoRetrainDialog model={row.model} isOpen={asked === 'auto'} onClose={close} />
      <TriggerDialog model={row.model} isOpen={asked === 'trigger'} onClose={close} />
      <BaselineDialog
        model={row.model}
        alias={row.alias}
        snapshots={row.n_snapshots}
        isOpen={asked === 'baseline'}
        onClose={close}
      />
      <ResetDialog model={row.model} alias={row.alias} isOpen={asked === 'reset'} onClose={close} />
    </div>
  );
}

function InputDriftPanel() {
  const query = useQuery(inputDriftQuery);
  if (query.error instanceof Problem && query.error.status === 404)
    return (
      <Panel title={words.of.inputs} flush>
        <Blank icon="unknown" title={words.inputsOff}>
          {words.inputsOffHint}
        </Blank>
      </Panel>
    );
  const names = words.columns;
  const columns: Column<InputDrift>[] = [
    {
      key: 'status',
      header: names.status,
      isHealth: true,
      sort: (row) => severityOf[driftKinds[row.overall ?? row.status] ?? 'unknown'],
      cell: (row) => (
        <State kind={driftKinds[row.overall ?? row.status] ?? 'unknown'}>
          {words.statuses[row.overall ?? row.status] ?? row.status}
        </State>
      ),
    },
    {
      key: 'model',
      header: names.model,
      isName: true,
      sort: (row) => row.model,
      cell: (row) => (
        <Link to="/models/$name" params={{ name: row.model }}>
          {row.model}
        </Link>
      ),
    },
    {
      key: 'z',
      header: names.max,
      numeric: true,
      sort: (row) => row.max_z ?? row.z_score,
      cell: (row) => <Measured value={row.max_z ?? row.z_score}>{(z) => formatZ(z)}</Measured>,
    },
    {
      key: 'n',
      header: names.n,
      numeric: true,
      sort: (row) => row.n_snapshots,
      cell: (row) => <Measured value={row.n_snapshots}>{(n) => formatCount(n)}</Measured>,
    },
  ];
  return (
    <QueryPanel
      title={words.of.inputs}
      query={query}
      skeleton="table"
      flush
      empty={(data) =>
        data.length === 0 ? (
          <Blank icon="drift" title={words.empty}>
            {words.emptyHint}
          </Blank>
        ) : undefined
      }
    >
      {(data) => (
        <DataTable
          label={words.of.inputs}
          rows={data}
          columns={columns}
          rowKey={(row) => `${row.model}/${row.alias ?? ''}`}
          rowName={(row) => row.model}
          sort="status"
        />
      )}
    </QueryPanel>
  );
}
