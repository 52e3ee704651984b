import type { StateKind } from '../../components/icon';

/** Returns the state for an outcome of the ledger; without an outcome it is not measured. */
export function outcomeKind(outcome: string | undefined): StateKind {
  switch (outcome) {
    case 'ok':
    case 'success':
    case 'succeeded':
    case 'allowed':
      return 'ok';
    case 'denied':
    case 'refused':
    case 'rejected':
      return 'warn';
    case 'failed':
    case 'failure':
    case 'error':
      return 'critical';
    default:
      return 'unknown';
  }
}
