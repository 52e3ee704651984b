import { Link } from '@tanstack/react-router';
import type { components } from '../../api/gen/dashboard';
import { flagsQuery, healthQuery, selfQuery } from '../../api/queries';
import { Button } from '../../components/button';
import { PageHead } from '../../components/page';
import { QueryPanel } from '../../components/panel';
import { Figures } from '../../components/stat';
import { Impossible, NotMeasured, severityOf, State, type StateKind } from '../../components/state';
import { DataTable, type Column } from '../../components/table';
import { formatCount, formatRate } from '../../format/numbers';
import { mapFigure, type Figure, read } from '../../state/figure';
import { openTool } from '../../state/tools';
import { text } from '../../text';
import { healthFrom } from '../../state/watch';
import { useQuery } from '../../state/query';
import { useEvidence } from '../../components/evidence';
import { Show } from '../../components/figure';

const words = text.health;

type Service = components['schemas']['ServiceHealth'] & { key: string };
type Dependency = components['schemas']['Dependency'];

const kinds: Record<string, StateKind> = { ok: 'ok', degraded: 'warn', down: 'critical', unknown: 'unknown' };
/** Tools that have pages of their own, reachable through the proxy's second origin. */
const tools = new Set(['tracker', 'orchestrator', 'serving', 'metrics_store', 'dashboards']);

function HealthState({ row }: { row: Service }) {
  const of = healthFrom(useEvidence(), row.key, row.status);
  return (
    <Show figure={of}>{() => <State kind={kinds[row.status] ?? 'unknown'}>{words.states[row.status]}</State>}</Show>
  );
}

function useServiceColumns(): Column<Service>[] {
  const proxyOff = useQuery(flagsQuery).data?.flags.toolProxy === false;
  const w = words.services;
  return [
    {
      key: 'state',
      header: w.state,
      isHealth: true,
      sort: (row) => severityOf[kinds[row.status] ?? 'unknown'],
      cell: (row) => (
        <>
          <HealthState row={row} />
          {row.note && <span className="why">{words.notes[row.note] ?? row.note}</span>}
        </>
      ),
    },
    {
      key: 'service',
      header: w.service,
      isName: true,
      sort: (row) => words.names[row.key] ?? row.key,
      cell: (row) => <span className="med">{words.names[row.key] ?? row.key}</span>,
    },
    {
      key: 'what',
      header: w.what,
      drop: 'medium',
      className: 'hide-s',
      cell: (row) => <span className="muted wrap-words">{words.purposes[row.key]}</span>,
    },
    {
      key: 'address',
      header: w.address,
      className: 'full',
      cell: (row) =>
        row.url ? (
          <code className="small wrap-any">{row.url}</code>
        ) : row.key === 'scheduler' || row.key === 'bus_sim' ? (
          <Impossible />
        ) : (
          <Link className="link small" to="/config">
            {w.noAddress}
          </Link>
        ),
    },
    {
      key: 'act',
      header: w.act,
      quietHeader: true,
      className: 'acts-cell',
      cell: (row) =>
        tools.has(row.key) && row.url ? (
          <Button
            small
            icon="open"
            label={w.open(words.names[row.key] ?? row.key)}
            disabledReason={proxyOff ? w.proxyOff : undefined}
            onPress={() => void openTool(row.key)}
          >
            {w.act}
          </Button>
        ) : null,
    },
  ];
}

const dependencyColumns: Column<Dependency>[] = [
  {
    key: 'state',
    header: words.self.state,
    isHealth: true,
    sort: (row) => (row.status === 'down' ? 0 : 1),
    cell: (row) => (
      <>
        <State kind={row.status === 'up' ? 'ok' : 'critical'}>{words.self[row.status]}</State>
        {row.status === 'down' && <span className="why">{words.self.consequences[row.name]}</span>}
      </>
    ),
  },
  {
    key: 'name',
    header: words.self.dependency,
    isName: true,
    sort: (row) => row.name,
    cell: (row) => <span className="med">{words.self.names[row.name] ?? row.name}</span>,
  },
  {
    key: 'without',
    header: words.self.consequence,
    drop: 'phone',
    cell: (row) => <span className="muted">{words.self.consequences[row.name]}</span>,
  },
  {
    key: 'latency',
    header: words.self.latency,
    numeric: true,
    sort: (row) => row.latencyMs,
    cell: (row) => (row.latencyMs === undefined ? <NotMeasured /> : formatRate(row.latencyMs)),
  },
];

export function HealthScreen() {
  const query = useQuery(healthQuery);
  const self = useQuery(selfQuery);
  const columns = useServiceColumns();
  const services: Service[] = Object.entries(query.data?.services ?? {}).map(([key, service]) => ({ key, ...service }));
  const known = services.filter((service) => service.status !== 'unknown');
  const bad = known.filter((service) => service.status !== 'ok').length;
  const w = words.services;
  return (
    <>
      <PageHead
        title={words.title}
        says={[
          read(query, () =>
            known.length === 0 ? words.nothing : bad ? words.trouble(bad, known.length) : words.allOk(known.length),
          ),
        ]}
      />
      <div className="stack">
        <QueryPanel
          title={w.title}
          query={query}
          flush
          skeleton="table"
          note={() => w.note(known.length - bad, known.length)}
          footer={(data) =>
            data.unmeasured.length > 0 ? (
              <span className="faint">
                {w.unmeasured(data.unmeasured.map((key) => words.names[key] ?? key).join(', '))}{' '}
                <Link className="link" to="/config">
                  {w.toConfig}
                </Link>
              </span>
            ) : (
              <span className="faint">{w.probe}</span>
            )
          }
        >
          {() => (
            <DataTable
              label={w.title}
              rows={services}
              columns={columns}
              rowKey={(row) => row.key}
              rowName={(row) => words.names[row.key] ?? row.key}
              sort="state"
            />
          )}
        </QueryPanel>
        <QueryPanel title={words.self.title} query={self} skeleton="figures">
          {({ metrics }, of) => {
            const figure = (value: string | null): Figure<string> => mapFigure(of, () => value);
            const { p50, p95, count } = metrics.latencyMs;
            const s = words.self;
            const link = { to: '/documents' as const, search: { path: 'docs/dashboard.md' } };
            return (
              <Figures
                stats={[
                  { label: s.requests, value: figure(formatCount(metrics.requests)), note: s.since, link },
                  { label: s.errors, value: figure(formatCount(metrics.errors)), note: s.errorsNote, link },
                  {
                    label: s.clientErrors,
                    value: figure(formatCount(metrics.clientErrors)),
                    note: s.clientErrorsNote,
                    link,
                  },
                  { label: s.limits, value: figure(formatCount(metrics.rateLimitHits)), note: s.limitsNote, link },
                  {
                    label: s.latencyFigure,
                    link,
                    value: figure(p95 === null ? null : formatRate(p95)),
                    unit: s.ms,
                    note: p50 === null ? s.noRequests : s.latencyNote(formatRate(p50), formatCount(count)),
                  },
                ]}
              />
            );
          }}
        </QueryPanel>
        <QueryPanel
          title={words.self.dependencies}
          query={self}
          flush
          skeleton="table"
          note={(data) =>
            words.self.depNote(
              data.dependencies.filter((each) => each.status === 'up').length,
              data.dependencies.length,
            )
          }
        >
          {(data) => (
            <DataTable
              label={words.self.dependencies}
              rows={data.dependencies}
              columns={dependencyColumns}
              rowKey={(row) => row.name}
              rowName={(row) => words.self.names[row.name] ?? row.name}
              sort="state"
            />
          )}
        </QueryPanel>
      </div>
    </>
  );
}
