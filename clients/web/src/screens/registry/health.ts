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

/** A z score from here on is critical; the same bound as alerts and `mlp drift status` use. */
export const CRITICAL_Z = 3;
export const WARNING_Z = 2;

// Filters, counts and sorting compute the health of each row repeatedly.
const known = new WeakMap<RegistryRow, Health>();

/** Returns a row's health with its reasons. The server has three verdicts; how bad a warning is follows from z and its words. */
export function healthOf(row: RegistryRow): Health {
  let health = known.get(row);
  if (!health) known.set(row, (health = judge(row)));
  return health;
}

function judge(row: RegistryRow): Health {
  const reasons = row.healthReasons ?? [];
  if (row.health === 'ok') return { kind: 'ok', reasons };
  if (row.health === 'unknown') return { kind: 'unknown', reasons };
  const critical =
    (row.zScore ?? 0) >= CRITICAL_Z || reasons.some((reason) => /\b(critical|corrupt|not served)\b/i.test(reason));
  return { kind: critical ? 'critical' : 'warn', reasons };
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
