import { seriesQuery } from '../../api/queries';
import type { components } from '../../api/gen/dashboard';
import { Figures, type Stat } from '../../components/stat';
import {
  formatAmount,
  formatCount,
  formatMoney,
  formatPercent,
  formatRate,
  formatScore,
  formatZ,
} from '../../format/numbers';
import { mapFigure, read, type Figure, Unknown } from '../../state/figure';
import { useRange } from '../../state/range';
import { text } from '../../text';
import { useQuery, type Reading } from '../../state/query';

type Detail = components['schemas']['ModelDetail'];
export type ModelQuery = Reading<components['schemas']['ModelView']>;

const words = text.model;

/** The last measured value of a series. */
function useLast(name: string, metric: 'latency_p95'): Figure<number> {
  return read(
    useQuery(seriesQuery(name, metric, useRange())),
    (data) => data.points.findLast(([, each]) => typeof each === 'number')?.[1],
  );
}

/** The requests of the whole range, of those steps that were measured. */
function useRequests(name: string): Figure<number> {
  return read(useQuery(seriesQuery(name, 'requests', useRange())), (data) => {
    const counts = data.points.map(([, each]) => each).filter((each): each is number => typeof each === 'number');
    return counts.length > 0 ? counts.reduce((a, b) => a + b, 0) : undefined;
  });
}

/** The model's figures at a glance; each leads to the tab that it comes from. */
export function ModelFigures({ view }: { view: ModelQuery }) {
  const names = words.figures;
  const range = useRange();
  const detail = view.data?.detail;
  const name = detail?.name ?? '';
  const requests = useRequests(name);
  const latency = useLast(name, 'latency_p95');
  const drift = read(view, (data) => data.detail.drift, ['drift']);
  const traffic = read(view, (data) => data.detail.traffic, ['traffic']);
  const cost = read(view, (data) => data.detail.cost, ['cost']);
  const production = detail?.versions?.find((version) => version.aliases.includes('Production'))?.version;
  const of = drift.kind === 'measured' ? drift.value.version : undefined;
  // Figures of a version that has left the alias are not those of its current version.
  const isEarlier = of !== undefined && production !== undefined && of !== production;
  const mine = <V,>(pick: (value: NonNullable<Detail['drift']>) => V | null | undefined): Figure<V> =>
    mapFigure(drift, (value) => (isEarlier ? new Unknown(names.earlier(production, of)) : pick(value)));
  const tab = (id: 'drift' | 'traffic' | 'cost'): Stat['link'] => ({
    to: '/models/$name',
    params: { name },
    search: (prev: Record<string, unknown>) => ({ ...prev, tab: id }) as never,
  });
  const stats: Stat[] = [
    {
      label: names.drift,
      link: tab('drift'),
      value: mapFigure(
        mine((value) => value.zScore),
        (z) => <span className={z >= 3 ? 'st-critical' : z >= 2 ? 'st-warn' : undefined}>{formatZ(z)}</span>,
      ),
      unit: 'z',
      note: isEarlier ? names.earlier(production, of) : names.driftFrom,
    },
    {
      label: names.mean,
      link: tab('drift'),
      value: mapFigure(
        mine((value) => value.mean_prediction),
        formatScore,
      ),
      found: mapFigure(drift, ({ baselineMean }) =>
        typeof baselineMean === 'number' ? names.meanBaseline(formatScore(baselineMean)) : names.noBaseline,
      ),
    },
    {
      label: names.requests,
      link: tab('traffic'),
      value: mapFigure(requests, formatCount),
      unit: text.shell.ranges[range.key].toLowerCase(),
      found: mapFigure(traffic, ({ rules }) => {
        const aside = Object.entries(rules).filter(([alias, share]) => alias !== 'Production' && share > 0);
        return aside.length
          ? aside.map(([alias, share]) => names.split(formatPercent(share), alias)).join(', ')
          : names.allProduction;
      }),
    },
    { label: names.latency, link: tab('traffic'), value: mapFigure(latency, formatRate), unit: 'ms p95' },
    {
      label: names.gpu,
      link: tab('cost'),
      value: mapFigure(cost, (each) => formatRate(each.gpu_hours)),
      unit: 'GPU h',
      found: mapFigure(cost, (each) => names.runs(each.runs)),
    },
    {
      label: names.cost,
      link: tab('cost'),
      value: mapFigure(cost, (each) => formatAmount(each.cost_usd)),
      unit: 'USD',
      found: mapFigure(cost, (each) =>
        each.synthetic_cost_usd
          ? names.synthetic(formatMoney(each.synthetic_cost_usd))
          : each.runs > 0
            ? names.perRun(formatMoney(each.cost_usd / each.runs))
            : names.runs(0),
      ),
    },
  ];
  return <Figures stats={stats} />;
}
