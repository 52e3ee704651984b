import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { alertsQuery, approvalsQuery, healthQuery, registryQuery, runsQuery, seriesQuery } from '../../api/queries';
import { Blank, explainProblem, UnmeasuredBlank } from '../../components/blank';
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
import { countUnknown, explainSilence, mapFigure, read, silentSources, type Figure, orElse } from '../../state/figure';
import { healthFrom, useWatched } from '../../state/watch';
import { useNow } from '../../state/now';
import { useRange } from '../../state/range';
import { text } from '../../text';
import { AlertRow, sortAlerts } from '../alerts/alert-row';
import { healthOf, readHealth, type RegistryRow } from '../registry/health';
import type { Run } from '../runs/timeline';
import { ActivityPanel } from './activity';
import { LoopStrip } from './loop';
import { useQueries, useQuery, type Reading } from '../../state/query';
import { Show } from '../../components/figure';

const words = text.overview;
/** Charts of the overview add up at most this many models: each is a request. */
const MOST_MODELS = 12;
const noRows: RegistryRow[] = [];

export function OverviewScreen() {
  return (
    <>
      <PageHead title={words.title} says={useSummary()} />
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
function useSummary(): Figure<string>[] {
  const registry = useQuery(registryQuery);
  const pending = useQuery(approvalsQuery('pending'));
  const now = useNow();
  const rows = readHealth(registry, (all) => all);
  const kinds = mapFigure(rows, (all) => all.map((row) => healthOf(row).kind));
  return [
    // A problem reported by one source counts, whatever the others report; "all is well" needs all of them.
    mapFigure(kinds, (all) => {
      const bad = all.filter((kind) => kind === 'critical' || kind === 'warn').length;
      if (bad > 0) return words.attention(bad, all.length);
      if (all.length === 0) return words.noModels;
      return all.includes('unknown') ? '' : words.healthy(all.length);
    }),
    countUnknown(kinds, words.unknown),
    read(pending, (list) => {
      const times = list.map((approval) => parseTime(approval.requested_at)?.getTime() ?? now.getTime());
      return list.length
        ? words.waiting(list.length, formatDuration(now.getTime() - Math.min(...times)))
        : words.nothingWaits;
    }),
  ];
}

function AlertsPanel() {
  const query = useQuery(alertsQuery());
  const watched = useWatched();
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
      empty={(data, of) =>
        data.inbox.alerts.length === 0 ? (
          <Blank of={watched(of)} icon="ok" title={words.alerts.none}>
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
  const registry = useQuery(registryQuery);
  const rows = read(registry, (view) => view.registry.rows, ['tracker']);
  const names = useMemo(
    () =>
      orElse(rows, noRows)
        .filter((row) => row.aliases?.Production !== undefined)
        .slice(0, MOST_MODELS)
        .map((row) => row.name),
    [registry.data],
  );
  const requests = useQueries(names.map((name) => seriesQuery(name, 'requests', range, 96)));
  const latency = useQueries(names.map((name) => seriesQuery(name, 'latency_p95', range, 96)));
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
        known={rows}
        area
        label={words.requests.label}
      />
      <SeriesPanel
        title={words.latency.title}
        note={words.latency.note}
        unit="ms, p95"
        points={slowest}
        queries={latency}
        known={rows}
        label={words.latency.label}
      />
    </div>
  );
}

function pointsOf(queries: readonly Reading<{ points: (number | null)[][] }>[]): (number | null)[][][] {
  return queries.flatMap((query) => (query.data ? [query.data.points] : []));
}

interface SeriesPanelProps {
  title: string;
  note: string;
  unit: string;
  points: Point[];
  queries: readonly Reading<{ points: (number | null)[][]; _as_of?: string; _partial?: string[] }>[];
  known: Figure<unknown>;
  area?: boolean;
  label: (last: string) => string;
}

function SeriesPanel({ title, note, unit, points, queries, known, area, label }: SeriesPanelProps) {
  const loading = known.kind === 'loading' || (queries.length > 0 && queries.every((query) => query.isPending));
  const failed = queries.find((query) => query.isError);
  const silent = queries.find((query) => silentSources(query.data).length > 0)?.data;
  const away =
    known.kind === 'failed' || known.kind === 'unmeasured'
      ? known.why
      : failed
        ? explainProblem(failed.error).title
        : silent && explainSilence(silent, silentSources(silent));
  const asOf = queries.map((query) => parseTime(query.data?._as_of)).filter((at): at is Date => at !== undefined);
  const partial = [...new Set(queries.flatMap((query) => silentSources(query.data)))];
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
      ) : away !== undefined && last === undefined ? (
        <UnmeasuredBlank why={away} />
      ) : (
        <Chart
          label={label(last === undefined || last === null ? text.common.notMeasured : formatRate(last))}
          points={points}
          unit={unit}
          format={formatRate}
          kind={area ? 'area' : 'line'}
          fromZero
          height={168}
        />
      )}
    </Panel>
  );
}

function RunningPanel() {
  const query = useQuery(runsQuery());
  const activeOf = ({ items }: { items: Run[] }): Run[] =>
    items.filter((run) => activeStates.has(run.state_type.toUpperCase()));
  return (
    <QueryPanel
      title={words.running.title}
      query={query}
      flush
      hideAsOf
      note={(data) => activeOf(data).length || undefined}
      actions={
        <Link className="small link" to="/runs">
          {words.running.timeline}
        </Link>
      }
      empty={(data, of) =>
        activeOf(data).length === 0 ? (
          <Blank of={of} icon="runs" title={words.running.none}>
            {words.running.noneHint}
          </Blank>
        ) : undefined
      }
    >
      {(data) => (
        <ul className="list">
          {activeOf(data)
            .slice(0, 5)
            .map((run) => {
              const started = parseTime(run.started_at);
              return (
                <li key={run.flow_run_id}>
                  <Link to="/runs/$id" params={{ id: run.flow_run_id }}>
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
      {(data, of) => (
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
                    <Show figure={healthFrom(of, key, service.status)}>
                      {() => (
                        <State kind={serviceState[service.status] ?? 'unknown'}>
                          {words.serviceStates[service.status]}
                        </State>
                      )}
                    </Show>
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
