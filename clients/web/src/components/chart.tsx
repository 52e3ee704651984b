import { lazy, Suspense, useMemo, useState, type KeyboardEvent } from 'react';
import { formatDateTime } from '../format/time';
import { text } from '../text';
import { Boundary } from './boundary';
import { NotMeasured } from './state';

const Plot = lazy(() => import('./plot'));

export type Point = readonly [at: number, value: number | null];

export interface Threshold {
  value: number;
  kind: 'warn' | 'critical';
  label: string;
}

export interface ChartProps {
  /** What the chart shows, in a sentence: range, course, last value. */
  label: string;
  points: readonly Point[];
  unit: string;
  format: (value: number) => string;
  kind?: 'line' | 'area' | 'bars';
  height?: number;
  thresholds?: readonly Threshold[];
  /** The usual range, drawn as a tint. */
  band?: readonly [number, number];
  bandLabel?: string;
  /** Vertical marks with names: an alias that moved. */
  events?: readonly { at: number; label: string }[];
  /** Counts and shares start at zero. */
  fromZero?: boolean;
  legend?: boolean;
  seriesLabel?: string;
}

export interface PlotProps extends ChartProps {
  cursor: number | undefined;
  onCursor: (index: number | undefined) => void;
}

/** A chart with a crosshair for mouse and arrow keys, and its figures as a table behind it. */
export function Chart(props: ChartProps) {
  const { label, points, unit, format, height = 180 } = props;
  const [cursor, setCursor] = useState<number>();
  const known = useMemo(() => points.some(([, value]) => value !== null), [points]);
  const hasGap = useMemo(() => points.some(([, value]) => value === null), [points]);
  if (!known)
    return (
      <figure className="chart">
        <p className="blank-chart" style={{ minHeight: height }}>
          <NotMeasured>{text.common.chart.noPoints}</NotMeasured>
        </p>
      </figure>
    );
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length }[event.key];
    if (step === undefined) {
      if (event.key === 'Escape') setCursor(undefined);
      return;
    }
    event.preventDefault();
    setCursor((at) => Math.max(0, Math.min(points.length - 1, (at ?? points.length - 1) + step)));
  };
  const at = cursor === undefined ? undefined : points[cursor];
  const readout =
    at &&
    `${formatDateTime(new Date(at[0]))}: ${at[1] === null ? text.common.notMeasured : `${format(at[1])} ${unit}`}`;
  return (
    <figure className="chart">
      <div className="chart-unit">{unit}</div>
      <div
        className="plot"
        role="img"
        tabIndex={0}
        aria-label={label}
        title={text.common.chart.keys}
        onKeyDown={move}
        onBlur={() => setCursor(undefined)}
        style={{ height }}
      >
        <Boundary fallback={() => <NotMeasured>{text.common.errors.crash}</NotMeasured>}>
          <Suspense fallback={<div className="sk late-in" style={{ height: height - 30 }} />}>
            <Plot {...props} height={height} cursor={cursor} onCursor={setCursor} />
          </Suspense>
        </Boundary>
      </div>
      <div className={readout ? 'readout' : 'readout empty'} role="status" hidden={!readout}>
        {readout}
      </div>
      {props.legend && <Legend {...props} hasGap={hasGap} />}
      <PointTable {...props} />
    </figure>
  );
}

function Legend({ seriesLabel, band, bandLabel, thresholds, hasGap }: ChartProps & { hasGap: boolean }) {
  return (
    <ul className="legend mt">
      {seriesLabel && (
        <li>
          <i className="key" />
          {seriesLabel}
        </li>
      )}
      {band && (
        <li>
          <i className="key band" />
          {bandLabel ?? text.common.chart.baseline}
        </li>
      )}
      {thresholds?.map((threshold) => (
        <li key={threshold.label}>
          <i className={`key ${threshold.kind === 'warn' ? 'w' : 'c'}`} />
          {threshold.label}
        </li>
      ))}
      {hasGap && (
        <li>
          <i className="key gapk" />
          {text.common.chart.gap}
        </li>
      )}
    </ul>
  );
}

/** The same figures as rows, newest first; at most 200, evenly chosen. */
function PointTable({ label, points, unit, format }: ChartProps) {
  const [open, setOpen] = useState(false);
  const every = Math.max(1, Math.ceil(points.length / 200));
  const rows = open ? [...points].reverse().filter((_, i) => i % every === 0) : [];
  return (
    <details className="data" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{text.common.showTable}</summary>
      <div className="tablewrap data-rows" tabIndex={0} role="group" aria-label={label}>
        <table className="table">
          <caption className="vh">{label}</caption>
          <thead>
            <tr>
              <th scope="col">{text.common.chart.time}</th>
              <th scope="col" className="num">
                {unit}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([at, value]) => (
              <tr key={at}>
                <td>{formatDateTime(new Date(at))}</td>
                <td className="num">{value === null ? <NotMeasured /> : format(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
