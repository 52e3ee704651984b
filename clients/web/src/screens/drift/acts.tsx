import { useEffect, useState } from 'react';
import type { components } from '../../api/gen/controlplane';
import { autoRetrainQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { Dialog } from '../../components/dialog';
import { Button } from '../../components/button';
import { NumberField, Select, Switch } from '../../components/field';
import { GateList } from '../../components/gate';
import type { StateKind } from '../../components/icon';
import { Note } from '../../components/note';
import { formatZ } from '../../format/numbers';
import { text } from '../../text';
import { answered, sourceless, type Figure } from '../../state/figure';
import { useQuery } from '../../state/query';
import { Show } from '../../components/figure';

type AutoRetrain = components['schemas']['AutoRetrain'];
type Triggered = components['schemas']['DriftTriggered'];
const words = text.drift;

interface DialogProps {
  isOpen: boolean;
  onClose: () => void;
}

export function useAutoRetrain(model: string): AutoRetrain | undefined {
  return useQuery(autoRetrainQuery).data?.items.find((row) => row.model.toLowerCase() === model.toLowerCase());
}

/** When a model's drift starts training, and how. */
export function AutoRetrainDialog({ model, isOpen, onClose }: DialogProps & { model: string }) {
  const current = useAutoRetrain(model);
  const [enabled, setEnabled] = useState(false);
  const [minZ, setMinZ] = useState(3);
  const [minutes, setMinutes] = useState(60);
  const [gate, setGate] = useState<AutoRetrain['gate']>('approval');
  const [kind, setKind] = useState<AutoRetrain['kind']>('prediction');
  useEffect(() => {
    if (!isOpen) return;
    setEnabled(current?.enabled ?? true);
    setMinZ(current?.min_z ?? 3);
    setMinutes(Math.round((current?.cooldown_seconds ?? 3600) / 60));
    setGate(current?.gate ?? 'approval');
    setKind(current?.kind ?? 'prediction');
    // Only on opening: a refetch meanwhile must not undo what is being typed.
  }, [isOpen]);
  const auto = words.auto;
  return (
    <ActDialog
      title={auto.dialog(model)}
      isOpen={isOpen}
      onClose={onClose}
      act={() => ({
        title: auto.dialog(model),
        method: 'PUT',
        path: `/api/proxy/control_plane/auto-retrain/${encodeURIComponent(model)}`,
        body: { enabled, min_z: minZ, cooldown_seconds: minutes * 60, gate, kind },
        confirm: auto.save,
        done: auto.saved(model),
        topics: ['drift', 'governance'],
      })}
    >
      <Switch label={auto.enabled} isSelected={enabled} onChange={setEnabled} />
      <div className="grid cols-2">
        <NumberField label={auto.minZ} value={minZ} onChange={setMinZ} min={0.1} max={100} step={0.1} unit="z" />
        <NumberField
          label={auto.cooldown}
          value={minutes}
          onChange={setMinutes}
          min={0}
          max={525_600}
          step={5}
          unit="min"
        />
        <Select
          label={auto.gate}
          value={gate}
          onChange={(value) => setGate(value as AutoRetrain['gate'])}
          options={(['approval', 'direct'] as const).map((id) => ({ id, label: auto.gateLabels[id] }))}
        />
        <Select
          label={auto.kind}
          value={kind}
          onChange={(value) => setKind(value as AutoRetrain['kind'])}
          options={(['prediction', 'input', 'any'] as const).map((id) => ({ id, label: auto.kinds[id] }))}
        />
      </div>
      {current?.gate_forced && gate === 'direct' && <Note kind="warn">{auto.forced}</Note>}
      {enabled && <Note icon="users">{auto.standing}</Note>}
    </ActDialog>
  );
}

const outcomeKinds: Record<string, StateKind> = {
  requested: 'warn',
  dispatched: 'running',
  already_pending: 'warn',
  blocked_corrupt: 'critical',
  failed: 'critical',
  below_threshold: 'ok',
  cooling_down: 'unknown',
  would_trigger: 'warn',
};

/** Checks for drift at once and shows the result for each model. */
export function TriggerDialog({ model, isOpen, onClose }: DialogProps & { model?: string }) {
  const trigger = words.trigger;
  const [results, setResults] = useState<Figure<Triggered['results']>>();
  return (
    <>
      <ActDialog<Triggered>
        title={model ? trigger.titleOne(model) : trigger.title}
        isOpen={isOpen}
        onClose={onClose}
        onDone={(value) => setResults(answered(value.results, 'control_plane'))}
        act={() => ({
          title: model ? trigger.titleOne(model) : trigger.title,
          method: 'POST',
          path: '/api/proxy/control_plane/drift/trigger',
          body: model ? { model } : {},
          confirm: trigger.do,
          done: trigger.done,
          topics: ['drift', 'approvals', 'runs', 'overview'],
        })}
      >
        <p className="muted">{trigger.hint}</p>
      </ActDialog>
      <Dialog
        title={trigger.results}
        isOpen={results !== undefined}
        onClose={() => setResults(undefined)}
        footer={<Button onPress={() => setResults(undefined)}>{text.common.close}</Button>}
      >
        <Show figure={results ?? sourceless}>
          {(list) =>
            list.length === 0 ? (
              <p className="muted">
                <Show figure={results ?? sourceless}>{() => trigger.none}</Show>
              </p>
            ) : (
              <GateList
                items={list.map((result) => ({
                  key: result.model,
                  kind: outcomeKinds[result.outcome] ?? 'unknown',
                  title: result.model,
                  value: result.z_score === undefined ? undefined : `z ${formatZ(result.z_score)}`,
                  detail: [trigger.outcomes[result.outcome] ?? result.outcome, result.reason]
                    .filter(Boolean)
                    .join(': '),
                }))}
              />
            )
          }
        </Show>
      </Dialog>
    </>
  );
}

/** Makes the newest predictions the normal ones. */
export function BaselineDialog({
  model,
  alias = 'Production',
  isOpen,
  onClose,
}: DialogProps & { model: string; alias?: string }) {
  const baseline = words.baseline;
  return (
    <ActDialog
      title={baseline.title(model)}
      isOpen={isOpen}
      onClose={onClose}
      act={() => ({
        title: baseline.title(model),
        method: 'POST',
        path: `/api/proxy/serving/drift/${encodeURIComponent(model)}/baseline`,
        body: { alias },
        confirm: baseline.do,
        done: baseline.done(model),
        topics: ['drift', 'registry', 'model', 'series', 'alerts'],
      })}
    >
      <p className="muted">{baseline.hint}</p>
    </ActDialog>
  );
}

/** Forgets the recent predictions, for a source that was mended. */
export function ResetDialog({
  model,
  alias = 'Production',
  isOpen,
  onClose,
}: DialogProps & { model: string; alias?: string }) {
  const reset = words.reset;
  return (
    <ActDialog
      title={reset.title(model)}
      isOpen={isOpen}
      onClose={onClose}
      danger
      act={() => ({
        title: reset.title(model),
        method: 'POST',
        path: `/api/proxy/serving/drift/${encodeURIComponent(model)}/reset`,
        body: { alias },
        confirm: reset.do,
        done: reset.done(model),
        topics: ['drift', 'registry', 'model', 'series', 'alerts'],
      })}
    >
      <p className="muted">{reset.hint}</p>
    </ActDialog>
  );
}
