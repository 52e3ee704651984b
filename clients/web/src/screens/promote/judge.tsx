import type { components } from '../../api/gen/controlplane';
import { Problem } from '../../api/problem';
import { Blank, CopyText, Message } from '../../components/blank';
import { AliasChip, GeneratedChip } from '../../components/chip';
import { Select } from '../../components/field';
import { GateList } from '../../components/gate';
import { MetricName } from '../../components/metric-name';
import { Note } from '../../components/note';
import { Panel, QueryPanel } from '../../components/panel';
import { Facts } from '../../components/stat';
import { Impossible, NotMeasured, Pill, State } from '../../components/state';
import { RelativeTime } from '../../components/time';
import { formatChange, formatScore, shortenCommit, shortenHash } from '../../format/numbers';
import { text } from '../../text';
import { explainCheck, nameMetric } from '../../text/metrics';
import { isBetter } from '../model/compare';
import type { Wizard } from './promote';
import { meets, metricNames } from './steps';
import type { Reading } from '../../state/query';
import { useEvidence } from '../../components/evidence';

export type VersionGate = components['schemas']['Gate'];

const words = text.promote;

/** Which version, where it comes from, and whether it is where the policy wants it. */
export function CandidateStep({ wizard, onChoose }: { wizard: Wizard; onChoose: (version: string) => void }) {
  const { candidate, versions, from, to } = wizard;
  const tags = candidate.tags ?? {};
  const digest = tags.artifact_digest;
  return (
    <Panel title={words.candidate.title} note={words.version(candidate.version)}>
      <div className="stack-s">
        <p className="muted">{words.candidate.hint(from)}</p>
        <div className="wizard-choice">
          <Select
            label={words.candidate.choose}
            value={String(candidate.version)}
            onChange={onChoose}
            options={versions.map((version) => ({
              id: String(version.version),
              label: words.version(version.version),
              detail: version.aliases.join(', '),
            }))}
          />
        </div>
        <div className="row wrap chips">
          {candidate.aliases.map((alias) => (
            <AliasChip key={alias} alias={alias} version={candidate.version} />
          ))}
          {tags.data_origin === 'generated' && <GeneratedChip />}
        </div>
        {candidate.aliases.includes(to) ? (
          <Note>{words.candidate.serves(to)}</Note>
        ) : (
          !candidate.aliases.includes(from) && <Note kind="warn">{words.candidate.notFrom(from)}</Note>
        )}
        <Facts
          two
          facts={[
            [words.candidate.registered, <RelativeTime at={candidate.createdAt} />],
            [words.candidate.run, <CopyText value={candidate.runId} shown={shortenHash(candidate.runId)} />],
            [words.candidate.dataset, candidate.params?.dataset ?? <NotMeasured />],
            [
              words.candidate.commit,
              tags.modelrepo_commit ? <code>{shortenCommit(tags.modelrepo_commit)}</code> : <NotMeasured />,
            ],
            [
              words.candidate.digest,
              digest ? <CopyText value={digest} shown={shortenHash(digest)} /> : <NotMeasured />,
            ],
          ]}
        />
      </div>
    </Panel>
  );
}

/** The candidate's figures next to those of the version that serves now, with the rule that counts. */
export function MetricsStep({ wizard }: { wizard: Wizard }) {
  const { candidate, current, policy, to } = wizard;
  const of = useEvidence();
  const names = metricNames(candidate, current, policy?.metric);
  const changes = names.map((name) => {
    const before = current?.metrics?.[name];
    const after = candidate.metrics?.[name];
    return before === undefined || after === undefined ? undefined : isBetter(name, before, after);
  });
  const better = changes.filter((change) => change === true).length;
  const worse = changes.filter((change) => change === false).length;
  const title = words.metrics.title(words.version(candidate.version), current && words.version(current.version));
  return (
    <Panel title={title} flush>
      {names.length === 0 ? (
        <Blank of={of} icon="table" title={words.metrics.none}>
          {words.metrics.noneHint}
        </Blank>
      ) : (
        <>
          <p className="muted wizard-lead">
            {!current
              ? words.metrics.first
              : better + worse > 0
                ? words.metrics.summary(better, worse)
                : words.metrics.same}
          </p>
          <div className="tablewrap" tabIndex={0} role="group" aria-label={title}>
            <table className="table recs">
              <thead>
                <tr>
                  <th scope="col">{words.metrics.metric}</th>
                  {current && (
                    <th scope="col" className="num">
                      {words.version(current.version)}, {to}
                    </th>
                  )}
                  <th scope="col" className="num">
                    {words.version(candidate.version)}
                  </th>
                  {current && (
                    <th scope="col" className="num">
                      {words.metrics.change}
                    </th>
                  )}
                  <th scope="col" className="num">
                    {words.metrics.threshold}
                  </th>
                  <th scope="col">{words.metrics.verdict}</th>
                </tr>
              </thead>
              <tbody>
                {names.map((name) => (
                  <MetricRow key={name} name={name} wizard={wizard} />
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </Panel>
  );
}

function MetricRow({ name, wizard: { candidate, current, policy } }: { name: string; wizard: Wizard }) {
  const before = current?.metrics?.[name];
  const after = candidate.metrics?.[name];
  const rule = policy?.enabled && policy.metric === name ? policy : undefined;
  const met = rule && after !== undefined ? meets(after, rule.operator, rule.threshold) : undefined;
  const change = before === undefined || after === undefined ? undefined : formatChange(before, after);
  const better = before === undefined || after === undefined ? undefined : isBetter(name, before, after);
  return (
    <tr>
      <td className="med">
        <MetricName metric={name} />
      </td>
      {current && (
        <td className="num muted" data-l={words.version(current.version)}>
          {before === undefined ? <NotMeasured /> : formatScore(before)}
        </td>
      )}
      <td className="num strong" data-l={words.version(candidate.version)}>
        {after === undefined ? <NotMeasured /> : formatScore(after)}
      </td>
      {current && (
        <td className="num" data-l={words.metrics.change}>
          {change === undefined ? (
            <Impossible />
          ) : better === undefined ? (
            <span className="faint">{change}</span>
          ) : (
            <span className={better ? 'plus' : 'minus'}>
              {change} {better ? words.metrics.better : words.metrics.worse}
            </span>
          )}
        </td>
      )}
      <td className="num muted" data-l={words.metrics.threshold}>
        {rule ? (
          `${words.gate.operators[rule.operator] ?? rule.operator} ${formatScore(rule.threshold)}`
        ) : (
          <Impossible />
        )}
      </td>
      <td data-l={words.metrics.verdict}>
        {rule && met !== undefined ? (
          <State kind={met ? 'ok' : 'critical'}>{met ? words.metrics.met : words.metrics.missed}</State>
        ) : (
          <span className="faint">{words.metrics.noRule}</span>
        )}
      </td>
    </tr>
  );
}

/** Each check with its reason: a verdict is never shown without one. */
export function GateStep({ wizard, gate }: { wizard: Wizard; gate: Reading<VersionGate> }) {
  const { candidate, policy } = wizard;
  const version = words.version(candidate.version);
  if (gate.error instanceof Problem && gate.error.code === 'policy_not_found') {
    return (
      <Panel title={words.gate.title(version)} flush>
        <Message icon="shield" title={words.gate.noPolicy}>
          {words.gate.noPolicyHint}
        </Message>
      </Panel>
    );
  }
  return (
    <QueryPanel
      title={words.gate.title(version)}
      query={gate}
      actions={(data) => (
        <Pill kind={isOpen(data) ? 'ok' : 'critical'}>{isOpen(data) ? words.gate.open : words.gate.held}</Pill>
      )}
    >
      {(data) => (
        <div className="stack-s">
          <p className="muted">{isOpen(data) ? words.gate.openHint : words.gate.heldHint}</p>
          <GateList items={gateItems(data)} />
          {policy && (
            <p className="small muted">
              {words.gate.policy(
                nameMetric(policy.metric),
                words.gate.operators[policy.operator] ?? policy.operator,
                formatScore(policy.threshold),
              )}
            </p>
          )}
        </div>
      )}
    </QueryPanel>
  );
}

/** Reports whether every check passes. The gate's own word waits for the decision as well, which comes after. */
export const isOpen = (gate: VersionGate): boolean =>
  gate.checks.length > 0 && gate.checks.every((check) => check.pass);

/** Orders the checks that hold a version first. */
export function gateItems(gate: VersionGate) {
  return [...gate.checks]
    .sort((a, b) => Number(a.pass) - Number(b.pass))
    .map((check) => ({
      key: check.name,
      kind: check.pass ? ('ok' as const) : ('critical' as const),
      title: words.gate.checks[check.name] ?? check.name.replaceAll('_', ' '),
      value: check.pass ? words.gate.passed : words.gate.failed,
      detail: explainCheck(check.detail),
    }));
}
