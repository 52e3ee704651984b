import { seriesQuery } from '../../api/queries';
import { Button } from '../../components/button';
import { FigurePanel, Show } from '../../components/figure';
import { Chart, type Point } from '../../components/chart';
import { QueryPanel } from '../../components/panel';
import { RelativeTime } from '../../components/time';
import { formatPercent, formatRate } from '../../format/numbers';
import type { Figure } from '../../state/figure';
import { useRange } from '../../state/range';
import type { Version } from './compare';
import { text } from '../../text';
import { useQuery } from '../../state/query';

const words = text.model;

interface Traffic {
  configured: boolean;
  rules: Record<string, number>;
  updated_at?: string | null;
}

export function TrafficPanel({
  traffic: figure,
  versions,
  onEdit,
  refusal,
}: {
  traffic: Figure<Traffic>;
  versions: readonly Version[];
  onEdit: () => void;
  refusal?: string;
}) {
  const names = words.traffic;
  return (
    <FigurePanel
      figure={figure}
      title={names.title}
      note={names.note}
      actions={
        <Button disabledReason={refusal} onPress={onEdit}>
          {names.edit}
        </Button>
      }
    >
      {(traffic) =>
        !traffic.configured || Object.keys(traffic.rules).length === 0 ? (
          <p className="muted">
            <Show figure={figure}>{() => names.none}</Show>
          </p>
        ) : (
          <>
            <ul className="split-bars">
              {Object.entries(traffic.rules).map(([alias, share]) => (
                <li key={alias}>
                  <span className="med">{alias}</span>
                  <span className="faint">
                    {versions.find((version) => version.aliases.includes(alias))
                      ? `v${versions.find((version) => version.aliases.includes(alias))?.version}`
                      : '–'}
                  </span>
                  <span className="meter">
                    <i className={alias === 'Production' ? 'plain' : 'running'} style={{ width: `${share}%` }} />
                  </span>
                  <span className="num">{formatPercent(share)}</span>
                </li>
              ))}
            </ul>
            {traffic.updated_at && (
              <p className="small faint mt">
                {names.updated} <RelativeTime at={traffic.updated_at} />
              </p>
            )}
          </>
        )
      }
    </FigurePanel>
  );
}

export function TrafficSeries({
  model,
  metric,
  height = 180,
}: {
  model: string;
  metric: 'requests' | 'latency_p95';
  height?: number;
}) {
  const query = useQuery(seriesQuery(model, metric, useRange()));
  const title = metric === 'requests' ? words.traffic.requests : words.traffic.latency;
  return (
    <QueryPanel title={title} query={query} skeleton="chart" whole>
      {(data) => (
        <Chart
          label={metric === 'requests' ? words.traffic.label(model) : words.traffic.latencyLabel(model)}
          points={data.points.map(([at, value]): Point => [at ?? 0, value ?? null])}
          unit={data.unit}
          format={formatRate}
          kind={metric === 'requests' ? 'area' : 'line'}
          fromZero
          height={height}
        />
      )}
    </QueryPanel>
  );
}
