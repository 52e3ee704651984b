import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatCount } from '../format/numbers';
import { DAY, formatDay, formatHour, HOUR } from '../format/time';
import { text } from '../text';
import { groupLabels } from './labels';
import type { PlotProps } from './chart';

type Palette = Record<
  | 'series'
  | 'fill'
  | 'grid'
  | 'axis'
  | 'line'
  | 'band'
  | 'warn'
  | 'warnText'
  | 'critical'
  | 'criticalText'
  | 'bandText'
  | 'fg'
  | 'hatch'
  | 'surface'
  | 'faint'
  | 'old',
  string
>;

const tokens: Record<keyof Palette, string> = {
  series: '--series-1',
  fill: '--chart-fill',
  grid: '--chart-grid',
  axis: '--chart-axis',
  line: '--line-2',
  band: '--chart-band',
  warn: '--warn-solid',
  warnText: '--warn-fg',
  critical: '--critical-solid',
  criticalText: '--critical-fg',
  bandText: '--accent-fg',
  fg: '--fg',
  hatch: '--unknown-line',
  surface: '--surface',
  faint: '--fg-3',
  old: '--n-6',
};

/** Resolves the tokens for a canvas: light-dark() is only resolved in a used colour, so a probe element wears each. */
function readPalette(host: HTMLElement): Palette {
  const probe = document.createElement('span');
  host.append(probe);
  const palette = {} as Palette;
  for (const [name, token] of Object.entries(tokens) as [keyof Palette, string][]) {
    probe.style.color = `var(${token})`;
    palette[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return palette;
}

/** Returns at most five ticks at round values. */
export function niceTicks(low: number, high: number, count = 4): number[] {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10);
  const first = Math.floor(low / step) * step;
  const ticks: number[] = [];
  for (let i = 0; i <= count + 2; i++) {
    const tick = Number((first + i * step).toPrecision(12));
    ticks.push(tick);
    if (tick >= high - step * 1e-9) break;
  }
  return ticks;
}

/** Returns a tick with the digits it needs and no more. */
function formatTick(value: number): string {
  return Math.abs(value) >= 99_999.5
    ? formatCount(value)
    : new Intl.NumberFormat('en-US', { maximumFractionDigits: 3 }).format(value).replace('-', '\u2212');
}

/** Returns round times for the x axis: whole hours, or whole days in UTC. */
function timeTicks(min: number, max: number, room: number): number[] {
  const steps = [
    HOUR / 4,
    HOUR / 2,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    8 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
    30 * DAY,
  ];
  const most = Math.max(2, Math.floor(room / 76));
  const step = steps.find((each) => (max - min) / each <= most) ?? 90 * DAY;
  const ticks: number[] = [];
  // A label is centred on its tick: one at the right edge would be cut off.
  const last = max - ((max - min) / room) * LAST_LABEL;
  for (let at = Math.ceil(min / step) * step; at <= last; at += step) ticks.push(at);
  return ticks;
}

/** Returns the bars that get a label, counted from the newest, so that labels keep clear of each other. */
function thinOut(times: number[], room: number): number[] {
  const every = Math.ceil(times.length / Math.max(1, Math.floor(room / 52)));
  return times.filter((_, i) => (times.length - 1 - i) % every === 0);
}

const LAST_LABEL = 12;
const FONT = '11px -apple-system, "Segoe UI", Inter, Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif';

/** Paints what lies behind the line: band, gaps, thresholds, named events. */
function paintBackdrop(u: uPlot, props: PlotProps, palette: Palette): void {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio;
  const y = (value: number): number => Math.round(u.valToPos(value, 'y', true));
  const x = (value: number): number => Math.round(u.valToPos(value, 'x', true));
  const right = bbox.left + bbox.width;
  ctx.save();
  ctx.font = FONT.replace('11px', `${11 * ratio}px`);
  ctx.lineWidth = ratio;
  const horizontal = (value: number, colour: string, dash: number[]): void => {
    ctx.strokeStyle = colour;
    ctx.setLineDash(dash.map((d) => d * ratio));
    ctx.beginPath();
    ctx.moveTo(bbox.left, y(value) + 0.5);
    ctx.lineTo(right, y(value) + 0.5);
    ctx.stroke();
    ctx.setLineDash([]);
  };
  const caption = (value: number, colour: string, words: string): void => {
    ctx.fillStyle = colour;
    ctx.textAlign = 'left';
    ctx.fillText(words, bbox.left + 6 * ratio, y(value) - 5 * ratio);
  };
  if (props.band) {
    const top = Math.max(bbox.top, y(props.band[1]));
    const bottom = Math.min(bbox.top + bbox.height, y(props.band[0]));
    ctx.fillStyle = palette.band;
    ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
    ctx.globalAlpha = 0.35;
    horizontal(props.band[1], palette.series, []);
    ctx.globalAlpha = 1;
    caption(props.band[1], palette.bandText, props.bandLabel ?? text.common.chart.baseline);
  }
  paintGaps(u, props, palette, x);
  for (const threshold of props.thresholds ?? []) {
    const warns = threshold.kind === 'warn';
    horizontal(threshold.value, warns ? palette.warn : palette.critical, warns ? [4, 3] : []);
    caption(threshold.value, warns ? palette.warnText : palette.criticalText, threshold.label);
  }
  for (const event of props.events ?? []) {
    const at = x(event.at);
    if (at < bbox.left || at > right) continue;
    ctx.strokeStyle = palette.faint;
    ctx.setLineDash([ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(at + 0.5, bbox.top - 4 * ratio);
    ctx.lineTo(at + 0.5, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  ctx.fillStyle = palette.fg;
  const visible = (props.events ?? [])
    .map((event) => ({ label: event.label, at: x(event.at) }))
    .filter(({ at }) => at >= bbox.left && at <= right);
  for (const { label, at } of groupLabels(visible, LABEL_WIDTH * ratio)) {
    ctx.textAlign =
      at > bbox.left + bbox.width * 0.8 ? 'right' : at < bbox.left + bbox.width * 0.15 ? 'left' : 'center';
    ctx.fillText(label, at, bbox.top - 7 * ratio);
  }
  ctx.restore();
}

/** Room that a label over the plot needs, in CSS pixels. */
const LABEL_WIDTH = 72;

function paintGaps(u: uPlot, { points }: PlotProps, palette: Palette, x: (value: number) => number): void {
  const { ctx, bbox } = u;
  let start = -1;
  const first = points.findIndex(([, value]) => value !== null);
  const paint = (from: number, to: number): void => {
    const left = x((points[Math.max(0, from - 1)] ?? [0])[0]);
    const right = x((points[Math.min(points.length - 1, to)] ?? [0])[0]);
    if (right - left < 2) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, bbox.top, right - left, bbox.height);
    ctx.clip();
    ctx.strokeStyle = palette.hatch;
    ctx.globalAlpha = 0.4;
    const gap = 6 * devicePixelRatio;
    for (let at = left - bbox.height; at < right; at += gap) {
      ctx.beginPath();
      ctx.moveTo(at, bbox.top + bbox.height);
      ctx.lineTo(at + bbox.height, bbox.top);
      ctx.stroke();
    }
    ctx.restore();
  };
  points.forEach(([, value], i) => {
    // Before the first figure there was nothing to measure: no gap.
    if (value === null && start < 0 && i > first) start = i;
    if (value !== null && start >= 0) {
      paint(start, i);
      start = -1;
    }
  });
  if (start >= 0) paint(start, points.length - 1);
}

/** Marks the last measured point: it equals the figure in the header. */
function paintLast(u: uPlot, props: PlotProps, palette: Palette): void {
  if (props.kind === 'bars') return;
  const last = props.points.findLast(([, value]) => value !== null);
  if (!last || last[1] === null) return;
  const { ctx } = u;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.arc(u.valToPos(last[0], 'x', true), u.valToPos(last[1], 'y', true), 3 * ratio, 0, 2 * Math.PI);
  ctx.fillStyle = palette.surface;
  ctx.fill();
  ctx.lineWidth = 2 * ratio;
  ctx.strokeStyle = palette.series;
  ctx.stroke();
  ctx.restore();
}

function yRange(props: PlotProps): [number, number] {
  const values = props.points.map(([, value]) => value).filter((value): value is number => value !== null);
  const marks = [...(props.thresholds ?? []).map((t) => t.value), ...(props.band ?? [])];
  const all = [...values, ...marks];
  const fromZero = props.fromZero ?? props.kind !== 'line';
  let low = Math.min(...all, fromZero ? 0 : Infinity);
  let high = Math.max(...all);
  if (low === high) {
    low -= fromZero && low === 0 ? 0 : Math.abs(low) * 0.1 || 1;
    high += Math.abs(high) * 0.1 || 1;
  }
  const ticks = niceTicks(low, high + (high - low) * 0.05);
  return [ticks[0] ?? low, ticks.at(-1) ?? high];
}

function optionsOf(props: PlotProps, palette: Palette, width: number): uPlot.Options {
  const range = yRange(props);
  const times = props.points.map(([at]) => at);
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  const bars = props.kind === 'bars';
  const axis = { stroke: palette.axis, font: FONT, ticks: { show: false } };
  // Half a bar's room at both ends, so that the outer ones are whole.
  const pad = bars && times.length > 1 ? span / (times.length - 1) / 2 : 0;
  return {
    width,
    height: props.height ?? 180,
    ms: 1,
    tzDate: (at) => uPlot.tzDate(new Date(at), 'Etc/UTC'),
    padding: [props.events?.length ? 18 : 8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7, fill: palette.series } },
    scales: {
      x: { time: true, range: () => [(times[0] ?? 0) - pad, (times.at(-1) ?? 1) + pad] },
      y: { range: () => range },
    },
    axes: [
      {
        ...axis,
        size: 26,
        gap: 6,
        grid: { show: false },
        splits: (_u, _i, min, max) => (bars ? thinOut(times, width - 40) : timeTicks(min, max, width - 40)),
        values: (_u, splits) =>
          splits.map((at) => (span <= 2 * DAY && !bars ? formatHour(new Date(at)) : formatDay(new Date(at)))),
      },
      {
        ...axis,
        size: (_u, values) => Math.max(30, 10 + 6.4 * Math.max(0, ...(values ?? []).map((v) => v.length))),
        gap: 8,
        grid: { stroke: palette.grid, width: 1 },
        splits: () => niceTicks(range[0], range[1]),
        values: (_u, splits) => splits.map(formatTick),
      },
    ],
    series: [
      {},
      ...(bars
        ? // Bars compare periods: the current one in colour, earlier ones grey.
          [palette.old, palette.series].map((fill) => ({
            stroke: fill,
            fill,
            width: 0,
            points: { show: false },
            paths: uPlot.paths.bars?.({ size: [0.64, 44], radius: 0.06 }),
          }))
        : [
            {
              stroke: palette.series,
              width: 1.5,
              spanGaps: false,
              fill: props.kind === 'area' ? palette.fill : undefined,
              points: { show: false },
            },
          ]),
    ],
    hooks: {
      drawAxes: [(u) => paintBackdrop(u, props, palette)],
      draw: [(u) => paintLast(u, props, palette)],
      setCursor: [(u) => props.onCursor(u.cursor.idx ?? undefined)],
    },
  };
}

/** Draws on a canvas and redraws when the width, the theme or the figures change. */
export default function Plot(props: PlotProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const shape = JSON.stringify([
    props.points,
    props.thresholds,
    props.band,
    props.events,
    props.kind,
    props.height,
    props.unit,
  ]);

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const draw = (): void => {
      plot.current?.destroy();
      const own: PlotProps = { ...latest.current, onCursor: (index) => latest.current.onCursor(index) };
      const times = own.points.map(([at]) => at);
      const values = own.points.map(([, value]) => value);
      const last = values.length - 1;
      const data: uPlot.AlignedData =
        own.kind === 'bars'
          ? [times, values.map((v, i) => (i < last ? v : null)), values.map((v, i) => (i === last ? v : null))]
          : [times, values];
      plot.current = new uPlot(optionsOf(own, readPalette(element), Math.max(120, element.clientWidth)), data, element);
    };
    draw();
    let width = element.clientWidth;
    const resized = new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      draw();
    });
    resized.observe(element);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    return () => {
      resized.disconnect();
      themed.disconnect();
      scheme.removeEventListener('change', draw);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape]);

  // The arrow keys' crosshair.
  useEffect(() => {
    const u = plot.current;
    const at = props.cursor === undefined ? undefined : props.points[props.cursor];
    if (!u || !at || u.cursor.idx === props.cursor) return;
    u.setCursor({ left: u.valToPos(at[0], 'x'), top: 10 }, false);
  }, [props.cursor, props.points]);

  return <div ref={host} className="plot-host" />;
}
