import { useQueries, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { alertsQuery, approvalsQuery, healthQuery, registryQuery, runsQuery, seriesQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { Chart, type Point } from '../../components/chart';
import { Icon } from '../../components/icon';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import { severityOf, State, type StateKind } from '../../components/state';
import { Age } from '../../components/time';
import { formatRate, shortenHash } from '../../format/numbers';
import { formatDuration, parseTime } from '../../format/time';
import { activeStates } from '../../shell/counts';
import { useNow } from '../../state/now';
import { useRange } from '../../state/range';
import { text } from '../../text';
import { AlertRow, sortAlerts } from '../alerts/alert-row';
import { healthOf } from '../registry/health';
import { ActivityPanel } from './activity';
import { LoopStrip } from './loop';

const words = text.overview;
/** Charts of the overview add up at most this many models: each is a request. */
const MOST_MODELS = 12;

export function OverviewScreen() {
  return (
    <>
      <PageHead title={words.title} sub={<Summary />} />
      <div className="stack">
        <LoopStrip />
        <div className="grid cols-main">
          <div className="stack">
            <AlertsPanel />
            <TrafficCharts />
            <div className="grid cols-2 stretch">
              <RunningPanel />
              <ServicesPanel />
            </div>
          </div>
          <ActivityPanel />
        </div>
      </div>
    </>
  );
}

/** Is something wrong, and what waits for me: in a sentence each. */
function Summary() {
  const rows = useQuery(registryQuery).data?.registry.rows;
  const pending = useQuery(approvalsQuery('pending')).data;
  const now = useNow();
  if (!rows && !pending) return <span className="faint">{text.common.loading}</span>;
  const sentences: string[] = [];
  if (rows) {
    const bad = rows.filter((row) => ['critical', 'warn'].includes(healthOf(row).kind)).length;
    const well = rows.filter((row) => healthOf(row).kind === 'ok').length;
    if (bad > 0) sentences.push(words.attention(bad, rows.length));
    else if (rows.length > 0 && well === rows.length) sentences.push(words.healthy(rows.length));
  }
  if (pending) {
    const oldest = Math.min(...pending.map((approval) => parseTime(approval.requested_at)?.getTime() ?? now.getTime()));
    sentences.push(
      pending.length ? words.waiting(pending.length, formatDuration(now.getTime() - oldest)) : words.nothingWaits,
    );
  }
  return <>{sentences.join(' ')}</>;
}

function AlertsPanel() {
  const query = useQuery(alertsQuery());
  return (
    <QueryPanel
      title={words.alerts.title}
      query={query}
      flush
      hideAsOf
      note={(data) => data.inbox.count || undefined}
      actions={
        <Link className="small link" to="/alerts">
          {words.alerts.all}
        </Link>
      }
      empty={(data) =>
        data.inbox.alerts.length === 0 ? (
          <Blank
            icon={data._partial?.includes('alerts') ? 'unknown' : 'ok'}
            title={data._partial?.includes('alerts') ? text.alerts.away : words.alerts.none}
          >
            {words.alerts.noneHint}
          </Blank>
        ) : undefined
      }
    >
      {(data) => (
        <ul className="list">
          {sortAlerts(data.inbox.alerts)
            .slice(0, 5)
            .map((alert) => (
              <AlertRow key={alert.id} alert={alert} />
            ))}
        </ul>
      )}
    </QueryPanel>
  );
}

/** Combines several series point by point; a point is a gap unless some model has it. */
export function combineSeries(
  series: readonly (readonly (readonly (number | null)[])[])[],
  join: (values: number[]) => number,
): Point[] {
  const longest = series.reduce<readonly (readonly (number | null)[])[]>((a, b) => (b.length > a.length ? b : a), []);
  return longest.map((point, i) => {
    // Answers of one moment may begin a second apart: the position counts, from the end.
    const values = series
      .map((each) => each[each.length - longest.length + i]?.[1])
      .filter((value): value is number => typeof value === 'number');
    return [point[0] ?? 0, values.length ? join(values) : null];
  });
}

/** Turns counts per step into a rate; the step is the distance of two points. */
export function perSecond(counts: readonly Point[]): Point[] {
  const [first, second] = counts;
  const seconds = first && second ? (second[0] - first[0]) / 1000 : 0;
  return counts.map(([at, count]) => [at, count === null || seconds <= 0 ? null : count / seconds]);
}

function TrafficCharts() {
  const range = useRange();
  const rows = useQuery(registryQuery).data?.registry.rows;
  const names = useMemo(
    () =>
      (rows ?? [])
        .filter((row) => row.aliases?.Production !== undefined)
        .slice(0, MOST_MODELS)
        .map((row) => row.name),
    [rows],
  );
  const requests = useQueries({ queries: names.map((name) => seriesQuery(name, 'requests', range, 96)) });
  const latency = useQueries({ queries: names.map((name) => seriesQuery(name, 'latency_p95', range, 96)) });
  const counts = combineSeries(pointsOf(requests), (values) => values.reduce((a, b) => a + b, 0));
  const total = perSecond(counts);
  const slowest = combineSeries(pointsOf(latency), (values) => Math.max(...values));
  return (
    <div className="grid cols-2 stretch">
      <SeriesPanel
        title={words.requests.title}
        note={words.requests.note}
        unit="req/s"
        points={total}
        queries={requests}
        known={rows !== undefined}
        area
        label={words.requests.label}
      />
      <SeriesPanel
        title={words.latency.title}
        note={words.latency.note}
        unit="ms, p95"
        points={slowest}
        queries={latency}
        known={rows !== undefined}
        label={words.latency.label}
        noPoints={text.common.chart.noLatency}
      />
    </div>
  );
}

function pointsOf(queries: readonly UseQueryResult<{ points: (number | null)[][] }>[]): (number | null)[][][] {
  return queries.flatMap((query) => (query.data ? [query.data.points] : []));
}

interface SeriesPanelProps {
  title: string;
  note: string;
  unit: string;
  points: Point[];
  queries: readonly UseQueryResult<{ points: (number | null)[][]; _as_of?: string; _partial?: string[] }>[];
  known: boolean;
  area?: boolean;
  label: (last: string) => string;
  noPoints?: string;
}

function SeriesPanel({ title, note, unit, points, queries, known, area, label, noPoints }: SeriesPanelProps) {
  const loading = !known || (queries.length > 0 && queries.every((query) => query.isPending));
  const asOf = queries.map((query) => parseTime(query.data?._as_of)).filter((at): at is Date => at !== undefined);
  const partial = [...new Set(queries.flatMap((query) => query.data?._partial ?? []))];
  const last = points.findLast(([, value]) => value !== null)?.[1];
  return (
    <Panel
      title={title}
      note={note}
      partial={partial}
      asOf={asOf.length ? new Date(Math.min(...asOf.map((at) => at.getTime()))) : undefined}
    >
      {loading ? (
        <Skeleton shape="chart" />
      ) : (
        <Chart
          label={label(last === undefined || last === null ? text.common.notMeasured : formatRate(last))}
          points={points}
          unit={unit}
          format={formatRate}
          kind={area ? 'area' : 'line'}
          fromZero
          height={168}
          noPoints={noPoints}
        />
      )}
    </Panel>
  );
}

function RunningPanel() {
  const query = useQuery(runsQuery());
  const active = query.data?.items.filter((run) => activeStates.has(run.state_type.toUpperCase())) ?? [];
  return (
    <QueryPanel
      title={words.running.title}
      query={query}
      flush
      hideAsOf
      note={active.length || undefined}
      actions={
        <Link className="small link" to="/runs">
          {words.running.timeline}
        </Link>
      }
      empty={() =>
        active.length === 0 ? (
          <Blank icon="runs" title={words.running.none}>
            {words.running.noneHint}
          </Blank>
        ) : undefined
      }
    >
      {() => (
        <ul className="list">
          {active.slice(0, 5).map((run) => {
            const started = parseTime(run.started_at);
            return (
              <li key={run.flow_run_id}>
                <Link to="/runs" search={{ id: run.flow_run_id }}>
                  <Icon name={started ? 'running' : 'unknown'} className={started ? 'st-running' : 'st-unknown'} />
                  <span className="grow">
                    <span className="row">
                      <span className="ttl">{run.model_id}</span>
                      <span className="muted trunc small">
                        {run.dataset_name}, {shortenHash(run.flow_run_id)}
                      </span>
                      <span className="small muted nowrap end">
                        {started ? <Age since={started} /> : words.running.queued}
                      </span>
                    </span>
                  </span>
                </Link>
              </li>
            );
          })}
        </ul>
      )}
    </QueryPanel>
  );
}

export const serviceState: Record<string, StateKind> = {
  ok: 'ok',
  degraded: 'warn',
  down: 'critical',
  unknown: 'unknown',
};

function ServicesPanel() {
  const query = useQuery(healthQuery);
  return (
    <QueryPanel
      title={words.services.title}
      query={query}
      flush
      hideAsOf
      note={(data) => {
        const all = Object.values(data.services);
        return words.services.note(all.filter((service) => service.status === 'ok').length, all.length);
      }}
      actions={
        <Link className="small link" to="/health">
          {words.services.all}
        </Link>
      }
    >
      {(data) => (
        <table className="table">
          <thead className="vh">
            <tr>
              <th scope="col">{words.services.state}</th>
              <th scope="col">{words.services.service}</th>
              <th scope="col">{words.services.detail}</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(data.services)
              .sort(
                ([, a], [, b]) =>
                  severityOf[serviceState[a.status] ?? 'unknown'] - severityOf[serviceState[b.status] ?? 'unknown'],
              )
              .map(([key, service]) => (
                <tr key={key}>
                  <td>
                    <State kind={serviceState[service.status] ?? 'unknown'}>
                      {words.serviceStates[service.status]}
                    </State>
                  </td>
                  <td className="med">{words.serviceNames[key] ?? key}</td>
                  <td className="num muted fill-cell" title={service.note}>
                    {service.note}
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
    </QueryPanel>
  );
}
