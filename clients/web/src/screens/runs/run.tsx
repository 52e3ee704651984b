import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { Problem } from '../../api/problem';
import { approvalQuery, flagsQuery, healthQuery, runDetailQuery, runQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { Blank, CopyText, Message, UnmeasuredBlank } from '../../components/blank';
import { Button } from '../../components/button';
import { GateList, type GateItem } from '../../components/gate';
import { ButtonLink } from '../../components/link';
import { MetricName } from '../../components/metric-name';
import { Note } from '../../components/note';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { Facts } from '../../components/stat';
import { Impossible, Pill } from '../../components/state';
import { Age, RelativeTime } from '../../components/time';
import { formatScore, shortenCommit, shortenHash } from '../../format/numbers';
import { formatDuration, parseTime } from '../../format/time';
import { useMay } from '../../state/auth';
import { openTool } from '../../state/tools';
import { text } from '../../text';
import { CauseName, Change, Cost, KeyMetric, RunDuration } from './columns';
import { isActive, runKinds, stateOf, type RunRecord, type RunRow } from './rows';
import type { Approval } from './timeline';
import { useQuery } from '../../state/query';
import { useEvidence, EvidenceProvider, Evidence } from '../../components/evidence';
import { readLast, withhold, Unknown, alsoFrom } from '../../state/figure';

const route = getRouteApi('/shell/runs/$id');
const words = text.runs;
const detail = words.detail;

/** Everything about one run: what it did, what came of it, and with which parameters. */
export function RunScreen() {
  const { id } = route.useParams();
  const query = useQuery(runDetailQuery(id));
  const run = query.data?.run;
  const known = readLast(query, ['runs']);
  if (query.error instanceof Problem && query.error.status === 404 && !run)
    return (
      <>
        <PageHead title={detail.title(shortenHash(id))} />
        <Panel title={words.title} flush>
          <Message icon="search" title={detail.gone} actions={<ButtonLink to="/runs">{detail.back}</ButtonLink>}>
            {detail.goneHint}
          </Message>
        </Panel>
      </>
    );
  return (
    <>
      <PageHead
        title={run ? words.name(run.model_id, run.model_version) : detail.title(shortenHash(id))}
        sub={run && detail.title(shortenHash(id))}
        actions={
          run && (
            <Evidence of={known}>
              <RunActs run={run} record={query.data?.record} />
            </Evidence>
          )
        }
      />
      <div className="stack">
        {run ? (
          <EvidenceProvider value={known}>
            <RunDetail run={run} record={query.data?.record} />
          </EvidenceProvider>
        ) : (
          // Loading, failed, not allowed, or no answer from the control plane.
          <QueryPanel title={detail.steps} query={query} whole rowsOf={['runs']}>
            {() => null}
          </QueryPanel>
        )}
      </div>
    </>
  );
}

/** Reports whether the tracker has pages to open from here. */
function useTracker(): boolean {
  const proxyOff = useQuery(flagsQuery).data?.flags.toolProxy === false;
  const address = useQuery(healthQuery).data?.services.tracker?.url;
  return Boolean(address) && !proxyOff;
}

function RunActs({ run, record }: { run: RunRow; record: RunRecord | undefined }) {
  const mayCancel = useMay('retrain.trigger');
  const hasTracker = useTracker();
  const [asking, setAsking] = useState(false);
  const state = stateOf(run);
  const experiment = record?.experiment_id;
  return (
    <>
      <Pill kind={runKinds[state] ?? 'unknown'}>{words.states[state] ?? run.state_type}</Pill>
      {hasTracker && experiment !== undefined && run.tracker_run_id && (
        <Button
          icon="open"
          onPress={() => void openTool('tracker', `/experiments/${experiment}/runs/${run.tracker_run_id}`)}
        >
          {detail.openTracker}
        </Button>
      )}
      {isActive(run) && state !== 'CANCELLING' && (
        <Button kind="danger" disabledReason={mayCancel ? undefined : detail.noRole} onPress={() => setAsking(true)}>
          {detail.cancel}
        </Button>
      )}
      <ActDialog
        title={detail.confirm(run.model_id)}
        isOpen={asking}
        onClose={() => setAsking(false)}
        danger
        act={() => ({
          title: detail.confirm(run.model_id),
          method: 'POST',
          path: `/api/proxy/control_plane/retrain/${encodeURIComponent(run.flow_run_id)}/cancel`,
          confirm: detail.confirmDo,
          done: detail.done(run.model_id),
          topics: ['runs', 'overview'],
        })}
      >
        <p className="muted">{detail.confirmHint}</p>
      </ActDialog>
    </>
  );
}

/** Returns what a run did so far, step by step, with how long each took. */
export function stepsOf(run: RunRow, approval: Approval | undefined): GateItem[] {
  const state = stateOf(run);
  const started = parseTime(run.started_at);
  const ended = parseTime(run.ended_at);
  const steps: GateItem[] = [];
  const span = (from: Date | undefined, to: Date | undefined): React.ReactNode =>
    from && to ? formatDuration(to.getTime() - from.getTime()) : undefined;
  const approvedAt = parseTime(approval?.resolved_at);
  if (approval)
    steps.push({
      key: 'approved',
      kind: 'ok',
      title: approval.resolved_by ? detail.approvedBy(approval.resolved_by) : detail.approved,
      value: span(parseTime(approval.requested_at), approvedAt),
    });
  const queuedAt = approvedAt ?? parseTime(run.dispatched_at);
  if (queuedAt || !started)
    steps.push({
      key: 'queued',
      kind: started ? 'ok' : 'running',
      title: detail.queued,
      value: started ? span(queuedAt, started) : undefined,
    });
  if (started) {
    const failed = runKinds[state] === 'critical';
    steps.push({
      key: 'train',
      kind: ended ? (state === 'COMPLETED' ? 'ok' : failed ? 'critical' : 'unknown') : 'running',
      title: detail.training,
      value: ended ? span(started, ended) : <Age since={started} />,
      detail: ended && state !== 'COMPLETED' ? (detail.ended[state] ?? run.state_type) : undefined,
    });
  }
  steps.push({
    key: 'version',
    kind: run.model_version ? 'ok' : 'unknown',
    title: run.model_version ? detail.registered(run.model_version) : detail.notRegistered,
    value: run.model_version ? undefined : <Impossible />,
  });
  return steps;
}

function RunDetail({ run, record }: { run: RunRow; record: RunRecord | undefined }) {
  const approvalId = run.approval_id ?? undefined;
  const approval = useQuery({ ...approvalQuery(approvalId ?? ''), enabled: approvalId !== undefined }).data;
  const isStale = useQuery({ ...runQuery(run.flow_run_id), enabled: isActive(run) }).data?.stale;
  return (
    <div className="grid cols-main r-wide">
      <div className="stack">
        <Panel title={detail.steps}>
          {isStale && <Note kind="warn">{detail.stale}</Note>}
          {run.reason && <p className="mb-s">{run.reason}</p>}
          <GateList items={stepsOf(run, approval)} />
        </Panel>
        <RecordPanels record={record} />
      </div>
      <Panel title={detail.facts}>
        <Facts
          facts={[
            [
              detail.model,
              <Link className="link" to="/models/$name" params={{ name: run.model_id }}>
                {run.model_id}
              </Link>,
            ],
            [detail.keyMetric, <KeyMetric run={run} />],
            [detail.change, <Change run={run} />],
            [detail.took, <RunDuration run={run} />],
            [detail.cost, <Cost run={run} unit />],
            [detail.dataset, run.dataset_name],
            [
              detail.commit,
              run.commit_sha ? <code title={run.commit_sha}>{shortenCommit(run.commit_sha)}</code> : <Impossible />,
            ],
            [detail.cause, <CauseName run={run} />],
            [detail.requester, run.requester ?? <Impossible />],
            run.approved_by ? [detail.approvedBy_, run.approved_by] : undefined,
            approvalId
              ? [
                  detail.approval,
                  <Link className="link" to="/approvals" search={{ id: approvalId }}>
                    {detail.showApproval}
                  </Link>,
                ]
              : undefined,
            [detail.started, run.started_at ? <RelativeTime at={run.started_at} /> : <Impossible />],
            [detail.ended_, run.ended_at ? <RelativeTime at={run.ended_at} /> : <Impossible />],
            [detail.flowRun, <CopyText value={run.flow_run_id} shown={shortenHash(run.flow_run_id)} />],
            run.tracker_run_id
              ? [detail.trackerRun, <CopyText value={run.tracker_run_id} shown={shortenHash(run.tracker_run_id)} />]
              : undefined,
          ]}
        />
      </Panel>
    </div>
  );
}

/** What the trainer recorded at the tracker. */
function RecordPanels({ record }: { record: RunRecord | undefined }) {
  const of = alsoFrom(useEvidence(), 'tracker');
  if (!record || record.state !== 'measured')
    return (
      <Panel title={detail.metrics} of={withhold(of, new Unknown(record?.reason ?? ''))} flush>
        <UnmeasuredBlank why={sentence(record?.reason ?? text.common.figures.noAnswer(detail.tracker))} />
      </Panel>
    );
  const metrics = Object.entries(record.metrics ?? {}).filter(([name]) => !name.startsWith('baseline_'));
  const params = Object.entries(record.params ?? {});
  return (
    <>
      <Panel title={detail.metrics} of={of} flush>
        {metrics.length === 0 ? (
          <Blank of={of} icon="unknown" title={detail.noMetrics} />
        ) : (
          <PairTable
            label={detail.metrics}
            numeric
            heads={[detail.metric, detail.value, detail.baseline]}
            rows={metrics.sort(byName).map(([name, value]) => {
              const baseline = record.metrics?.[`baseline_${name}`];
              return [
                name,
                <MetricName metric={name} />,
                formatScore(value),
                baseline === undefined ? <Impossible /> : formatScore(baseline),
              ];
            })}
          />
        )}
      </Panel>
      <Panel title={detail.params} of={of} flush>
        {params.length === 0 ? (
          <Blank of={of} icon="unknown" title={detail.noParams} />
        ) : (
          <PairTable
            label={detail.params}
            heads={[detail.param, detail.value]}
            rows={params
              .sort(byName)
              .map(([name, value]) => [name, <code>{name}</code>, <span className="wrap-any">{value}</span>])}
          />
        )}
      </Panel>
    </>
  );
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);

/** Begins a reason with a capital and ends it with a full stop. */
export function sentence(reason: string): string {
  const text = reason.charAt(0).toUpperCase() + reason.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function PairTable({
  label,
  numeric,
  heads,
  rows,
}: {
  label: string;
  numeric?: boolean;
  heads: readonly string[];
  rows: readonly (readonly [key: string, name: React.ReactNode, ...values: React.ReactNode[]])[];
}) {
  return (
    <div className="tablewrap" role="group" aria-label={label}>
      <table className="table">
        <thead>
          <tr>
            {heads.map((head, i) => (
              <th key={head} scope="col" className={numeric && i > 0 ? 'num' : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([key, name, ...values]) => (
            <tr key={key}>
              <td>{name}</td>
              {values.map((value, i) => (
                <td key={heads[i + 1]} className={numeric ? 'num' : undefined}>
                  {value}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
