import { getRouteApi, Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { runDetailQuery } from '../../api/queries';
import { Blank, explainProblem, Message } from '../../components/blank';
import { Chip } from '../../components/chip';
import { Switch } from '../../components/field';
import { ButtonLink } from '../../components/link';
import { MetricName } from '../../components/metric-name';
import { Note } from '../../components/note';
import { PageHead } from '../../components/page';
import { Panel } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import { Impossible, NotMeasured, State } from '../../components/state';
import { formatScore, shortenCommit, shortenHash } from '../../format/numbers';
import { chosen, readLast, joinAll } from '../../state/figure';
import { text } from '../../text';
import { CauseName, Change, Cost, KeyMetric, RunDuration } from './columns';
import { compareBy, runKinds, stateOf, type CompareRow, type RunRecord, type RunRow } from './rows';
import { sentence } from './run';
import { useQueries } from '../../state/query';
import { useEvidence, EvidenceProvider } from '../../components/evidence';

const route = getRouteApi('/shell/runs/compare');
const words = text.runs;
const w = words.compare;

interface Compared {
  id: string;
  run?: RunRow;
  record?: RunRecord;
  /** Why there is no run, or nothing of what it recorded. */
  why?: string;
}

/** Two or more runs side by side: what they are, what they measured, and with which parameters. */
export function CompareRunsScreen() {
  const ids = [...new Set(route.useSearch().run)];
  const [onlyDifferences, setOnly] = useState(false);
  const queries = useQueries(ids.map((id) => runDetailQuery(id)));
  const compared: Compared[] = queries.map(({ data, error }, i) => ({
    id: ids[i] ?? '',
    run: data?.run,
    record: data?.record,
    why: error
      ? explainProblem(error).title
      : data && !data.run
        ? text.common.figures.noAnswer(text.common.figures.sources.runs ?? '')
        : data?.record?.reason,
  }));
  const of = joinAll(queries.map((query) => readLast(query, ['runs', 'tracker'])));
  if (compared.length === 0)
    return (
      <>
        <PageHead title={w.title} />
        <Panel title={w.title} flush>
          <Message icon="split" title={w.none} actions={<ButtonLink to="/runs">{w.toRuns}</ButtonLink>}>
            {w.noneHint}
          </Message>
        </Panel>
      </>
    );
  const isLoading = queries.some((query) => query.isPending);
  return (
    <>
      <PageHead
        title={w.title}
        says={[chosen(w.count(compared.length))]}
        actions={<Switch label={w.onlyDifferences} isSelected={onlyDifferences} onChange={setOnly} />}
      />
      {isLoading ? (
        <Panel title={w.groups.run} flush>
          <div className="sk-pad">
            <Skeleton shape="table" />
          </div>
        </Panel>
      ) : (
        <EvidenceProvider value={of}>
          <div className="stack">
            {compared
              .filter(({ why }) => why !== undefined)
              .map(({ id, why }) => (
                <Note key={id} kind="warn">
                  {w.missing(shortenHash(id), sentence(why ?? ''))}
                </Note>
              ))}
            <Sheet title={w.groups.run} compared={compared} rows={runRows(compared)} only={onlyDifferences} />
            <Sheet
              title={w.groups.metrics}
              compared={compared}
              rows={recordRows(
                compared,
                (record) => record.metrics,
                (value) => formatScore(Number(value)),
              ).filter(({ key }) => !key.startsWith('baseline_'))}
              name={(key) => <MetricName metric={key} />}
              only={onlyDifferences}
              none={w.noMetrics}
            />
            <Sheet
              title={w.groups.params}
              compared={compared}
              rows={recordRows(compared, (record) => record.params, String)}
              name={(key) => <code>{key}</code>}
              only={onlyDifferences}
              none={w.noParams}
            />
          </div>
        </EvidenceProvider>
      )}
    </>
  );
}

interface SheetRow {
  key: string;
  differs: boolean;
  cells: readonly ReactNode[];
}

function recordRows(
  compared: readonly Compared[],
  pick: (record: RunRecord) => Record<string, unknown> | undefined,
  show: (value: unknown) => string,
): SheetRow[] {
  const records = compared.map(({ record }) => (record?.state === 'measured' ? (pick(record) ?? {}) : undefined));
  return compareBy(records, show).map(({ key, values, differs }: CompareRow) => ({
    key,
    differs,
    cells: values.map(
      (value, i) => value ?? (records[i] === undefined ? <NotMeasured why={compared[i]?.why} /> : <Impossible />),
    ),
  }));
}

/** What the platform itself knows of each run. */
function runRows(compared: readonly Compared[]): SheetRow[] {
  const names = words.columns;
  const facts: [name: string, value: (run: RunRow) => unknown, show: (run: RunRow) => ReactNode][] = [
    [
      names.state,
      stateOf,
      (run) => <State kind={runKinds[stateOf(run)] ?? 'unknown'}>{words.states[stateOf(run)] ?? run.state_type}</State>,
    ],
    [names.model, (run) => run.model_id, (run) => run.model_id],
    [
      names.version,
      (run) => run.model_version,
      (run) => (run.model_version ? `v${run.model_version}` : <Impossible />),
    ],
    [names.metric, (run) => run.metric.value ?? run.metric.reason, (run) => <KeyMetric run={run} />],
    [names.change, (run) => run.change.difference ?? run.change.reason, (run) => <Change run={run} />],
    [names.duration, (run) => run.duration_s ?? run.flow_run_id, (run) => <RunDuration run={run} />],
    [names.dataset, (run) => run.dataset_name, (run) => run.dataset_name],
    [
      names.commit,
      (run) => run.commit_sha,
      (run) => (run.commit_sha ? <code title={run.commit_sha}>{shortenCommit(run.commit_sha)}</code> : <Impossible />),
    ],
    [
      w.change,
      (run) => run.approval_id,
      (run) =>
        run.approval_id ? (
          <Link className="link" to="/approvals" search={{ id: run.approval_id }}>
            {w.showChange}
          </Link>
        ) : (
          <Impossible />
        ),
    ],
    [names.cause, (run) => run.cause, (run) => <CauseName run={run} />],
    [names.requester, (run) => run.requester, (run) => run.requester ?? <NotMeasured why={words.noRequester} />],
    [names.cost, (run) => run.cost.usd ?? run.cost.reason, (run) => <Cost run={run} />],
  ];
  const known = compared.flatMap(({ run }) => run ?? []);
  return facts.map(([key, value, show]) => ({
    key,
    differs: known.some((run) => value(run) !== value(known[0] as RunRow)),
    cells: compared.map(({ run, why }) => (run ? show(run) : <NotMeasured why={why} />)),
  }));
}

/** Rows of names and values, a column for each run; those that differ say so. */
function Sheet({
  title,
  compared,
  rows,
  name = (key) => key,
  only,
  none,
}: {
  title: string;
  compared: readonly Compared[];
  rows: readonly SheetRow[];
  name?: (key: string) => ReactNode;
  only: boolean;
  none?: string;
}) {
  const of = useEvidence();
  const shown = rows.filter(({ differs }) => differs || !only);
  const nothing = rows.length === 0 ? none : shown.length === 0 ? w.same : undefined;
  return (
    <Panel title={title} flush>
      {nothing ? (
        <Blank of={of} icon={rows.length === 0 ? 'unknown' : 'check'} title={nothing} />
      ) : (
        <div className="tablewrap" role="group" aria-label={title} tabIndex={0}>
          <table className="table sheet">
            <thead>
              <tr>
                <th scope="col">{w.name}</th>
                {compared.map(({ id, run }) => (
                  <th key={id} scope="col">
                    <Link className="link" to="/runs/$id" params={{ id }}>
                      {run ? words.name(run.model_id, run.model_version) : w.run}
                    </Link>{' '}
                    <code className="faint" title={id}>
                      {shortenHash(id)}
                    </code>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map(({ key, differs, cells }) => (
                <tr key={key} className={differs ? 'differs' : undefined}>
                  <th scope="row">
                    {name(key)} {differs && <Chip>{w.differs}</Chip>}
                  </th>
                  {cells.map((cell, i) => (
                    <td key={compared[i]?.id}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}
