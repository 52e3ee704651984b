import { useState } from 'react';
import { Button } from '../../components/button';
import { Panel } from '../../components/panel';
import { Facts } from '../../components/stat';
import { Measured, NotMeasured, State } from '../../components/state';
import { RelativeTime } from '../../components/time';
import { formatCount, formatScore } from '../../format/numbers';
import { useMay } from '../../state/auth';
import { text } from '../../text';
import { AutoRetrainDialog, BaselineDialog, ResetDialog, TriggerDialog, useAutoRetrain } from './acts';
import { driftKinds, type DriftRow } from './columns';

const words = text.drift;

/** The measures of one copy, its auto-retrain setting, and what can be done about it. */
export function DriftFacts({ row }: { row: DriftRow }) {
  const mayManage = useMay('drift.manage');
  const auto = useAutoRetrain(row.model);
  const [asked, setAsked] = useState<'auto' | 'baseline' | 'reset' | 'trigger'>();
  const close = (): void => setAsked(undefined);
  const refusal = mayManage ? undefined : words.noRole;
  const facts = words.facts;
  const spread = (mean: number | null | undefined, std: number | null | undefined) =>
    mean === null || mean === undefined ? (
      <NotMeasured />
    ) : std === null || std === undefined ? (
      formatScore(mean)
    ) : (
      words.spread(formatScore(mean), formatScore(std))
    );
  return (
    <div className="stack">
      <Panel title={facts.title} note={`${row.model} ${row.alias}`}>
        <table className="table plain">
          <tbody>
            {Object.entries(row.measures).map(([name, measure]) => (
              <tr key={name}>
                <td>
                  <State kind={driftKinds[measure.status] ?? 'unknown'}>{words.measures[name] ?? name}</State>
                </td>
                <td className="num">
                  <Measured value={measure.p_value ?? measure.value}>
                    {(value) =>
                      `${measure.p_value !== undefined && measure.p_value !== null ? 'p ' : ''}${formatScore(value)}`
                    }
                  </Measured>
                </td>
              </tr>
            ))}
            {Object.keys(row.measures).length === 0 && (
              <tr>
                <td>
                  <NotMeasured>{facts.none}</NotMeasured>
                </td>
              </tr>
            )}
          </tbody>
        </table>
        <div className="mt">
          <Facts
            facts={[
              [facts.live, spread(row.live_mean, row.live_std)],
              [facts.baseline, spread(row.baseline_mean, row.baseline_std)],
              [facts.snapshots, formatCount(row.n_snapshots)],
              [facts.set, row.baseline_set_at ? <RelativeTime at={row.baseline_set_at} /> : text.common.never],
            ]}
          />
        </div>
        <div className="row wrap mt">
          <Button disabledReason={refusal} onPress={() => setAsked('baseline')}>
            {words.baseline.act}
          </Button>
          <Button kind="danger" disabledReason={refusal} onPress={() => setAsked('reset')}>
            {words.reset.act}
          </Button>
        </div>
      </Panel>
      <Panel
        title={words.auto.title}
        actions={
          <Button disabledReason={refusal} onPress={() => setAsked('auto')}>
            {words.auto.edit}
          </Button>
        }
      >
        <p className="muted">
          {auto
            ? auto.enabled
              ? words.auto.on(auto.min_z.toFixed(1), words.auto.gates[auto.gate_forced ? 'approval' : auto.gate])
              : words.auto.off
            : words.auto.none}
        </p>
        {auto?.last_triggered_at && (
          <p className="small faint">
            {words.trigger.outcomes[auto.last_outcome ?? ''] ?? auto.last_outcome},{' '}
            <RelativeTime at={auto.last_triggered_at} />
          </p>
        )}
        {auto?.enabled && (
          <div className="row mt">
            <Button icon="retry" disabledReason={refusal} onPress={() => setAsked('trigger')}>
              {words.check}
            </Button>
          </div>
        )}
      </Panel>
      <AutoRetrainDialog model={row.model} isOpen={asked === 'auto'} onClose={close} />
      <TriggerDialog model={row.model} isOpen={asked === 'trigger'} onClose={close} />
      <BaselineDialog model={row.model} alias={row.alias} isOpen={asked === 'baseline'} onClose={close} />
      <ResetDialog model={row.model} alias={row.alias} isOpen={asked === 'reset'} onClose={close} />
    </div>
  );
}
