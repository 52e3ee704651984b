import { useState } from 'react';
import type { components } from '../../api/gen/dashboard';
import { policiesQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { useEvidence } from '../../components/evidence';
import { FigureParts } from '../../components/figure';
import { Select } from '../../components/field';
import { MetricName } from '../../components/metric-name';
import { Panel } from '../../components/panel';
import { Impossible, State } from '../../components/state';
import { formatChange, formatScore } from '../../format/numbers';
import { type Figure } from '../../state/figure';
import { text } from '../../text';
import type { Gate } from './gate';
import { useQuery } from '../../state/query';

export type Version = components['schemas']['ModelVersion'];

const words = text.model.versus;
const lowerIsBetter = /rmse|mae|mse|mape|male|loss|error|latency|p9\d/i;

/** Reports whether a metric got better; undefined where it did not move. */
export function isBetter(name: string, from: number, to: number): boolean | undefined {
  if (from === to) return undefined;
  return lowerIsBetter.test(name) ? to < from : to > from;
}

/** Returns the versions to compare unless the address names them: the one that serves, and its next successor. */
export function defaultPair(versions: readonly Version[]): { left?: string; right?: string } {
  const holder = (alias: string) => versions.find((version) => version.aliases.includes(alias));
  const left = holder('Production') ?? versions[1];
  const right = [holder('Canary'), holder('Staging'), ...versions].find(
    (version) => version !== undefined && version !== left,
  );
  return { left: left && String(left.version), right: right && String(right.version) };
}

interface CompareProps {
  model: string;
  versions: Figure<readonly Version[]>;
  gate?: Gate;
  left?: string;
  right?: string;
  onChange: (pair: { left?: string; right?: string }) => void;
}

/** Metrics of two versions side by side, with the rule and its verdict. */
export function ComparePanel(props: CompareProps) {
  return (
    <FigureParts figure={props.versions} title={words.heading}>
      {(versions) => <Comparison {...props} versions={versions} />}
    </FigureParts>
  );
}

function Comparison({
  model,
  versions,
  gate,
  left,
  right,
  onChange,
}: Omit<CompareProps, 'versions'> & { versions: readonly Version[] }) {
  const of = useEvidence();
  const policy = useQuery(policiesQuery).data?.items.find((each) => each.model.toLowerCase() === model.toLowerCase());
  const initial = defaultPair(versions);
  const a = versions.find((version) => String(version.version) === (left ?? initial.left));
  const b = versions.find((version) => String(version.version) === (right ?? initial.right));
  const [showAll, setShowAll] = useState(false);
  const every = [...new Set([...Object.keys(b?.metrics ?? {}), ...Object.keys(a?.metrics ?? {})])]
    .filter((name) => !name.startsWith('baseline_'))
    .sort();
  const names = every.filter((name) => showAll || !name.startsWith('val_'));
  if (!a || !b)
    return (
      <Panel title={words.heading} flush>
        <Blank of={of} icon="cube" title={versions.length === 0 ? words.none : words.one}>
          {words.oneHint}
        </Blank>
      </Panel>
    );
  const options = versions.map((version) => ({
    id: String(version.version),
    label: `v${version.version}`,
    detail: version.aliases.join(', '),
  }));
  const params = [...new Set([...Object.keys(a.params ?? {}), ...Object.keys(b.params ?? {})])]
    .filter((name) => a.params?.[name] !== b.params?.[name])
    .sort();
  const judged = gate?.version === b.version ? gate : undefined;
  return (
    <Panel
      title={words.title(String(a.version), String(b.version))}
      flush
      actions={
        <>
          <Select
            label={words.left}
            quietLabel
            value={String(a.version)}
            options={options}
            onChange={(value) => onChange({ left: value, right: String(b.version) })}
          />
          <span className="faint">{words.against}</span>
          <Select
            label={words.right}
            quietLabel
            value={String(b.version)}
            options={options}
            onChange={(value) => onChange({ left: String(a.version), right: value })}
          />
        </>
      }
      footer={
        params.length === 0 ? (
          words.sameParams
        ) : (
          <span>
            {words.params}:{' '}
            {params.map((name, i) => (
              <span key={name}>
                {i > 0 && ', '}
                <code>{name}</code> {a.params?.[name] ?? '–'} → <b className="med">{b.params?.[name] ?? '–'}</b>
              </span>
            ))}
          </span>
        )
      }
    >
      {names.length === 0 ? (
        <Blank of={of} icon="unknown" title={words.noMetrics} />
      ) : (
        <div className="tablewrap" role="group" aria-label={words.title(String(a.version), String(b.version))}>
          <table className="table recs">
            <thead>
              <tr>
                <th scope="col">{words.metric}</th>
                <th scope="col" className="num drop-m" title={words.baselineTitle}>
                  {words.baseline}
                </th>
                <th scope="col" className="num">
                  v{a.version}
                </th>
                <th scope="col" className="num">
                  v{b.version}
                </th>
                <th scope="col" className="num">
                  {words.change}
                </th>
                <th scope="col" className="num">
                  {words.threshold}
                </th>
                <th scope="col">{words.verdict}</th>
              </tr>
            </thead>
            <tbody>
              {names.map((name) => (
                <MetricRow
                  key={name}
                  name={name}
                  baseline={b.metrics?.[`baseline_running_${name}`] ?? b.metrics?.[`baseline_${name}`]}
                  from={a.metrics?.[name]}
                  to={b.metrics?.[name]}
                  left={`v${a.version}`}
                  right={`v${b.version}`}
                  judged={judged?.eval.metrics[name]}
                  rule={policy?.metric === name ? policy : undefined}
                />
              ))}
            </tbody>
          </table>
          {every.length > names.length && (
            <p className="pad-s">
              <button type="button" className="link" onClick={() => setShowAll(true)}>
                {words.showAll(every.length - names.length)}
              </button>
            </p>
          )}
        </div>
      )}
    </Panel>
  );
}

interface MetricRowProps {
  name: string;
  baseline: number | undefined;
  from: number | undefined;
  to: number | undefined;
  left: string;
  right: string;
  judged: Gate['eval']['metrics'] extends infer M ? (M extends Record<string, infer V> ? V | undefined : never) : never;
  rule?: { operator: string; threshold: number };
}

const signs: Record<string, string> = { lt: '<', lte: '≤', gt: '>', gte: '≥' };
const passes: Record<string, (value: number, threshold: number) => boolean> = {
  lt: (v, t) => v < t,
  lte: (v, t) => v <= t,
  gt: (v, t) => v > t,
  gte: (v, t) => v >= t,
};

function MetricRow({ name, baseline, from, to, left, right, judged, rule }: MetricRowProps) {
  const change = from !== undefined && to !== undefined ? formatChange(from, to) : undefined;
  const better = from !== undefined && to !== undefined ? isBetter(name, from, to) : undefined;
  const passed = judged
    ? judged.passed
    : rule && to !== undefined
      ? passes[rule.operator]?.(to, rule.threshold)
      : undefined;
  const threshold = judged?.threshold ?? rule?.threshold;
  const sign = rule ? signs[rule.operator] : lowerIsBetter.test(name) ? '≤' : '≥';
  return (
    <tr>
      <td className="med">
        <MetricName metric={name} />
      </td>
      <td className="num muted drop-m" data-l={words.baseline}>
        {baseline === undefined ? <Impossible /> : formatScore(baseline)}
      </td>
      <td className="num" data-l={left}>
        {from === undefined ? <Impossible /> : formatScore(from)}
      </td>
      <td className="num strong" data-l={right}>
        {to === undefined ? <Impossible /> : formatScore(to)}
      </td>
      <td className="num" data-l={words.change}>
        {change === undefined ? (
          <Impossible />
        ) : (
          // Only a metric that a rule judges is coloured.
          <span className={passed === undefined || better === undefined ? 'faint' : better ? 'plus' : 'minus'}>
            {change} {better === undefined ? '' : better ? words.better : words.worse}
          </span>
        )}
      </td>
      <td className="num muted" data-l={words.threshold}>
        {threshold === undefined || threshold === null ? <Impossible /> : `${sign} ${formatScore(threshold)}`}
      </td>
      <td data-l={words.verdict}>
        {passed === undefined ? (
          <State kind="unknown">{words.noRule}</State>
        ) : passed ? (
          <State kind="ok">{words.met}</State>
        ) : (
          <State kind="critical">{words.missed}</State>
        )}
      </td>
    </tr>
  );
}
