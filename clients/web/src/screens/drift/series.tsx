import type { ReactNode } from 'react';
import { seriesQuery } from '../../api/queries';
import { Chart, type Point, type Threshold } from '../../components/chart';
import { QueryPanel } from '../../components/panel';
import { formatScore, formatZ } from '../../format/numbers';
import { useRange } from '../../state/range';
import { text } from '../../text';
import { useQuery } from '../../state/query';

const words = text.drift.series;

export function thresholdsOf(thresholds: Record<string, number>): Threshold[] {
  const marks: Threshold[] = [];
  if (thresholds.warning !== undefined)
    marks.push({
      value: thresholds.warning,
      kind: 'warn',
      label: text.common.chart.warning(thresholds.warning.toFixed(1)),
    });
  if (thresholds.critical !== undefined)
    marks.push({
      value: thresholds.critical,
      kind: 'critical',
      label: text.common.chart.critical(thresholds.critical.toFixed(1)),
    });
  return marks;
}

/** Drift z over time: baseline band, thresholds, alias moves and gaps. */
export function DriftChart({
  model,
  events,
  height = 268,
  actions,
}: {
  model: string;
  events?: readonly { at: number; label: string }[];
  height?: number;
  actions?: ReactNode;
}) {
  const query = useQuery(seriesQuery(model, 'z_score', useRange()));
  return (
    <QueryPanel
      title={words.title}
      note={words.note('Production')}
      query={query}
      skeleton="chart"
      whole
      actions={actions}
    >
      {(data) => {
        const points = data.points.map(([at, value]): Point => [at ?? 0, value ?? null]);
        const last = points.findLast(([, value]) => value !== null)?.[1];
        return (
          <Chart
            label={words.label(model, last === undefined || last === null ? text.common.notMeasured : formatZ(last))}
            points={points}
            unit="z score"
            format={formatZ}
            thresholds={thresholdsOf(data.thresholds)}
            band={[0, 1]}
            events={events}
            fromZero
            height={height}
            legend
            seriesLabel={words.line}
          />
        );
      }}
    </QueryPanel>
  );
}

/** The mean prediction against the baseline's. */
export function MeanChart({ model, height = 200 }: { model: string; height?: number }) {
  const query = useQuery(seriesQuery(model, 'prediction_mean', useRange()));
  return (
    <QueryPanel title={words.mean} query={query} skeleton="chart" whole>
      {(data) => {
        const { baseline } = data.thresholds;
        return (
          <Chart
            label={words.meanLabel(model)}
            points={data.points.map(([at, value]): Point => [at ?? 0, value ?? null])}
            unit={data.unit}
            format={formatScore}
            kind="line"
            height={height}
            band={baseline === undefined ? undefined : [baseline * 0.98, baseline * 1.02]}
          />
        );
      }}
    </QueryPanel>
  );
}
