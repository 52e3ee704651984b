import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Chip, GeneratedChip } from '../../components/chip';
import { Impossible, NotMeasured, severityOf, State } from '../../components/state';
import type { Column } from '../../components/table';
import { formatAmount, formatChange, formatMoney, formatScore, shortenCommit, shortenHash } from '../../format/numbers';
import { formatDuration, formatExact, parseTime } from '../../format/time';
import { alsoFrom, type Figure } from '../../state/figure';
import { useNow } from '../../state/now';
import { text } from '../../text';
import { durationOf, figureOf, formatStart, improvementOf, isActive, runKinds, stateOf, type RunRow } from './rows';
import { useEvidence, Evidence } from '../../components/evidence';

const words = text.runs;

/** The columns in their order; those marked are shown until a person chooses others. */
export const columnChoice = [
  { key: 'version', shown: true },
  { key: 'duration', shown: true },
  { key: 'metric', shown: true },
  { key: 'change', shown: true },
  { key: 'requester', shown: true },
  { key: 'cause', shown: true },
  { key: 'started', shown: true },
  { key: 'cost', shown: true },
  { key: 'dataset', shown: false },
  { key: 'commit', shown: false },
  { key: 'run', shown: false },
] as const;

type Choice = (typeof columnChoice)[number]['key'];

export const defaultColumns: readonly string[] = columnChoice.filter((each) => each.shown).map((each) => each.key);

/** How long a run took; of one that runs, so far. */
export function RunDuration({ run }: { run: RunRow }) {
  const now = useNow();
  const took = durationOf(run, now.getTime());
  if (took === undefined)
    return run.started_at ? (
      <NotMeasured why={words.unfinished} />
    ) : isActive(run) ? (
      <Impossible />
    ) : (
      <NotMeasured why={words.neverStarted} />
    );
  return isActive(run) ? <span className="st-running">{formatDuration(took)}</span> : <>{formatDuration(took)}</>;
}

/** A figure, or that it was not measured with the reason in sight. */
function Reasoned<T>({ figure, children }: { figure: Figure<T>; children: (value: T) => ReactNode }) {
  if (figure.kind === 'measured') return <Evidence of={figure}>{children(figure.value)}</Evidence>;
  const why = figure.kind === 'loading' ? '' : figure.why;
  return (
    <>
      <NotMeasured why={why} />
      <span className="why sub-r" title={why}>
        {why}
      </span>
    </>
  );
}

/** The key metric's value with its name. */
export function KeyMetric({ run }: { run: RunRow }) {
  const view = useEvidence();
  return (
    <Reasoned figure={figureOf(view, run.metric, ({ value }) => value)}>
      {(value) => (
        <>
          {formatScore(value)} {(run.is_dummy || run.is_generated) && <GeneratedChip />}
          <span className="why sub-r">{run.metric.name}</span>
        </>
      )}
    </Reasoned>
  );
}

/** Returns +2.0 % or, where a share means nothing, the difference itself. */
function describeChange(from: number, difference: number): string {
  const share = formatChange(from, from + difference);
  return share ?? (difference > 0 ? `+${formatScore(difference)}` : formatScore(difference));
}

/** The key metric against Production: sign, and what the sign means for this metric. */
export function Change({ run }: { run: RunRow }) {
  const { change, metric } = run;
  const view = useEvidence();
  if (metric.state !== 'measured') return <Impossible />;
  if (change.version !== undefined && change.version === run.model_version)
    return <Chip kind="prod">{words.inProduction}</Chip>;
  const figure = figureOf(alsoFrom(view, 'tracker'), change, ({ difference, from, verdict }) =>
    difference === undefined || from === undefined || verdict === undefined ? undefined : { difference, from, verdict },
  );
  return (
    <Reasoned figure={figure}>
      {({ difference, from, verdict }) => (
        <>
          <span className={verdict === 'equal' ? 'faint' : verdict === 'better' ? 'plus' : 'minus'}>
            {verdict === 'equal' ? words.equal : `${describeChange(from, difference)} ${words[verdict]}`}
          </span>
          <span className="why sub-r">
            {words.against(change.version ?? '')}: {formatScore(from)}
          </span>
        </>
      )}
    </Reasoned>
  );
}

/** The cost; with its unit and the reason in sight where no column says so. */
export function Cost({ run, unit }: { run: RunRow; unit?: boolean }) {
  const view = useEvidence();
  const figure = figureOf(view, run.cost, ({ usd }) => usd);
  if (figure.kind === 'measured')
    return (
      <>
        {run.cost.synthetic && (
          <Chip kind="synth" title={words.syntheticTitle}>
            {words.synthetic}
          </Chip>
        )}{' '}
        {unit ? formatMoney(figure.value) : formatAmount(figure.value)}
      </>
    );
  if (unit) return <Reasoned figure={figure}>{() => null}</Reasoned>;
  const why = figure.kind === 'loading' ? '' : figure.why;
  return (
    <>
      <NotMeasured why={why} />
      <span className="vh">: {why}</span>
    </>
  );
}

export function CauseName({ run }: { run: RunRow }) {
  return <>{words.causes[run.cause]}</>;
}

function Started({ run }: { run: RunRow }) {
  const now = useNow();
  const at = parseTime(run.started_at);
  if (!at) return isActive(run) ? <Impossible /> : <NotMeasured why={words.neverStarted} />;
  return (
    <time dateTime={at.toISOString()} title={`${formatExact(at)} (${at.toLocaleString()})`}>
      {formatStart(at, now)}
    </time>
  );
}

const names = words.columns;

const optional: Record<Choice, Column<RunRow>> = {
  version: {
    key: 'version',
    header: names.version,
    sort: (run) => (run.model_version ? Number(run.model_version) : undefined),
    cell: (run) =>
      run.model_version ? (
        <Link className="quiet" to="/models/$name" params={{ name: run.model_id }} search={{ tab: 'versions' }}>
          v{run.model_version}
        </Link>
      ) : (
        <Impossible />
      ),
  },
  duration: {
    key: 'duration',
    header: names.duration,
    numeric: true,
    sort: (run) => durationOf(run, Date.now()),
    cell: (run) => <RunDuration run={run} />,
  },
  metric: {
    key: 'metric',
    header: names.metric,
    hint: words.hints.metric,
    numeric: true,
    className: 'reasoned',
    sort: (run) => (run.metric.state === 'measured' ? run.metric.value : undefined),
    cell: (run) => <KeyMetric run={run} />,
  },
  change: {
    key: 'change',
    header: names.change,
    hint: words.hints.change,
    numeric: true,
    className: 'reasoned',
    sort: improvementOf,
    cell: (run) => <Change run={run} />,
  },
  requester: {
    key: 'requester',
    header: names.requester,
    sort: (run) => run.requester,
    className: 'drop-m wide-s',
    cell: (run) =>
      run.requester ? (
        <span className="trunc cell-w" title={run.requester}>
          {run.requester}
        </span>
      ) : (
        <NotMeasured why={words.noRequester} />
      ),
  },
  cause: {
    key: 'cause',
    header: names.cause,
    className: 'wide-s',
    sort: (run) => run.cause,
    cell: (run) => <CauseName run={run} />,
  },
  started: {
    key: 'started',
    header: names.started,
    className: 'wide-s',
    // One that waits for a worker stands where it will start, not behind thousands that have.
    sort: (run) => parseTime(run.started_at ?? run.dispatched_at)?.getTime(),
    cell: (run) => (
      <span className="muted">
        <Started run={run} />
      </span>
    ),
  },
  cost: {
    key: 'cost',
    header: names.cost,
    hint: words.hints.cost,
    numeric: true,
    className: 'drop-m wide-s',
    sort: (run) => (run.cost.state === 'measured' ? run.cost.usd : undefined),
    cell: (run) => <Cost run={run} />,
  },
  dataset: { key: 'dataset', header: names.dataset, sort: (run) => run.dataset_name, cell: (run) => run.dataset_name },
  commit: {
    key: 'commit',
    header: names.commit,
    sort: (run) => run.commit_sha,
    cell: (run) =>
      run.commit_sha ? <code title={run.commit_sha}>{shortenCommit(run.commit_sha)}</code> : <Impossible />,
  },
  run: {
    key: 'run',
    header: names.run,
    sort: (run) => run.flow_run_id,
    cell: (run) => <code title={run.flow_run_id}>{shortenHash(run.flow_run_id)}</code>,
  },
};

/** Returns the columns of the table: state and model, which name a row, then the chosen ones in their own order. */
export function columnsOf(chosen: readonly string[]): Column<RunRow>[] {
  return [
    {
      key: 'state',
      header: names.state,
      isHealth: true,
      sort: (run) => severityOf[runKinds[stateOf(run)] ?? 'unknown'],
      cell: (run) => {
        const state = stateOf(run);
        return (
          <>
            <State kind={runKinds[state] ?? 'unknown'}>{words.states[state] ?? run.state_type}</State>
            {run.reason && (
              <span className="why" title={run.reason}>
                {run.reason}
              </span>
            )}
          </>
        );
      },
    },
    {
      key: 'model',
      header: names.model,
      isName: true,
      sort: (run) => run.model_id,
      cell: (run) => (
        <Link className="trunc cell-w" title={run.model_id} to="/runs/$id" params={{ id: run.flow_run_id }}>
          {run.model_id}
        </Link>
      ),
    },
    ...columnChoice.filter(({ key }) => chosen.includes(key)).map(({ key }) => optional[key]),
  ];
}
