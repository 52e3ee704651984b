import { alertsQuery, approvalsQuery, runsQuery } from '../api/queries';
import { read, type Figure } from '../state/figure';
import { useQuery } from '../state/query';

export interface NavCount {
  /** Of work; without any, nothing is shown, so that it has to be known that there is none. */
  value: Figure<number>;
  kind: 'hot' | 'wait' | 'run';
}

/** A run's state types that have not ended. */
export const activeStates = new Set(['SCHEDULED', 'PENDING', 'RUNNING', 'CANCELLING', 'PAUSED']);

/** Returns the work that waits behind each entry. */
export function useNavCounts(): Record<string, NavCount> {
  const alerts = useQuery(alertsQuery());
  const { critical, error } = alerts.data?.inbox.counts ?? {};
  return {
    alerts: {
      value: read(
        alerts,
        ({ inbox }) => inbox.unacknowledged ?? inbox.alerts.filter((alert) => alert.state === 'firing').length,
        ['alerts'],
      ),
      kind: critical || error ? 'hot' : 'wait',
    },
    approvals: { value: read(useQuery(approvalsQuery('pending')), (list) => list.length), kind: 'wait' },
    runs: {
      value: read(
        useQuery(runsQuery()),
        ({ items }) => items.filter((run) => activeStates.has(run.state_type.toUpperCase())).length,
      ),
      kind: 'run',
    },
  };
}
