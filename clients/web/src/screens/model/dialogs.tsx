import { useEffect, useState } from 'react';
import { ActDialog } from '../../components/act-dialog';
import { NumberField, Select } from '../../components/field';
import { Note } from '../../components/note';
import { orElse, type Figure } from '../../state/figure';
import { text } from '../../text';
import type { Version } from './compare';
import type { Move } from './history';

interface Props {
  model: string;
  isOpen: boolean;
  onClose: () => void;
}

const aliases = ['Production', 'Canary', 'Staging'] as const;

/** Sets which share of the requests each alias answers. */
export function TrafficDialog({
  model,
  rules,
  versions,
  isOpen,
  onClose,
}: Props & { rules: Record<string, number>; versions: readonly Version[] }) {
  const words = text.model.traffic;
  const [shares, setShares] = useState<Record<string, number>>({ Production: 100 });
  useEffect(() => {
    if (isOpen) setShares(Object.keys(rules).length ? rules : { Production: 100 });
    // Only on opening: a refetch meanwhile must not undo what is being typed.
  }, [isOpen]);
  const sum = aliases.reduce((total, alias) => total + (shares[alias] ?? 0), 0);
  const chosen = Object.fromEntries(
    aliases.filter((alias) => (shares[alias] ?? 0) > 0).map((alias) => [alias, shares[alias] ?? 0]),
  );
  const missing = aliases.find(
    (alias) => (shares[alias] ?? 0) > 0 && !versions.some((version) => version.aliases.includes(alias)),
  );
  const rule = Object.entries(chosen)
    .map(([alias, share]) => `${alias} ${share} %`)
    .join(', ');
  return (
    <ActDialog
      title={words.dialog(model)}
      isOpen={isOpen}
      onClose={onClose}
      blocked={sum === 100 ? undefined : words.sum(sum)}
      act={() => ({
        title: words.act(model, rule),
        method: 'PUT',
        path: `/api/proxy/serving/traffic-rules/${encodeURIComponent(model)}`,
        body: chosen,
        confirm: words.do,
        done: words.done(model),
        topics: ['traffic', 'model', 'registry', 'overview'],
      })}
    >
      <p className="muted">{words.hint}</p>
      <div className="grid cols-3">
        {aliases.map((alias) => (
          <NumberField
            key={alias}
            label={alias}
            value={shares[alias] ?? 0}
            min={0}
            max={100}
            step={1}
            unit="%"
            onChange={(value) => setShares((old) => ({ ...old, [alias]: Number.isFinite(value) ? value : 0 }))}
          />
        ))}
      </div>
      {sum !== 100 && <p className="small st-warn">{words.sum(sum)}</p>}
      {missing && <Note kind="warn">{words.noAlias(missing)}</Note>}
    </ActDialog>
  );
}

const noMoves: Move[] = [];

/** Moves Production back to a version that held it before. */
export function RollbackDialog({ model, moves, isOpen, onClose }: Props & { moves: Figure<readonly Move[]> }) {
  const words = text.model.rollback;
  const none = moves.kind === 'measured' ? text.model.rollback.none : text.model.rollback.unknown;
  const held = orElse(moves, noMoves).filter(
    (move) => move.alias === 'Production' && move.version !== null && move.version !== undefined,
  );
  const current = held.find((move) => !move.to)?.version;
  const former = [...new Set(held.map((move) => move.version as number))].filter((version) => version !== current);
  const [version, setVersion] = useState<string | null>(null);
  useEffect(() => {
    if (isOpen) setVersion(null);
  }, [isOpen]);
  const chosen = version ?? (former[0] === undefined ? undefined : String(former[0]));
  return (
    <ActDialog
      title={words.title(model)}
      isOpen={isOpen}
      onClose={onClose}
      danger
      blocked={chosen === undefined ? none : undefined}
      reason={{ label: words.reason, required: true }}
      act={(reason) => ({
        title: words.act(model, `v${current ?? '–'}`, `v${chosen ?? '–'}`),
        method: 'POST',
        path: `/api/proxy/control_plane/aliases/${encodeURIComponent(model)}/Production/rollback`,
        body: { version: chosen, reason },
        confirm: words.do,
        done: words.done(model, `v${chosen ?? ''}`),
        topics: ['registry', 'model', 'promotions', 'drift', 'overview'],
      })}
    >
      <p className="muted">{words.hint}</p>
      {former.length > 0 ? (
        <Select
          label={words.version}
          value={chosen ?? null}
          onChange={setVersion}
          options={former.map((each) => ({ id: String(each), label: `v${each}` }))}
        />
      ) : (
        <p className="st-warn">{none}</p>
      )}
    </ActDialog>
  );
}
