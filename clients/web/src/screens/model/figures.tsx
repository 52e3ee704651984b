import { useQuery } from '@tanstack/react-query';
import { seriesQuery } from '../../api/queries';
import type { components } from '../../api/gen/dashboard';
import { Figures, type Stat } from '../../components/stat';
import { Measured, NotMeasured } from '../../components/state';
import {
  formatAmount,
  formatCount,
  formatMoney,
  formatPercent,
  formatRate,
  formatScore,
  formatZ,
} from '../../format/numbers';
import { useRange } from '../../state/range';
import { text } from '../../text';

type Detail = components['schemas']['ModelDetail'];

const words = text.model;

/** The last measured value of a series. */
function useLast(name: string, metric: 'latency_p95'): { value: number; unit: string } | undefined {
  const data = useQuery(seriesQuery(name, metric, useRange())).data;
  const value = data?.points.findLast(([, each]) => each !== null && each !== undefined)?.[1];
  return data && value !== null && value !== undefined ? { value, unit: data.unit } : undefined;
}

/** The requests of the whole range; undefined while none of it was measured. */
function useRequests(name: string): { value: number; unit: string } | undefined {
  const data = useQuery(seriesQuery(name, 'requests', useRange())).data;
  const counts = data?.points.map(([, each]) => each).filter((each): each is number => typeof each === 'number');
  return data && counts?.length ? { value: counts.reduce((a, b) => a + b, 0), unit: data.unit } : undefined;
}

/** The model's figures at a glance; each leads to the tab that it comes from. */
export function ModelFigures({ detail }: { detail: Detail }) {
  const names = words.figures;
  const range = useRange();
  const requests = useRequests(detail.name);
  const latency = useLast(detail.name, 'latency_p95');
  const { drift, cost, traffic } = detail;
  const z = drift?.zScore;
  const aside = Object.entries(traffic?.rules ?? {}).filter(([alias, share]) => alias !== 'Production' && share > 0);
  const tab = (name: 'drift' | 'traffic' | 'cost'): Stat['link'] => ({
    to: '/models/$name',
    params: { name: detail.name },
    search: (prev: Record<string, unknown>) => ({ ...prev, tab: name }) as never,
  });
  const stats: Stat[] = [
    {
      label: names.drift,
      link: tab('drift'),
      value: (
        <Measured value={z}>
          {(value) => (
            <span className={value >= 3 ? 'st-critical' : value >= 2 ? 'st-warn' : undefined}>{formatZ(value)}</span>
          )}
        </Measured>
      ),
      unit: z === null || z === undefined ? undefined : 'z',
      note: names.driftFrom,
    },
    {
      label: names.mean,
      link: tab('drift'),
      value: <Measured value={drift?.mean_prediction}>{formatScore}</Measured>,
      note:
        drift?.baselineMean === null || drift?.baselineMean === undefined
          ? names.noBaseline
          : names.meanBaseline(formatScore(drift.baselineMean)),
    },
    {
      label: names.requests,
      link: tab('traffic'),
      value: requests ? formatCount(requests.value) : <NotMeasured />,
      unit: requests && text.shell.ranges[range.key].toLowerCase(),
      note: aside.length
        ? aside.map(([alias, share]) => names.split(formatPercent(share), alias)).join(', ')
        : names.allProduction,
    },
    {
      label: names.latency,
      link: tab('traffic'),
      value: latency ? formatRate(latency.value) : <NotMeasured />,
      unit: latency && `${latency.unit} p95`,
      note: latency ? undefined : names.latencyNotKept,
    },
    {
      label: names.gpu,
      link: tab('cost'),
      value: cost ? formatRate(cost.gpu_hours) : <NotMeasured />,
      unit: cost && 'GPU h',
      note: cost && names.runs(cost.runs),
    },
    {
      label: names.cost,
      link: tab('cost'),
      value: cost ? formatAmount(cost.cost_usd) : <NotMeasured />,
      unit: cost && 'USD',
      note: cost
        ? cost.synthetic_cost_usd
          ? names.synthetic(formatMoney(cost.synthetic_cost_usd))
          : cost.runs > 0
            ? names.perRun(formatMoney(cost.cost_usd / cost.runs))
            : names.runs(0)
        : undefined,
    },
  ];
  return <Figures stats={stats} />;
}
