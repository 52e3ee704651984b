import { useMemo, useState } from 'react';
import { configKeysQuery, configQuery, registryQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { Chip } from '../../components/chip';
import { Dialog } from '../../components/dialog';
import { Select, TextField } from '../../components/field';
import { FilterBar, TextFilter } from '../../components/filters';
import { Note } from '../../components/note';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { RelativeTime } from '../../components/time';
import { useMay } from '../../state/auth';
import { text } from '../../text';
import { canClear, clearKey, faultOf, forget, typeInto, type ConfigKey, type ConfigValues, type Draft } from './draft';
import { useQuery } from '../../state/query';
import { readLast, orElse, read } from '../../state/figure';

const words = text.config;
const groups = ['url', 'text', 'secret'] as const;

export function ConfigScreen() {
  const keys = useQuery(configKeysQuery);
  const config = useQuery(configQuery);
  const mayWrite = useMay('config.write');
  const [draft, setDraft] = useState<Draft>({});
  const [saving, setSaving] = useState(false);
  const [adding, setAdding] = useState(false);
  const [q, setQ] = useState('');
  const values = config.data?.values ?? {};
  const all = useMemo(() => withDrafted(orElse(readLast(keys), []), draft), [keys.data, draft]);
  const needle = q.trim().toLowerCase();
  const shown = all.filter((key) => `${key.key} ${key.description}`.toLowerCase().includes(needle));
  const changed = Object.keys(draft);
  const faulty = all.find((key) => faultOf(key, draft[key.key]) !== undefined);
  return (
    <>
      <PageHead
        title={words.title}
        sub={keys.data && words.sub(keys.data.filter((key) => key.has_value).length, keys.data.length)}
      />
      <div className="stack">
        {!mayWrite && keys.data && <Note icon="lock">{words.readOnly}</Note>}
        <Panel title={words.title} flush className="filter-panel">
          <FilterBar>
            <TextFilter label={words.filter} value={q} onChange={setQ} />
          </FilterBar>
        </Panel>
        {groups.map((group) => {
          const mine = shown.filter((key) => key.type === group);
          return (
            <QueryPanel
              key={group}
              title={words.groups[group]}
              query={keys.isSuccess && config.isError ? (config as unknown as typeof keys) : keys}
              note={words.groupNotes[group]}
              flush
              skeleton="table"
              actions={
                group === 'text' && mayWrite ? (
                  <Button small onPress={() => setAdding(true)}>
                    {words.addThreshold}
                  </Button>
                ) : undefined
              }
              empty={(_, of) =>
                mine.length === 0 ? <Blank of={of} icon="filter" title={text.common.noMatch} /> : undefined
              }
            >
              {() => (
                <ul className="cfg">
                  {mine.map((key) => (
                    <KeyRow
                      key={key.key}
                      definition={key}
                      stored={values[key.key]}
                      draft={draft}
                      onDraft={setDraft}
                      mayWrite={mayWrite}
                    />
                  ))}
                </ul>
              )}
            </QueryPanel>
          );
        })}
      </div>
      {changed.length > 0 && (
        <div className="savebar" role="group" aria-label={words.pending(changed.length)}>
          <span className="grow">{words.pending(changed.length)}</span>
          <Button onPress={() => setDraft({})}>{words.discard}</Button>
          <Button
            kind="primary"
            onPress={() => setSaving(true)}
            disabledReason={faulty ? words.fixFirst(faulty.key) : undefined}
          >
            {words.review}
          </Button>
        </div>
      )}
      <SaveDialog
        isOpen={saving}
        onClose={() => setSaving(false)}
        draft={draft}
        keys={all}
        values={values}
        etag={config.data?.etag}
        onSaved={() => setDraft({})}
      />
      {adding && (
        <ThresholdDialog
          onClose={() => setAdding(false)}
          onAdd={(key, value) => setDraft((old) => ({ ...old, [key]: value }))}
        />
      )}
    </>
  );
}

/** Thresholds exist once they have a value: those of the draft are shown among the others. */
function withDrafted(keys: readonly ConfigKey[], draft: Draft): ConfigKey[] {
  const known = new Set(keys.map((key) => key.key));
  const added = Object.keys(draft)
    .filter((key) => !known.has(key))
    .map<ConfigKey>((key) => ({
      key,
      is_secret: false,
      has_value: false,
      type: 'text',
      description: words.thresholdHint,
      source: 'default',
    }));
  return [...keys, ...added];
}

function KeyRow({
  definition,
  stored,
  draft,
  onDraft,
  mayWrite,
}: {
  definition: ConfigKey;
  stored: string | null | undefined;
  draft: Draft;
  onDraft: (change: (draft: Draft) => Draft) => void;
  mayWrite: boolean;
}) {
  const { key, is_secret: secret, has_value, source, description, updated_at, updated_by } = definition;
  const touched = key in draft;
  const clearing = draft[key] === null;
  const fault = faultOf(definition, draft[key]);
  const shown = secret ? (draft[key] ?? '') : touched ? (draft[key] ?? '') : (stored ?? '');
  return (
    <li className={touched ? 'touched' : undefined}>
      <div className="cfg-key">
        <code className="med">{key}</code>
        <span className="faint small db">{description}</span>
      </div>
      <div className="cfg-value">
        {mayWrite && !(secret && clearing) ? (
          <TextField
            label={key}
            quietLabel
            type={secret ? 'password' : 'text'}
            autoComplete={secret ? 'new-password' : 'off'}
            spellCheck="false"
            value={shown}
            placeholder={secret ? (has_value ? words.blankKeeps : words.newSecret) : words.notSet}
            error={fault && words.problems[fault]}
            onChange={(typed) => onDraft((old) => typeInto(old, definition, stored, typed))}
          />
        ) : secret && clearing ? (
          <span className="st-warn">{words.willClear}</span>
        ) : secret ? (
          has_value ? (
            <span className="muted">{words.hidden}</span>
          ) : (
            <span className="faint">{words.notSet}</span>
          )
        ) : stored ? (
          <code className="small wrap-any">{stored}</code>
        ) : (
          <span className="faint">{words.notSet}</span>
        )}
      </div>
      <div className="cfg-meta small">
        {touched ? (
          <Chip kind="cand">{clearing ? words.willClear : words.willSet}</Chip>
        ) : (
          <span className="muted">
            {has_value ? (
              <>
                {secret && `${words.hidden}, `}
                {words.sources[source]}
              </>
            ) : (
              <span className="faint">{words.notSet}</span>
            )}
          </span>
        )}
        {updated_at && (
          <span className="faint">
            <RelativeTime at={updated_at} /> {updated_by && words.by(updated_by)}
          </span>
        )}
      </div>
      {mayWrite && (
        <div className="cfg-acts">
          {touched ? (
            <Button small kind="ghost" label={words.undoKey(key)} onPress={() => onDraft((old) => forget(old, key))}>
              {words.undo}
            </Button>
          ) : (
            canClear(definition) && (
              <Button
                small
                kind="ghost"
                label={words.clearKey(key)}
                onPress={() => onDraft((old) => clearKey(old, key))}
              >
                {words.clear}
              </Button>
            )
          )}
        </div>
      )}
    </li>
  );
}

function SaveDialog({
  isOpen,
  onClose,
  draft,
  keys,
  values,
  etag,
  onSaved,
}: {
  isOpen: boolean;
  onClose: () => void;
  draft: Draft;
  keys: readonly ConfigKey[];
  values: ConfigValues;
  etag: string | undefined;
  onSaved: () => void;
}) {
  const changes = Object.entries(draft);
  const n = changes.length;
  const isSecret = (name: string): boolean => keys.find((key) => key.key === name)?.is_secret ?? false;
  const before = (name: string): string =>
    values[name] == null ? words.notSet : isSecret(name) ? words.secretSet : String(values[name]);
  const after = (name: string, value: string | null): string =>
    value === null ? (isSecret(name) ? words.clearedSecret : words.cleared) : isSecret(name) ? words.secretNew : value;
  return (
    <ActDialog
      title={words.dialog(n)}
      isOpen={isOpen}
      onClose={onClose}
      wide
      danger={changes.some(([name, value]) => value === null && isSecret(name))}
      onDone={onSaved}
      act={() => ({
        title: words.dialog(n),
        method: 'PUT',
        path: '/api/config',
        body: draft,
        ifMatch: etag,
        secrets: changes.filter(([name, value]) => value !== null && isSecret(name)).map(([name]) => name),
        confirm: words.confirm(n),
        done: words.done(n),
        topics: ['config', 'health', 'governance', 'audit'],
      })}
    >
      <p className="muted">{words.explain}</p>
      <div className="tablewrap">
        <table className="table recs">
          <thead>
            <tr>
              <th scope="col">{words.columns.key}</th>
              <th scope="col">{words.from}</th>
              <th scope="col">{words.to}</th>
            </tr>
          </thead>
          <tbody>
            {changes.map(([name, value]) => (
              <tr key={name}>
                <td className="name">
                  <code>{name}</code>
                </td>
                <td data-l={words.from} className="wrap-any">
                  {before(name)}
                </td>
                <td data-l={words.to} className="wrap-any med">
                  {after(name, value)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </ActDialog>
  );
}

function ThresholdDialog({ onClose, onAdd }: { onClose: () => void; onAdd: (key: string, value: string) => void }) {
  const rows = orElse(
    read(useQuery(registryQuery), (view) => view.registry.rows, ['tracker']),
    [],
  );
  const [model, setModel] = useState<string | null>(null);
  const [value, setValue] = useState('');
  const number = Number(value);
  const ready = model !== null && value.trim() !== '' && Number.isFinite(number) && number >= 0;
  return (
    <Dialog
      title={words.thresholdTitle}
      isOpen
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>{text.common.back}</Button>
          <Button
            kind="primary"
            isDisabled={!ready}
            onPress={() => {
              onAdd(`threshold_${model?.toLowerCase()}_rmse`, value.trim());
              onClose();
            }}
          >
            {words.add}
          </Button>
        </>
      }
    >
      <Select
        label={words.thresholdModel}
        options={rows.map((row) => ({ id: row.name, label: row.name }))}
        value={model}
        onChange={setModel}
        placeholder={text.governance.compliance.pick}
      />
      <TextField
        label={words.thresholdValue}
        hint={words.thresholdHint}
        inputMode="decimal"
        value={value}
        onChange={setValue}
      />
    </Dialog>
  );
}
