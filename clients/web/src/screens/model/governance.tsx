import { activityQuery, policiesQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { FigureParts } from '../../components/figure';
import { Feed } from '../../components/feed';
import { GateList } from '../../components/gate';
import { ButtonLink } from '../../components/link';
import { Panel, QueryPanel } from '../../components/panel';
import { Facts } from '../../components/stat';
import { Pill } from '../../components/state';
import { RelativeTime } from '../../components/time';
import { formatScore } from '../../format/numbers';
import { parseTime } from '../../format/time';
import { type Figure } from '../../state/figure';
import { text } from '../../text';
import { nameMetric } from '../../text/metrics';
import { gateItems, isInPlace, type Gate } from './gate';
import { useQuery } from '../../state/query';

const words = text.model;

/** The gate's verdict on the candidate, with each reason. */
export function GatePanel({ gate: figure }: { gate: Figure<Gate> }) {
  return (
    <FigureParts figure={figure} title={words.gate.title}>
      {(gate) => <Verdict figure={figure} gate={gate} />}
    </FigureParts>
  );
}

function Verdict({ figure, gate }: { figure: Figure<Gate>; gate: Gate }) {
  if (gate.version === null || gate.version === undefined)
    return (
      <Panel title={words.gate.title} of={figure} flush>
        <Blank of={figure} icon="up" title={words.gate.none}>
          {gate.policy.reasons.join('; ') || words.gate.noneHint}
        </Blank>
      </Panel>
    );
  if (isInPlace(gate))
    return (
      <Panel title={words.gate.title} of={figure} note={words.gate.version(String(gate.version))} flush>
        <Blank of={figure} icon="ok" title={words.gate.inPlace}>
          {words.gate.inPlaceHint}
        </Blank>
      </Panel>
    );
  return (
    <Panel
      title={words.gate.title}
      of={figure}
      note={words.gate.version(String(gate.version))}
      actions={<Pill kind={gate.allowed ? 'ok' : 'critical'}>{gate.allowed ? words.gate.open : words.gate.held}</Pill>}
    >
      <GateList items={gateItems(gate)} />
    </Panel>
  );
}

/** The model's promotion policy and its ledger entries. */
export function GovernancePanels({ model }: { model: string }) {
  const policies = useQuery(policiesQuery);
  const activity = useQuery(activityQuery('model', model));
  const names = words.governance;
  return (
    <>
      <QueryPanel
        title={names.policy}
        query={policies}
        empty={(data, of) =>
          data.items.some((each) => each.model.toLowerCase() === model.toLowerCase()) ? undefined : (
            <Blank
              of={of}
              icon="shield"
              title={names.noPolicy}
              actions={<ButtonLink to="/governance">{text.shell.nav.governance}</ButtonLink>}
            >
              {names.noPolicyHint}
            </Blank>
          )
        }
      >
        {(data) => {
          const policy = data.items.find((each) => each.model.toLowerCase() === model.toLowerCase());
          return (
            policy && (
              <Facts
                two
                facts={[
                  [
                    names.rule,
                    <b className="med">{`${nameMetric(policy.metric)} ${names.ops[policy.operator] ?? policy.operator} ${formatScore(policy.threshold)}`}</b>,
                  ],
                  [names.moves, `${policy.from_alias} → ${policy.to_alias}`],
                  [names.enabled, policy.enabled ? names.yes : names.no],
                  [names.needsEval, policy.require_eval ? names.yes : names.no],
                  [names.approval, names.modes[policy.approval_mode] ?? policy.approval_mode],
                  [
                    names.changed,
                    <>
                      {policy.updated_by}, <RelativeTime at={policy.updated_at} />
                    </>,
                  ],
                ]}
              />
            )
          );
        }}
      </QueryPanel>
      <QueryPanel
        title={names.activity}
        query={activity}
        flush
        empty={(data, of) =>
          data.activity.length === 0 ? <Blank of={of} icon="list" title={names.activityNone} /> : undefined
        }
      >
        {(data) => (
          <Feed
            label={names.activity}
            entries={[...data.activity]
              .reverse()
              .slice(0, 30)
              .map((entry, i) => ({
                key: `${entry.ts}${i}`,
                icon: entry.kind === 'comment' ? 'chat' : 'lock',
                what: entry.detail,
                who: entry.actor,
                at: parseTime(entry.ts) ?? new Date(0),
              }))}
          />
        )}
      </QueryPanel>
    </>
  );
}
