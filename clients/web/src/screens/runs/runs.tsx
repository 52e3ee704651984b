import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { approvalsQuery, runQuery, runsQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { Blank, CopyText } from '../../components/blank';
import { Button } from '../../components/button';
import { Nothing } from '../../components/figure';
import { FilterBar, TextFilter } from '../../components/filters';
import { GateList, type GateItem } from '../../components/gate';
import { Note } from '../../components/note';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { Segments } from '../../components/seg';
import { Facts } from '../../components/stat';
import { Impossible, Pill } from '../../components/state';
import { Age, RelativeTime } from '../../components/time';
import { shortenCommit, shortenHash } from '../../format/numbers';
import { formatDay, formatDuration, MINUTE, parseTime } from '../../format/time';
import { runTabs } from '../../router-params';
import { activeStates } from '../../shell/counts';
import { useMay } from '../../state/auth';
import { mapFigure, orElse, read } from '../../state/figure';
import { useNow } from '../../state/now';
import { boundsOf, useRange } from '../../state/range';
import { text } from '../../text';
import { RetrainDialog } from './retrain-dialog';
import { lanesOf, runKinds, stateOf, Timeline, TimelineLegend, type Approval, type Run } from './timeline';

const route = getRouteApi('/shell/runs');
const words = text.runs;
const noApprovals: Approval[] = [];

function inTab(run: Run, tab: (typeof runTabs)[number]): boolean {
  if (tab === 'active') return activeStates.has(stateOf(run));
  return tab === 'failed' ? runKinds[stateOf(run)] === 'critical' : true;
}

export function RunsScreen() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const range = useRange();
  const minute = Math.floor(useNow().getTime() / 15_000) * 15_000;
  const query = useQuery(runsQuery());
  const everyApproval = useQuery(approvalsQuery()).data;
  const pending = read(useQuery(approvalsQuery('pending')), (list) => list);
  const mayStart = useMay('retrain.trigger');
  const [starting, setStarting] = useState(false);
  const { state: tab = 'all', q = '', id } = search;
  const set = (change: Partial<typeof search>): void =>
    void navigate({ search: (prev) => ({ ...prev, ...change }), replace: true, resetScroll: false });

  const { from } = boundsOf(range, minute);
  const start = from.getTime();
  const all = useMemo(
    () =>
      (query.data?.items ?? []).filter(
        (run) =>
          activeStates.has(stateOf(run)) || (parseTime(run.ended_at ?? run.started_at)?.getTime() ?? Infinity) >= start,
      ),
    [query.data, start],
  );
  const needle = q.trim().toLowerCase();
  const runs = all.filter(
    (run) =>
      inTab(run, tab) &&
      (needle === '' ||
        [run.model_id, run.dataset_name, run.flow_run_id].some((each) => each.toLowerCase().includes(needle))),
  );
  const byId = useMemo(
    () => new Map((everyApproval ?? []).map((approval) => [approval.id, approval])),
    [everyApproval],
  );
  const waiting = orElse(pending, noApprovals).filter(
    (approval) => approval.kind === 'retrain' && (needle === '' || approval.model_id.toLowerCase().includes(needle)),
  );
  const lanes = lanesOf(runs, tab === 'failed' ? [] : waiting, byId, minute);
  const running = all.filter((run) => stateOf(run) === 'RUNNING').length;
  const queued = all.filter((run) => activeStates.has(stateOf(run))).length - running;
  const known = query.data?.items.find((run) => run.flow_run_id === id);
  const current = known ?? (id === undefined ? runs[0] : undefined);
  // Room to the right of now, so that what runs has an end in sight; never wider than what there is to see.
  const earliest = Math.min(...lanes.flatMap((lane) => lane.bars.map((bar) => bar.from)), minute - 10 * MINUTE);
  const left = Math.max(start, earliest - (minute - earliest) * 0.04);
  const right = minute + (minute - left) * 0.08;
  return (
    <>
      <PageHead
        title={words.title}
        says={[
          read(query, () => words.sub(running, queued)),
          mapFigure(pending, (list) => words.waiting(list.filter((each) => each.kind === 'retrain').length)),
        ]}
        actions={
          <>
            <Segments
              label={words.tabs.label}
              value={tab}
              onChange={(value) => set({ state: value === 'all' ? undefined : value })}
              segments={runTabs.map((value) => ({
                value,
                label: words.tabs[value],
                count: read(query, () => all.filter((run) => inTab(run, value)).length),
              }))}
            />
            {mayStart && (
              <Button icon="plus" onPress={() => setStarting(true)}>
                {words.start}
              </Button>
            )}
          </>
        }
      />
      <div className="stack">
        <QueryPanel
          title={words.timeline}
          query={query}
          flush
          untitled
          note={<span className="hide-s">{words.timesIn(formatDay(new Date(minute)))}</span>}
          footer={<TimelineLegend />}
        >
          {() => (
            <>
              <FilterBar>
                <TextFilter label={words.filter} value={q} onChange={(value) => set({ q: value || undefined })} />
              </FilterBar>
              {lanes.length === 0 ? (
                <div className="pad-s">
                  <Nothing of={read(query, () => true)}>
                    <Blank icon="runs" title={words.empty}>
                      {words.emptyHint}
                    </Blank>
                  </Nothing>
                </div>
              ) : (
                <Timeline lanes={lanes} from={left} to={right} now={minute} current={current?.flow_run_id} />
              )}
            </>
          )}
        </QueryPanel>
        {current ? (
          <RunDetail
            key={current.flow_run_id}
            run={current}
            approval={current.approval_id ? byId.get(current.approval_id) : undefined}
          />
        ) : (
          id !== undefined && query.data && <Blank icon="search" title={words.detail.gone} />
        )}
      </div>
      <RetrainDialog isOpen={starting} onClose={() => setStarting(false)} />
    </>
  );
}

/** Returns what a run did so far, step by step, with how long each took. */
export function stepsOf(run: Run, approval: Approval | undefined): GateItem[] {
  const detail = words.detail;
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
  if (approvedAt || !started)
    steps.push({
      key: 'queued',
      kind: started ? 'ok' : 'running',
      title: detail.queued,
      value: started ? span(approvedAt, started) : undefined,
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

function RunDetail({ run, approval }: { run: Run; approval: Approval | undefined }) {
  const detail = words.detail;
  const status = useQuery(runQuery(run.flow_run_id)).data;
  const mayCancel = useMay('retrain.trigger');
  const [asking, setAsking] = useState(false);
  const state = stateOf(run);
  const active = activeStates.has(state) && state !== 'CANCELLING';
  const started = parseTime(run.started_at);
  const ended = parseTime(run.ended_at);
  return (
    <div className="grid cols-main r-wide stretch">
      <Panel
        title={words.name(run.model_id, run.model_version)}
        note={detail.title(shortenHash(run.flow_run_id))}
        actions={
          <>
            <Pill kind={runKinds[state] ?? 'unknown'}>{words.states[state] ?? run.state_type}</Pill>
            {active && (
              <Button
                kind="danger"
                disabledReason={mayCancel ? undefined : detail.noRole}
                onPress={() => setAsking(true)}
              >
                {detail.cancel}
              </Button>
            )}
          </>
        }
      >
        {status?.stale && <Note kind="warn">{detail.stale}</Note>}
        <GateList items={stepsOf(run, approval)} />
      </Panel>
      <Panel title={detail.facts}>
        <Facts
          facts={[
            [
              detail.model,
              <Link className="link" to="/models/$name" params={{ name: run.model_id }}>
                {run.model_id}
              </Link>,
            ],
            [detail.dataset, run.dataset_name],
            [
              detail.commit,
              run.commit_sha ? <code title={run.commit_sha}>{shortenCommit(run.commit_sha)}</code> : <Impossible />,
            ],
            [detail.origin, words.via[run.origin] ?? run.origin],
            [detail.started, run.started_at ? <RelativeTime at={run.started_at} /> : <Impossible />],
            [detail.ended_, run.ended_at ? <RelativeTime at={run.ended_at} /> : <Impossible />],
            started && ended ? [detail.took, formatDuration(ended.getTime() - started.getTime())] : undefined,
            [detail.flowRun, <CopyText value={run.flow_run_id} shown={shortenHash(run.flow_run_id)} />],
            status?.tracker_run_id
              ? [
                  detail.trackerRun,
                  <CopyText value={status.tracker_run_id} shown={shortenHash(status.tracker_run_id)} />,
                ]
              : undefined,
          ]}
        />
      </Panel>
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
    </div>
  );
}
