import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { approvalsQuery, promotionsQuery, pushesQuery, registryQuery, runsQuery } from '../../api/queries';
import { Icon, type IconName, type StateKind } from '../../components/icon';
import { NotMeasured, State } from '../../components/state';
import { describeTime } from '../../components/time';
import { formatCount } from '../../format/numbers';
import { formatDuration, parseTime } from '../../format/time';
import { activeStates } from '../../shell/counts';
import { useNow } from '../../state/now';
import { boundsOf, useRange } from '../../state/range';
import { text } from '../../text';
import { healthOf } from '../registry/health';

const words = text.overview.loop;

interface Stage {
  key: string;
  icon: IconName;
  name: string;
  to: string;
  search?: Record<string, string>;
  value: number | undefined;
  unit: string;
  state?: StateKind;
  detail: ReactNode;
}

const failedStates = new Set(['FAILED', 'CRASHED', 'LOST']);

/** The product's seven stages with their counts, and the way back from drift to change. */
export function LoopStrip() {
  const range = useRange();
  const now = useNow();
  const { from } = boundsOf(range, now.getTime());
  const pushes = useQuery(pushesQuery).data;
  const pending = useQuery(approvalsQuery('pending')).data;
  const everyApproval = useQuery(approvalsQuery()).data;
  const runs = useQuery(runsQuery()).data?.items;
  const promotions = useQuery(promotionsQuery).data?.items;
  const rows = useQuery(registryQuery).data?.registry.rows;
  const recent = (at: string | null | undefined): boolean => (parseTime(at)?.getTime() ?? 0) >= from.getTime();

  const lately = pushes?.filter((push) => recent(push.timestamp));
  const lastPush = parseTime(lately?.[0]?.timestamp);
  const oldest = pending
    ?.map((a) => parseTime(a.requested_at)?.getTime() ?? Infinity)
    .reduce((a, b) => Math.min(a, b), Infinity);
  const running = runs?.filter((run) => run.state_type.toUpperCase() === 'RUNNING').length;
  const queued = (runs?.filter((run) => activeStates.has(run.state_type.toUpperCase())).length ?? 0) - (running ?? 0);
  const ended = runs?.filter((run) => recent(run.ended_at));
  const failed = ended?.filter((run) => failedStates.has(run.state_type.toUpperCase())).length ?? 0;
  const decided = promotions?.filter((promotion) => recent(promotion.requested_at));
  const promoted = decided?.filter((promotion) => promotion.state === 'promoted').length;
  const held = decided?.filter((promotion) => promotion.state === 'failed').length ?? 0;
  const open = promotions?.filter((promotion) => promotion.state === 'pending').length ?? 0;
  const production = rows?.filter((row) => row.aliases?.Production !== undefined);
  const unserved =
    production?.filter((row) => (row.healthReasons ?? []).some((reason) => /not served/i.test(reason))).length ?? 0;
  const drifting = rows?.filter((row) => (row.zScore ?? 0) >= 2).length;
  const critical =
    rows?.filter((row) => (row.zScore ?? 0) >= 3 || (healthOf(row).kind === 'critical' && (row.zScore ?? 0) >= 2))
      .length ?? 0;

  const stages: Stage[] = [
    {
      key: 'change',
      icon: 'commit',
      name: words.change,
      to: '/approvals',
      value: lately?.length,
      unit: words.pushes(lately?.length ?? 0),
      detail: lastPush ? words.lastPush(describeTime(lastPush, now)) : words.noPush,
    },
    {
      key: 'approval',
      icon: 'approve',
      name: words.approval,
      to: '/approvals',
      value: pending?.length,
      unit: words.waiting,
      state: pending?.length ? 'warn' : undefined,
      detail:
        pending?.length && oldest !== undefined && Number.isFinite(oldest) ? (
          <State kind="warn">{words.oldest(formatDuration(now.getTime() - oldest))}</State>
        ) : (
          words.none
        ),
    },
    {
      key: 'train',
      icon: 'runs',
      name: words.train,
      to: '/runs',
      value: running,
      unit: words.running,
      state: running ? 'running' : undefined,
      detail: queued > 0 ? words.queued(queued) : words.noneQueued,
    },
    {
      key: 'evaluate',
      icon: 'list',
      name: words.evaluate,
      to: '/runs',
      search: failed ? { state: 'failed' } : undefined,
      value: ended?.length,
      unit: words.runs(ended?.length ?? 0),
      state: failed ? 'critical' : undefined,
      detail: failed ? <State kind="critical">{words.failed(failed)}</State> : words.noneFailed,
    },
    {
      key: 'promote',
      icon: 'up',
      name: words.promote,
      to: '/approvals',
      value: promoted,
      unit: words.promoted,
      detail: held ? <State kind="warn">{words.held(held)}</State> : open ? words.open(open) : words.noneHeld,
    },
    {
      key: 'serve',
      icon: 'server',
      name: words.serve,
      to: '/models',
      value: production?.length === undefined ? undefined : production.length - unserved,
      unit: words.of(rows?.length ?? 0),
      state: unserved ? 'critical' : undefined,
      detail: unserved ? (
        <State kind="critical">{words.notServed(unserved)}</State>
      ) : production?.length ? (
        <State kind="ok">{words.allServed}</State>
      ) : (
        words.none
      ),
    },
    {
      key: 'drift',
      icon: 'drift',
      name: words.drift,
      to: '/drift',
      value: drifting,
      unit: words.of(rows?.length ?? 0),
      state: critical ? 'critical' : drifting ? 'warn' : undefined,
      detail: critical ? (
        <State kind="critical">{words.drifting(critical)}</State>
      ) : drifting ? (
        <State kind="warn">{words.warnings(drifting)}</State>
      ) : (
        words.noDrift
      ),
    },
  ];
  const retrains =
    everyApproval?.filter((approval) => approval.origin === 'drift' && recent(approval.requested_at)) ?? [];
  const waits = retrains.find((approval) => approval.status === 'pending');
  return (
    <section className="loop" aria-label={words.label(text.shell.ranges[range.key].toLowerCase())}>
      <ol>
        {stages.map((stage) => (
          <li key={stage.key}>
            <Link to={stage.to} search={stage.search as never}>
              {stage.state && <i className={`bar ${stage.state}`} />}
              <span className="name">
                <Icon name={stage.icon} small />
                {stage.name}
              </span>
              <span className="big">
                {stage.value === undefined ? <span className="big-nm">–</span> : formatCount(stage.value)}
                <small>{stage.value === undefined ? '' : stage.unit}</small>
              </span>
              <span className="det">{stage.value === undefined ? <NotMeasured /> : stage.detail}</span>
            </Link>
          </li>
        ))}
      </ol>
      <div className="back">
        <Icon name="back" small />
        <span>
          {retrains.length === 0 ? words.backNone : words.back(retrains.length)}{' '}
          {waits ? (
            <Link className="link" to="/approvals" search={{ id: waits.id }}>
              {words.waitsFor(waits.model_id)}
            </Link>
          ) : (
            retrains.length > 0 && retrains.map((approval) => approval.model_id).join(', ')
          )}
        </span>
        <span className="wire" />
        <span className="faint hide-s">{words.fromDrift}</span>
      </div>
    </section>
  );
}
