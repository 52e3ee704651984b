import { useId, useState } from 'react';
import type { components } from '../../api/gen/inference';
import { inputReportQuery } from '../../api/queries';
import { Problem } from '../../api/problem';
import { Blank, Message } from '../../components/blank';
import { Button } from '../../components/button';
import { Panel, QueryPanel } from '../../components/panel';
import { State } from '../../components/state';
import { formatCount, formatScore, formatShare } from '../../format/numbers';
import { text } from '../../text';
import { driftKinds } from './columns';
import { useQuery } from '../../state/query';

type Report = components['schemas']['DriftReport'];
type Feature = components['schemas']['DriftFeature'];
type Histogram = components['schemas']['DriftHistogram'];

const words = text.drift;
const names = words.report;

/** How many inputs are shown before the reader expands the list; the service sorts those that moved furthest first. */
const FEW = 6;

/** The inputs of the window against those of the baseline, each as a histogram. */
export function InputReport({ model }: { model: string }) {
  const query = useQuery(inputReportQuery(model));
  const [all, setAll] = useState(false);
  if (query.error instanceof Problem && query.error.status === 404)
    return (
      <Panel title={names.title} flush>
        <Message icon="unknown" title={words.inputsOff}>
          {words.inputsOffHint}
        </Message>
      </Panel>
    );
  return (
    <QueryPanel
      title={names.title}
      query={query}
      note={(report) => names.compared(formatCount(report.n_snapshots), formatCount(report.n_baseline))}
      empty={(report, of) =>
        inputsOf(report).length === 0 ? (
          <Blank of={of} icon="drift" title={words.statuses[report.overall] ?? report.overall}>
            {report.n_baseline === 0 ? names.noBaseline : names.noInputs}
          </Blank>
        ) : undefined
      }
      footer={(report) =>
        inputsOf(report).length > FEW ? (
          <Button onPress={() => setAll(!all)}>{all ? names.fewer : names.more(inputsOf(report).length)}</Button>
        ) : undefined
      }
    >
      {(report) => (
        <>
          <ul className="legend">
            <li>
              <span className="key live" />
              {names.live}
            </li>
            <li>
              <span className="key k0" />
              {names.baseline}
            </li>
          </ul>
          <ul className="histograms">
            {inputsOf(report)
              .slice(0, all ? undefined : FEW)
              .map((feature) => (
                <li key={feature.name}>
                  <Input feature={feature} />
                </li>
              ))}
          </ul>
        </>
      )}
    </QueryPanel>
  );
}

/** The columns, or the statistics of the whole row where a model has no columns, as with embeddings. */
export const inputsOf = (report: Report): Feature[] => (report.features.length ? report.features : report.statistics);

function Input({ feature }: { feature: Feature }) {
  const label = useId();
  const measure = feature.decided_by && (words.measures[feature.decided_by] ?? feature.decided_by);
  return (
    <figure className="histogram" aria-labelledby={label}>
      <figcaption id={label}>
        <State kind={driftKinds[feature.overall] ?? 'unknown'}>{feature.name}</State>
        <span className="small muted">
          {words.statuses[feature.overall] ?? feature.overall}
          {measure && `, ${words.decidedBy(measure)}`}
        </span>
      </figcaption>
      <Bars
        histogram={feature.histogram}
        label={names.label(feature.name, formatCount(feature.n), formatCount(feature.n_baseline))}
      />
      <details className="small">
        <summary>{text.common.showTable}</summary>
        <table className="table plain">
          <thead>
            <tr>
              <th>{feature.kind === 'category' ? names.value : names.range}</th>
              <th className="num">{names.live}</th>
              <th className="num">{names.baseline}</th>
            </tr>
          </thead>
          <tbody>
            {binsOf(feature.histogram).map((bin, i) => (
              <tr key={i}>
                <td>{bin.name}</td>
                <td className="num">{formatShare(bin.live)}</td>
                <td className="num">{formatShare(bin.baseline)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}

/** The bins by name, with the share of the window and of the baseline in each. */
export function binsOf({
  edges,
  classes,
  live,
  baseline,
}: Histogram): { name: string; live: number; baseline: number }[] {
  const count = Math.max(live.length, baseline.length);
  return Array.from({ length: count }, (_, i) => ({
    name:
      classes?.[i] ?? (edges ? names.between(formatScore(edges[i] ?? 0), formatScore(edges[i + 1] ?? 0)) : String(i)),
    live: live[i] ?? 0,
    baseline: baseline[i] ?? 0,
  }));
}

const STEP = 10;
const HEIGHT = 60;

/** Two bars a bin: the window in colour, the baseline grey next to it. Heights are shares, from zero. */
function Bars({ histogram, label }: { histogram: Histogram; label: string }) {
  const bins = binsOf(histogram);
  const most = Math.max(...bins.flatMap((bin) => [bin.live, bin.baseline]), 0.01);
  const tall = (share: number): number => (share / most) * HEIGHT;
  const first = bins[0];
  const last = bins.at(-1);
  if (!first || !last) return null;
  const { edges } = histogram;
  return (
    <div className="chart">
      <svg viewBox={`0 0 ${bins.length * STEP} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {bins.map((bin, i) => (
          <g key={i}>
            <rect
              className="bar0"
              x={i * STEP + 1}
              width={4}
              y={HEIGHT - tall(bin.baseline)}
              height={tall(bin.baseline)}
            />
            <rect className="bar1" x={i * STEP + 5} width={4} y={HEIGHT - tall(bin.live)} height={tall(bin.live)} />
          </g>
        ))}
      </svg>
      <p className="ends small muted">
        <span>{edges ? formatScore(edges[0] ?? 0) : first.name}</span>
        <span>{edges ? formatScore(edges.at(-1) ?? 0) : last.name}</span>
      </p>
    </div>
  );
}
