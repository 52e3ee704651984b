import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { components as ControlPlane } from '../../api/gen/controlplane';
import type { components } from '../../api/gen/dashboard';
import { evalsQuery, llmopsQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { Blank } from '../../components/blank';
import { Show } from '../../components/figure';
import { ButtonLink } from '../../components/link';
import { MenuButton } from '../../components/menu';
import { PageHead } from '../../components/page';
import { QueryPanel } from '../../components/panel';
import { Impossible, Measured, severityOf, State, type StateKind } from '../../components/state';
import { DataTable, type Column } from '../../components/table';
import { RelativeTime } from '../../components/time';
import { formatChange, formatCount, formatScore, formatShare } from '../../format/numbers';
import { useMay } from '../../state/auth';
import { mapFigure, read, type Figure } from '../../state/figure';
import { text } from '../../text';
import { useQuery } from '../../state/query';

const words = text.llmops;
type Endpoint = components['schemas']['LLMEndpoint'];
type EvalModel = components['schemas']['EvalModel'];
type Eval = ControlPlane['schemas']['Eval'];

const kinds: Record<string, StateKind> = { passed: 'ok', failed: 'critical', error: 'critical', running: 'running' };
const kindOf = (status: string): StateKind => kinds[status.toLowerCase()] ?? 'unknown';
const statusWord = (status: string): string => words.statuses[status.toLowerCase()] ?? status;

export function LlmopsScreen() {
  const query = useQuery(llmopsQuery);
  const evals = read(query, (view) => view.evals.models, ['evals']);
  return (
    <>
      <PageHead
        title={words.title}
        says={[
          read(
            query,
            ({ endpoints: { rows } }) => words.enabled(rows.filter((each) => each.enabled).length, rows.length),
            ['endpoints'],
          ),
          mapFigure(evals, (all) => words.failed(all.filter((each) => kindOf(each.status) === 'critical').length)),
        ]}
      />
      <div className="stack">
        <EndpointPanel query={query} evals={evals} />
        <QueryPanel
          title={words.evals.title}
          query={query}
          sources={['evals']}
          note={words.evals.note}
          flush
          skeleton="table"
          empty={(data, of) =>
            data.evals.models.length > 0 ? undefined : (
              <Blank
                of={of}
                icon="list"
                title={words.evals.none}
                actions={
                  <ButtonLink to="/documents" search={{ path: 'docs/governance.md' }}>
                    {words.endpoints.guide}
                  </ButtonLink>
                }
              >
                {words.evals.noneHint}
              </Blank>
            )
          }
        >
          {(data) => (
            <ul className="evals">
              {[...data.evals.models]
                .sort((a, b) => severityOf[kindOf(a.status)] - severityOf[kindOf(b.status)])
                .map((each) => (
                  <EvalRow key={`${each.model} ${each.suite}`} evaluation={each} />
                ))}
            </ul>
          )}
        </QueryPanel>
        <HistoryPanel />
      </div>
    </>
  );
}

function EndpointPanel({
  query,
  evals,
}: {
  query: ReturnType<typeof useQuery<components['schemas']['LLMView']>>;
  evals: Figure<readonly EvalModel[]>;
}) {
  const mayWrite = useMay('proxy.write');
  const [changing, setChanging] = useState<Endpoint>();
  const w = words.endpoints;
  const columns: Column<Endpoint>[] = [
    {
      key: 'state',
      header: w.state,
      isHealth: true,
      sort: (row) => Number(!row.enabled),
      cell: (row) => (
        <span className={row.enabled ? 'flag-state on' : 'flag-state'}>
          <i aria-hidden="true" />
          {row.enabled ? w.enabled : w.disabled}
        </span>
      ),
    },
    {
      key: 'model',
      header: w.model,
      isName: true,
      sort: (row) => row.model,
      cell: (row) => <span className="med">{row.model}</span>,
    },
    { key: 'hosted', header: w.hosted, cell: (row) => <code className="small">{row.hostedModelId}</code> },
    { key: 'engine', header: w.engine, drop: 'medium', sort: (row) => row.engine, cell: (row) => row.engine },
    {
      key: 'length',
      header: w.length,
      numeric: true,
      sort: (row) => row.maxModelLen,
      cell: (row) => formatCount(row.maxModelLen),
    },
    {
      key: 'parallel',
      header: w.parallel,
      numeric: true,
      drop: 'medium',
      sort: (row) => row.tensorParallel,
      cell: (row) => row.tensorParallel,
    },
    { key: 'dtype', header: w.dtype, drop: 'medium', cell: (row) => row.dtype },
    {
      key: 'eval',
      header: w.evaluation,
      cell: (row) => {
        const mine = mapFigure(evals, (all) =>
          all.find((each) => each.model.toUpperCase() === row.model.toUpperCase()),
        );
        return (
          <Show figure={mine}>
            {(each) =>
              each ? (
                <State kind={kindOf(each.status)}>{statusWord(each.status)}</State>
              ) : (
                <State kind="unknown">{w.notRun}</State>
              )
            }
          </Show>
        );
      },
    },
  ];
  const acts: Column<Endpoint> = {
    key: 'acts',
    header: w.acts,
    quietHeader: true,
    className: 'acts-cell',
    cell: (row) => (
      <MenuButton
        button={{ icon: 'more', iconOnly: true, kind: 'ghost', small: true, label: w.actsOf(row.model) }}
        label={w.actsOf(row.model)}
        entries={[{ id: 'toggle', label: row.enabled ? w.disable : w.enable }]}
        onAction={() => setChanging(row)}
      />
    ),
  };
  const title = changing ? (changing.enabled ? w.dialogOff : w.dialogOn)(changing.model) : '';
  return (
    <>
      <QueryPanel
        title={w.title}
        query={query}
        sources={['endpoints']}
        flush
        skeleton="table"
        note={(data) => w.note(data.endpoints.count)}
        empty={(data, of) =>
          data.endpoints.rows.length > 0 ? undefined : (
            <Blank
              of={of}
              icon="llm"
              title={w.none}
              actions={
                <ButtonLink to="/documents" search={{ path: 'docs/governance.md' }}>
                  {w.guide}
                </ButtonLink>
              }
            >
              {w.noneHint}
            </Blank>
          )
        }
      >
        {(data) => (
          <DataTable
            label={w.title}
            rows={data.endpoints.rows}
            columns={mayWrite ? [...columns, acts] : columns}
            rowKey={(row) => row.model}
            rowName={(row) => row.model}
          />
        )}
      </QueryPanel>
      {changing && (
        <ActDialog
          title={title}
          isOpen
          onClose={() => setChanging(undefined)}
          act={() => ({
            title,
            method: 'PUT',
            path: `/api/proxy/control_plane/llm/endpoints/${encodeURIComponent(changing.model)}`,
            body: {
              engine: changing.engine,
              hostedModelId: changing.hostedModelId,
              maxModelLen: changing.maxModelLen,
              tensorParallel: changing.tensorParallel,
              dtype: changing.dtype,
              enabled: !changing.enabled,
            },
            confirm: (changing.enabled ? w.disable : w.enable).replace('…', ''),
            done: w.done(changing.model),
            topics: ['llmops', 'governance', 'audit'],
          })}
        >
          <p className="muted">{w.explain}</p>
        </ActDialog>
      )}
    </>
  );
}

/** One evaluation: its verdict and each metric against its baseline. */
function EvalRow({ evaluation }: { evaluation: EvalModel }) {
  const w = words.evals;
  return (
    <li>
      <div className="row wrap">
        <State kind={kindOf(evaluation.status)}>{statusWord(evaluation.status)}</State>
        <b className="med">{evaluation.model}</b>
        <span className="muted">{evaluation.suite}</span>
        <span className="end small muted">
          {w.rate}: <Measured value={evaluation.passRate}>{formatShare}</Measured>
        </span>
      </div>
      {evaluation.metrics.length > 0 && (
        <div className="tablewrap">
          <table className="table tight">
            <caption className="vh">{`${evaluation.model}, ${evaluation.suite}`}</caption>
            <thead>
              <tr>
                <th scope="col">{w.state}</th>
                <th scope="col">{w.metric}</th>
                <th scope="col" className="num">
                  {w.value}
                </th>
                <th scope="col" className="num">
                  {w.baseline}
                </th>
                <th scope="col" className="num">
                  {w.change}
                </th>
              </tr>
            </thead>
            <tbody>
              {evaluation.metrics.map((metric) => (
                <tr key={metric.metric}>
                  <td>
                    <State kind={metric.passed ? 'ok' : 'critical'}>{metric.passed ? w.better : w.worse}</State>
                  </td>
                  <td>{metric.metric}</td>
                  <td className="num">{formatScore(metric.value)}</td>
                  <td className="num">
                    {metric.baseline === null ? (
                      <span className="faint">{w.noBaseline}</span>
                    ) : (
                      formatScore(metric.baseline)
                    )}
                  </td>
                  <td className="num">
                    {metric.baseline === null ? <Impossible /> : (formatChange(metric.baseline, metric.value) ?? '–')}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </li>
  );
}

const historyColumns: Column<Eval>[] = [
  {
    key: 'state',
    header: words.evals.state,
    isHealth: true,
    sort: (row) => severityOf[kindOf(row.status)],
    cell: (row) => <State kind={kindOf(row.status)}>{statusWord(row.status)}</State>,
  },
  {
    key: 'model',
    header: words.evals.model,
    isName: true,
    sort: (row) => row.model,
    cell: (row) => <span className="med">{row.model}</span>,
  },
  { key: 'version', header: words.evals.version, sort: (row) => row.version, cell: (row) => row.version },
  { key: 'suite', header: words.evals.suite, sort: (row) => row.suite, cell: (row) => row.suite },
  {
    key: 'rate',
    header: words.evals.rate,
    numeric: true,
    sort: (row) => row.passRate,
    cell: (row) => <Measured value={row.passRate}>{formatShare}</Measured>,
  },
  {
    key: 'at',
    header: words.evals.at,
    sort: (row) => row.updated_at,
    cell: (row) => (
      <span className="muted">
        <RelativeTime at={row.updated_at} /> {words.evals.by(row.updated_by)}
      </span>
    ),
  },
];

function HistoryPanel() {
  const query = useQuery(evalsQuery());
  const w = words.evals;
  return (
    <QueryPanel
      title={w.history}
      note={w.historyNote}
      query={query}
      flush
      skeleton="table"
      footer={
        <Link className="link" to="/governance">
          {text.shell.nav.governance}
        </Link>
      }
      empty={(data, of) =>
        data.items.length === 0 ? (
          <Blank of={of} icon="list" title={w.none}>
            {w.noneHint}
          </Blank>
        ) : undefined
      }
    >
      {(data) => (
        <DataTable
          label={w.history}
          rows={data.items}
          columns={historyColumns}
          rowKey={(row) => row.id}
          rowName={(row) => `${row.model} ${row.suite}`}
        />
      )}
    </QueryPanel>
  );
}
