import type { components } from '../../api/gen/dashboard';
import type { StateKind } from '../../components/icon';
import { read, silentSources, type Figure } from '../../state/figure';
import type { Reading } from '../../state/query';
import { severityOf } from '../../components/state';

export type RegistryRow = components['schemas']['RegistryRow'];

export interface Health {
  kind: StateKind;
  reasons: string[];
}

/** Returns a row's health with its reasons. */
export function healthOf(row: RegistryRow): Health {
  return { kind: row.severity, reasons: row.healthReasons ?? [] };
}

/** What the health of a model is made of: each source says what it knows, and the verdict is unknown without one. */
const healthSources = ['tracker', 'drift', 'serving', 'freshness'];

/** Reads the rows, or part of them, as a statement about the models' health by the sources that answered. */
export function readHealth<V>(
  query: Reading<{ registry: { rows: RegistryRow[] } }>,
  pick: (rows: RegistryRow[]) => V | undefined,
): Figure<V> {
  const silent = silentSources(query.data);
  const answered = healthSources.filter((source) => source === 'tracker' || !silent.includes(source));
  return read(query, (view) => pick(view.registry.rows), answered);
}

/** Orders worst first, then by name. */
export function compareHealth(a: RegistryRow, b: RegistryRow): number {
  return severityOf[healthOf(a).kind] - severityOf[healthOf(b).kind] || a.name.localeCompare(b.name, 'en');
}
