import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import type { components } from '../../api/gen/controlplane';
import { repositoryModelsQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { Select, Switch } from '../../components/field';
import { text } from '../../text';
import { useQuery } from '../../state/query';

type Dispatch = components['schemas']['Dispatch'];
const words = text.runs.startRun;

/** Starts a training run: of the given model, or of one that is chosen. */
export function RetrainDialog({
  model: fixed,
  isOpen,
  onClose,
}: {
  model?: string;
  isOpen: boolean;
  onClose: () => void;
}) {
  const navigate = useNavigate();
  const models = useQuery({ ...repositoryModelsQuery, enabled: isOpen }).data;
  const [model, setModel] = useState<string | null>(fixed ?? null);
  const [dataset, setDataset] = useState<string | null>(null);
  const [dummy, setDummy] = useState(false);
  const known = models?.find((each) => each.model_name.toLowerCase() === model?.toLowerCase());
  const name = known?.model_name ?? model ?? '';
  const datasets = known?.datasets ?? [];
  const chosen = dataset !== null && datasets.includes(dataset) ? dataset : (datasets[0] ?? null);
  useEffect(() => {
    if (!isOpen) return;
    setModel(fixed ?? null);
    setDataset(null);
    setDummy(false);
  }, [isOpen, fixed]);
  const blocked = known?.external
    ? words.external
    : known && datasets.length === 0
      ? words.noDataset
      : !known || !chosen
        ? words.choose
        : undefined;
  return (
    <ActDialog<Dispatch>
      title={fixed ? words.titleFor(name) : words.title}
      isOpen={isOpen}
      onClose={onClose}
      blocked={blocked}
      act={() => ({
        title: words.doing(name, chosen ?? ''),
        method: 'POST',
        path: '/api/proxy/control_plane/retrain',
        body: { model_name: name, dataset_name: chosen, is_dummy: dummy },
        confirm: words.do,
        done: words.done(name),
        topics: ['runs', 'overview', 'model'],
      })}
      onDone={(run) => void navigate({ to: '/runs/$id', params: { id: run.flow_run_id } })}
    >
      <p className="muted">{words.hint}</p>
      {!fixed && (
        <Select
          label={words.model}
          value={model}
          onChange={setModel}
          placeholder={words.choose}
          options={(models ?? [])
            .filter((each) => !each.external)
            .map((each) => ({ id: each.model_name, label: each.model_name }))}
        />
      )}
      {known && datasets.length > 0 && (
        <Select
          label={words.dataset}
          value={chosen}
          onChange={setDataset}
          options={datasets.map((id) => ({ id, label: id }))}
        />
      )}
      {known && blocked && <p className="small st-warn">{blocked}</p>}
      <div>
        <Switch label={words.dummy} isSelected={dummy} onChange={setDummy} />
        <p className="small faint">{words.dummyHint}</p>
      </div>
    </ActDialog>
  );
}
