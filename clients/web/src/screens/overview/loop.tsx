import { Link } from '@tanstack/react-router';
import { approvalsQuery, promotionsQuery, pushesQuery, registryQuery, runsQuery } from '../../api/queries';
import { Icon, type IconName, type StateKind } from '../../components/icon';
import { Show } from '../../components/figure';
import { State } from '../../components/state';
import { describeTime } from '../../components/time';
import { formatCount } from '../../format/numbers';
import { formatDuration, parseTime } from '../../format/time';
import { activeStates } from '../../shell/counts';
import { mapFigure, orElse, read, type Figure, Unknown } from '../../state/figure';
import { useNow } from '../../state/now';
import { boundsOf, useRange } from '../../state/range';
import { text } from '../../text';
import type { Approval } from '../approvals/risk';
import type { RegistryRow } from '../registry/health';
import { useQuery } from '../../state/query';
import { Evidence } from '../../components/evidence';

const words = text.overview.loop;

interface Stage {
  key: string;
  icon: IconName;
  name: string;
  to: string;
  search?: Record<string, string>;
  value: Figure<number>;
  unit: (value: number) => string;
  /** The text under the count; it may know less than the count. */
  detail: Figure<{ say: string; kind?: StateKind }>;
}

const failedStates = new Set(['FAILED', 'CRASHED', 'LOST']);
const drifting = new Set(['WARNING', 'CRITICAL', 'CORRUPT']);
const compared = new Set(['OK', ...drifting]);

/** Returns how many of the models in Production are served, once that is known of each. */
export function countServed(rows: Figure<readonly RegistryRow[]>): Figure<{ served: number; all: number }> {
  return mapFigure(rows, (all) => {
    const production = all.filter((row) => row.aliases?.Production !== undefined);
    const unknown = production.filter((row) => row.served === undefined).length;
    if (unknown > 0) return new Unknown(words.servingUnknown(unknown));
    return { served: production.filter((row) => row.served).length, all: production.length };
  });
}

/** Returns how many models drift among those that were compared with a baseline; none was, none is counted. */
export function countDrifting(
  rows: Figure<readonly RegistryRow[]>,
): Figure<{ drifting: number; critical: number; compared: number; all: number }> {
  return mapFigure(rows, (all) => {
    const known = all.filter((row) => compared.has(row.driftStatus ?? ''));
    if (known.length === 0) return new Unknown(words.nothingCompared);
    const moved = known.filter((row) => drifting.has(row.driftStatus ?? ''));
    return {
      drifting: moved.length,
      critical: moved.filter((row) => row.driftStatus !== 'WARNING').length,
      compared: known.length,
      all: all.length,
    };
  });
}

function useStages(from: Date, now: Date): Stage[] {
  const recent = (at: string | null | undefined): boolean => (parseTime(at)?.getTime() ?? -Infinity) >= from.getTime();
  const pushes = read(useQuery(pushesQuery), (list) => list.filter((push) => recent(push.timestamp)));
  const pending = read(useQuery(approvalsQuery('pending')), (list) => list);
  const runs = read(useQuery(runsQuery()), (list) => list.items);
  const promotions = read(useQuery(promotionsQuery), (list) => list.items);
  const registry = useQuery(registryQuery);
  const rows = (sources: string[]) => read(registry, (view) => view.registry.rows, sources);
  const active = mapFigure(runs, (list) => list.filter((run) => activeStates.has(run.state_type.toUpperCase())));
  const ended = mapFigure(runs, (list) => list.filter((run) => recent(run.ended_at)));
  const failed = mapFigure(
    ended,
    (list) => list.filter((run) => failedStates.has(run.state_type.toUpperCase())).length,
  );
  const served = countServed(rows(['tracker', 'serving']));
  const drift = countDrifting(rows(['tracker', 'drift']));
  const isRunning = (run: { state_type: string }): boolean => run.state_type.toUpperCase() === 'RUNNING';
  const held = { kind: 'warn' as const };
  return [
    {
      key: 'change',
      icon: 'commit',
      name: words.change,
      to: '/approvals',
      value: mapFigure(pushes, (list) => list.length),
      unit: words.pushes,
      detail: mapFigure(pushes, ([last]) => {
        const at = parseTime(last?.timestamp);
        return { say: at ? words.lastPush(describeTime(at, now)) : words.noPush };
      }),
    },
    {
      key: 'approval',
      icon: 'approve',
      name: words.approval,
      to: '/approvals',
      value: mapFigure(pending, (list) => list.length),
      unit: () => words.waiting,
      detail: mapFigure(pending, (list) => {
        const times = list.flatMap((each) => parseTime(each.requested_at)?.getTime() ?? []);
        if (list.length === 0) return { say: words.none };
        return { ...held, say: words.oldest(formatDuration(now.getTime() - Math.min(now.getTime(), ...times))) };
      }),
    },
    {
      key: 'train',
      icon: 'runs',
      name: words.train,
      to: '/runs',
      value: mapFigure(active, (list) => list.filter(isRunning).length),
      unit: () => words.running,
      detail: mapFigure(active, (list) => {
        const queued = list.filter((run) => !isRunning(run)).length;
        const say = queued > 0 ? words.queued(queued) : words.noneQueued;
        return { say, kind: list.length > queued ? 'running' : undefined };
      }),
    },
    {
      key: 'evaluate',
      icon: 'list',
      name: words.evaluate,
      to: '/runs',
      search: orElse(failed, 0) > 0 ? { state: 'failed' } : undefined,
      value: mapFigure(ended, (list) => list.length),
      unit: words.runs,
      detail: mapFigure(failed, (n) =>
        n > 0 ? { say: words.failed(n), kind: 'critical' } : { say: words.noneFailed },
      ),
    },
    {
      key: 'promote',
      icon: 'up',
      name: words.promote,
      to: '/approvals',
      value: mapFigure(
        promotions,
        (list) => list.filter((each) => recent(each.requested_at) && each.state === 'promoted').length,
      ),
      unit: () => words.promoted,
      detail: mapFigure(promotions, (list) => {
        const stopped = list.filter((each) => recent(each.requested_at) && each.state === 'failed').length;
        const open = list.filter((each) => each.state === 'pending').length;
        if (stopped > 0) return { ...held, say: words.held(stopped) };
        return { say: open > 0 ? words.open(open) : words.noneHeld };
      }),
    },
    {
      key: 'serve',
      icon: 'server',
      name: words.serve,
      to: '/models',
      value: mapFigure(served, (count) => count.served),
      unit: () => words.of(orElse(served, { all: NaN }).all),
      detail: mapFigure(served, ({ served: n, all }) => {
        if (all === 0) return { say: words.noProduction };
        return n < all ? { say: words.notServed(all - n), kind: 'critical' } : { say: words.allServed, kind: 'ok' };
      }),
    },
    {
      key: 'drift',
      icon: 'drift',
      name: words.drift,
      to: '/drift',
      value: mapFigure(drift, (count) => count.drifting),
      unit: () => words.of(orElse(drift, { compared: NaN }).compared),
      detail: mapFigure(drift, ({ critical, drifting: n, compared: known, all }) => {
        if (critical > 0) return { say: words.drifting(critical), kind: 'critical' };
        if (n > 0) return { say: words.warnings(n), kind: 'warn' };
        return { say: known < all ? words.notCompared(all - known) : words.noDrift };
      }),
    },
  ];
}

/** The product's seven stages with their counts, and the way back from drift to change. */
export function LoopStrip() {
  const range = useRange();
  const now = useNow();
  const { from } = boundsOf(range, now.getTime());
  const stages = useStages(from, now);
  const retrains = read(useQuery(approvalsQuery()), (list) =>
    list.filter(
      (each) => each.origin === 'drift' && (parseTime(each.requested_at)?.getTime() ?? -Infinity) >= from.getTime(),
    ),
  );
  return (
    <section className="loop" aria-label={words.label(text.shell.ranges[range.key].toLowerCase())}>
      <ol>
        {stages.map((stage) => {
          const kind = stage.detail.kind === 'measured' ? stage.detail.value.kind : undefined;
          return (
            <li key={stage.key}>
              <Link to={stage.to} search={stage.search as never}>
                {kind && kind !== 'ok' && <i className={`bar ${kind}`} />}
                <span className="name">
                  <Icon name={stage.icon} small />
                  {stage.name}
                </span>
                <span className="big">
                  {stage.value.kind === 'measured' ? (
                    <Evidence of={stage.value}>
                      {formatCount(stage.value.value)}
                      <small>{stage.unit(stage.value.value)}</small>
                    </Evidence>
                  ) : (
                    <span className="big-nm">–</span>
                  )}
                </span>
                <span className="det">
                  <Show figure={stage.detail}>
                    {({ say, kind: state }) => (state && state !== 'running' ? <State kind={state}>{say}</State> : say)}
                  </Show>
                </span>
              </Link>
            </li>
          );
        })}
      </ol>
      <div className="back">
        <Icon name="back" small />
        <span>
          <Show figure={retrains}>{(list) => <Retrains approvals={list} />}</Show>
        </span>
        <span className="wire" />
        <span className="faint hide-s">{words.fromDrift}</span>
      </div>
    </section>
  );
}

function Retrains({ approvals }: { approvals: readonly Approval[] }) {
  const waits = approvals.find((approval) => approval.status === 'pending');
  return (
    <>
      {approvals.length === 0 ? words.backNone : words.back(approvals.length)}{' '}
      {waits ? (
        <Link className="link" to="/approvals" search={{ id: waits.id }}>
          {words.waitsFor(waits.model_id)}
        </Link>
      ) : (
        approvals.map((approval) => approval.model_id).join(', ')
      )}
    </>
  );
}
