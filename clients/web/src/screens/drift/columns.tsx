import { Link } from '@tanstack/react-router';
import type { components } from '../../api/gen/inference';
import { Sparkline } from '../../components/sparkline';
import { Impossible, Measured, severityOf, State, type StateKind } from '../../components/state';
import type { Column } from '../../components/table';
import { formatCount, formatScore, formatZ } from '../../format/numbers';
import { text } from '../../text';

export type DriftRow = components['schemas']['DriftStatus'];

const words = text.drift;
export const driftKinds: Record<string, StateKind> = {
  OK: 'ok',
  WARNING: 'warn',
  CRITICAL: 'critical',
  CORRUPT: 'critical',
  NO_BASELINE: 'unknown',
  INSUFFICIENT: 'unknown',
};

export const keyOf = (row: DriftRow): string => `${row.model}/${row.alias}`;

/** Explains why a copy is judged as it is. */
export function driftReason(row: DriftRow): string {
  if (row.overall === 'OK') return '';
  return (
    row.reason ??
    words.reasons[row.overall] ??
    (row.decided_by ? words.decidedBy(words.measures[row.decided_by] ?? row.decided_by) : '')
  );
}

type AutoRow = { model: string; enabled: boolean; min_z: number; gate: 'approval' | 'direct'; gate_forced: boolean };

export function columnsOf(autos: readonly AutoRow[] | undefined): Column<DriftRow>[] {
  const names = words.columns;
  const measure = (
    key: string,
    header: string,
    name: string,
    pick: 'value' | 'p_value' = 'value',
  ): Column<DriftRow> => ({
    key,
    header,
    hint: words.hints[key as 'psi' | 'w1'],
    numeric: true,
    className: 'drop-m',
    sort: (row) => row.measures[name]?.[pick],
    cell: (row) => {
      const status = row.measures[name]?.status;
      // Without a baseline there is nothing to compare with: z shows that once, for all measures.
      if (row.overall === 'NO_BASELINE') return <Impossible />;
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
      hint: words.hints.z,
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
      hint: words.hints.live,
      numeric: true,
      sort: (row) => row.live_mean,
      cell: (row) => <Measured value={row.live_mean}>{(value) => formatScore(value)}</Measured>,
    },
    {
      key: 'baseline',
      header: names.baseline,
      hint: words.hints.baseline,
      numeric: true,
      sort: (row) => row.baseline_mean,
      cell: (row) =>
        row.overall === 'NO_BASELINE' ? (
          <Impossible />
        ) : (
          <Measured value={row.baseline_mean}>{(value) => formatScore(value)}</Measured>
        ),
    },
    measure('psi', names.psi, 'psi'),
    measure('w1', names.w1, 'wasserstein'),
    {
      key: 'n',
      header: names.n,
      hint: words.hints.n,
      numeric: true,
      sort: (row) => row.n_snapshots,
      cell: (row) => formatCount(row.n_snapshots),
    },
    {
      key: 'auto',
      header: names.auto,
      hint: words.hints.auto,
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
