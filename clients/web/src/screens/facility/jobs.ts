import type { components } from '../../api/gen/dashboard';
import type { StateKind } from '../../components/icon';

export type QueueJob = components['schemas']['QueueJob'];

const running = new Set(['RUNNING', 'R', 'COMPLETING', 'CG']);
const waiting = new Set(['SUBMITTED', 'PENDING', 'PD', 'CONFIGURING', 'CF']);

export function isWaiting(state: string): boolean {
  return waiting.has(state.toUpperCase());
}

export function jobKind(state: string): StateKind {
  const upper = state.toUpperCase();
  if (running.has(upper)) return 'running';
  if (waiting.has(upper)) return 'warn';
  if (upper === 'COMPLETED' || upper === 'CD') return 'ok';
  if (['FAILED', 'TIMEOUT', 'NODE_FAIL', 'OUT_OF_MEMORY', 'F', 'TO'].includes(upper)) return 'critical';
  return 'unknown';
}

/** Returns how long a waiting job has waited until now: the server's count, plus the time since it was received. */
export function waitOf(job: Pick<QueueJob, 'waitSec' | 'state'>, toldAt: number, now: number): number {
  const grown = isWaiting(job.state) ? Math.max(0, now - toldAt) : 0;
  return job.waitSec * 1000 + grown;
}
