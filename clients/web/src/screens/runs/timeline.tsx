import { Link } from '@tanstack/react-router';
import type { components } from '../../api/gen/controlplane';
import { Icon, type StateKind } from '../../components/icon';
import { DAY, formatDateTime, formatDay, formatDuration, formatHour, HOUR, MINUTE, parseTime } from '../../format/time';
import { activeStates } from '../../shell/counts';
import { text } from '../../text';
import { runKinds, stateOf } from './rows';

export type Run = components['schemas']['Run'];
export type Approval = components['schemas']['Approval'];

const words = text.runs;

interface Bar {
  kind: 'a' | 'q' | 't' | 'f' | 'r' | 'w' | 'c';
  from: number;
  to: number;
  label: string;
}

/** Cuts a run into its phases, as far as the records know them. */
export function phasesOf(run: Run, approval: Approval | undefined, now: number): Bar[] {
  const bars: Bar[] = [];
  const requested = parseTime(approval?.requested_at)?.getTime();
  const approved = parseTime(approval?.resolved_at)?.getTime();
  const started = parseTime(run.started_at)?.getTime();
  const ended = parseTime(run.ended_at)?.getTime();
  const state = stateOf(run);
  if (requested !== undefined && approved !== undefined)
    bars.push({ kind: 'a', from: requested, to: approved, label: words.phases.approval });
  const queuedFrom = approved ?? parseTime(run.dispatched_at)?.getTime() ?? started;
  const active = activeStates.has(state);
  if (queuedFrom !== undefined && (started === undefined ? active : started > queuedFrom))
    bars.push({ kind: 'q', from: queuedFrom, to: started ?? now, label: words.phases.queue });
  if (started !== undefined) {
    const kind = state === 'COMPLETED' ? 't' : runKinds[state] === 'critical' ? 'f' : state === 'CANCELLED' ? 'c' : 'r';
    const label =
      kind === 't'
        ? words.phases.train
        : kind === 'f'
          ? words.phases.failed
          : kind === 'c'
            ? words.phases.cancelled
            : words.phases.running;
    bars.push({ kind, from: started, to: ended ?? now, label });
  }
  return bars;
}

export interface Lane {
  key: string;
  kind: StateKind;
  title: string;
  sub: string;
  bars: Bar[];
  to: { run: string } | { approval: string };
}

/** Returns a lane for each run, and for each approval whose run has yet to start. */
export function lanesOf(
  runs: readonly Run[],
  pending: readonly Approval[],
  approvals: ReadonlyMap<string, Approval>,
  now: number,
): Lane[] {
  const waiting: Lane[] = pending
    .filter((approval) => approval.kind === 'retrain')
    .map((approval) => {
      const from = parseTime(approval.requested_at)?.getTime() ?? now;
      return {
        key: approval.id,
        kind: 'warn',
        title: approval.model_id,
        sub: `${words.via[approval.origin] ?? approval.origin}, ${words.waits}`,
        bars: [{ kind: 'w', from, to: now, label: words.phases.waiting }],
        to: { approval: approval.id },
      };
    });
  const lanes: Lane[] = runs.map((run) => {
    const approval = run.approval_id ? approvals.get(run.approval_id) : undefined;
    const who = approval?.resolved_by;
    return {
      key: run.flow_run_id,
      kind: runKinds[stateOf(run)] ?? 'unknown',
      title: words.name(run.model_id, run.model_version),
      sub: [
        words.states[stateOf(run)] ?? run.state_type,
        run.dataset_name,
        who ?? words.via[run.origin] ?? run.origin,
      ].join(', '),
      bars: phasesOf(run, approval, now),
      to: { run: run.flow_run_id },
    };
  });
  return [
    ...lanes.filter((lane) => lane.kind === 'running'),
    ...waiting,
    ...lanes.filter((lane) => lane.kind !== 'running'),
  ];
}

/** Returns the axis' marks: round times, at most six. */
export function axisTicks(from: number, to: number): number[] {
  const steps = [
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
    7 * DAY,
    15 * DAY,
  ];
  const step = steps.find((each) => (to - from) / each <= 6) ?? 30 * DAY;
  const ticks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at < to; at += step) ticks.push(at);
  return ticks;
}

/** Runs as bars on one time axis, phase by phase. */
export function Timeline({ lanes, from, to, now }: { lanes: readonly Lane[]; from: number; to: number; now: number }) {
  const place = (at: number): number => Math.min(100, Math.max(0, ((at - from) / (to - from)) * 100));
  const ticks = axisTicks(from, to);
  const long = to - from > 2 * DAY;
  return (
    <div className="gantt">
      <div className="h">{words.run}</div>
      <div className="axis" aria-hidden="true">
        {ticks
          .filter((tick) => Math.abs(place(tick) - place(now)) > 6)
          .map((tick) => (
            <span key={tick} className={place(tick) < 4 ? 'e0' : undefined} style={{ left: `${place(tick)}%` }}>
              {long ? formatDay(new Date(tick)) : formatHour(new Date(tick))}
            </span>
          ))}
        <span className="now-t" style={{ left: `${place(now)}%` }}>
          {words.now(formatHour(new Date(now)))}
        </span>
      </div>
      {lanes.map((lane) => (
        <LaneRow key={lane.key} lane={lane} ticks={ticks} place={place} now={now} from={from} />
      ))}
    </div>
  );
}

/** A bar of this share of the lane has room for its name and duration, in percent. */
const DURATION_FITS = 24;

function LaneRow({
  lane,
  ticks,
  place,
  now,
  from,
}: {
  lane: Lane;
  ticks: readonly number[];
  place: (at: number) => number;
  now: number;
  from: number;
}) {
  const bars = lane.bars.filter((bar) => bar.to >= from);
  // The duration stands on the bar or, where that is too narrow, beside the lane's last one, which is the work itself.
  const main = bars.at(-1);
  const mainWidth = main ? place(main.to) - place(main.from) : 0;
  const summary = bars
    .map((bar) => `${bar.label} ${formatDateTime(new Date(bar.from))}, ${formatDuration(bar.to - bar.from)}`)
    .join('; ');
  return (
    <>
      <div className="who">
        <Icon name={lane.kind} small className={`st-${lane.kind}`} />
        <span className="grow trunc">
          {'run' in lane.to ? (
            <Link to="/runs/$id" params={{ id: lane.to.run }}>
              {lane.title}
            </Link>
          ) : (
            <Link to="/approvals" search={{ id: lane.to.approval }}>
              {lane.title}
            </Link>
          )}
          <span className="small" title={lane.sub}>
            {lane.sub}
          </span>
        </span>
      </div>
      <div className="lane" role="img" aria-label={summary || lane.sub}>
        {ticks.map((tick) => (
          <i key={tick} className="tick" style={{ left: `${place(tick)}%` }} />
        ))}
        <i className="now" style={{ left: `${place(now)}%` }} />
        {bars.map((bar, i) => {
          const left = place(bar.from);
          const width = Math.max(0.3, place(bar.to) - left);
          const classes = [
            'gbar',
            bar.kind,
            bars.length === 1 ? 'only' : i === 0 ? 'first' : i === bars.length - 1 ? 'last' : '',
          ]
            .filter(Boolean)
            .join(' ');
          return (
            <div
              key={`${bar.kind}${bar.from}`}
              className={classes}
              style={{ left: `${left}%`, width: `${width}%` }}
              title={`${bar.label}: ${formatDateTime(new Date(bar.from))}, ${formatDuration(bar.to - bar.from)}`}
            >
              {width > 6 && bar.label}
              {width > DURATION_FITS && ` ${formatDuration(bar.to - bar.from)}`}
            </div>
          );
        })}
        {main && mainWidth <= DURATION_FITS && (
          <span
            className={place(main.to) > 95 ? 'gdur before' : 'gdur'}
            style={{ left: `${place(main.to) > 95 ? place(bars[0]?.from ?? main.from) : place(main.to)}%` }}
          >
            {formatDuration(main.to - main.from)}
          </span>
        )}
      </div>
    </>
  );
}

export function TimelineLegend() {
  const keys = [
    ['a', words.phases.approval],
    ['q', words.phases.queue],
    ['t', words.phases.train],
    ['r', words.phases.running],
    ['f', words.phases.failed],
    ['c', words.phases.cancelled],
  ] as const;
  return (
    <ul className="legend">
      {keys.map(([kind, label]) => (
        <li key={kind}>
          <i className={`gbar ${kind} only swatch`} />
          {label}
        </li>
      ))}
    </ul>
  );
}
