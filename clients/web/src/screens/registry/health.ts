import type { components } from '../../api/gen/dashboard';
import type { StateKind } from '../../components/icon';
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

/** Orders worst first, then by name. */
export function compareHealth(a: RegistryRow, b: RegistryRow): number {
  return severityOf[healthOf(a).kind] - severityOf[healthOf(b).kind] || a.name.localeCompare(b.name, 'en');
}
