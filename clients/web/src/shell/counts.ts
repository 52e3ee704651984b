import { useQuery } from '@tanstack/react-query';
import { alertsQuery, approvalsQuery, runsQuery } from '../api/queries';

export interface NavCount {
  value: number;
  kind: 'hot' | 'wait' | 'run';
}

/** A run's state types that have not ended. */
export const activeStates = new Set(['SCHEDULED', 'PENDING', 'RUNNING', 'CANCELLING', 'PAUSED']);

/** Returns the work that waits behind each entry; no entry for none. */
export function useNavCounts(): Record<string, NavCount> {
  const alerts = useQuery(alertsQuery());
  const pending = useQuery(approvalsQuery('pending'));
  const runs = useQuery(runsQuery());
  const counts: Record<string, NavCount> = {};
  const firing =
    alerts.data?.inbox.unacknowledged ??
    alerts.data?.inbox.alerts.filter((alert) => alert.state === 'firing').length ??
    0;
  if (firing > 0) {
    const { critical = 0, error = 0 } = alerts.data?.inbox.counts ?? {};
    counts.alerts = { value: firing, kind: critical + error > 0 ? 'hot' : 'wait' };
  }
  if (pending.data?.length) counts.approvals = { value: pending.data.length, kind: 'wait' };
  const active = runs.data?.items.filter((run) => activeStates.has(run.state_type.toUpperCase())).length ?? 0;
  if (active > 0) counts.runs = { value: active, kind: 'run' };
  return counts;
}
