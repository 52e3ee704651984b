import type { StateKind } from '../../components/icon';

/** Returns the state that an outcome of the ledger stands for; what it does not say is not measured. */
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
