// The text of an event. Values come from the event's data.

type Data = Record<string, unknown>;
const word = (data: Data, key: string): string =>
  data[key] === undefined || data[key] === null ? '' : String(data[key]);
const status = (value: string): string => value.charAt(0) + value.slice(1).toLowerCase().replaceAll('_', ' ');

export const events: Record<string, (data: Data) => string> = {
  'job.dispatched': () => 'training was requested',
  'job.started': () => 'training started',
  'job.completed': (d) => (word(d, 'version') ? `trained version ${word(d, 'version')}` : 'training completed'),
  'job.failed': (d) => `training failed${word(d, 'reason') ? `: ${word(d, 'reason')}` : ''}`,
  'job.cancelled': () => 'training was cancelled',
  'job.crashed': () => 'training crashed',
  'job.lost': () => 'training was lost by the orchestrator',
  'job.state_changed': (d) => `job ${word(d, 'job_id')} is ${word(d, 'state')}`,
  'drift.status_changed': (d) => `drift ${status(word(d, 'previous'))} to ${status(word(d, 'status'))}`,
  'drift.baseline_set': () => 'drift baseline set',
  'drift.reset': () => 'recent predictions reset',
  'drift.retrain_requested': () => 'drift requested a retrain',
  'drift.retrain_blocked': () => 'a retrain after drift was blocked',
  'alert.firing': (d) => `alert: ${word(d, 'title')}`,
  'alert.resolved': (d) => `resolved: ${word(d, 'title')}`,
  'alert.acked': () => 'alert acknowledged',
  'deploy.alias_changed': (d) =>
    word(d, 'version') ? `v${word(d, 'version')} moved to ${word(d, 'alias')}` : `${word(d, 'alias')} was removed`,
  'deploy.promoted': (d) => `v${word(d, 'version')} promoted to ${word(d, 'to')}`,
  'deploy.promotion_denied': (d) => `v${word(d, 'version')} held by the gate`,
  'deploy.rolled_back': (d) => `rolled back to v${word(d, 'version')}`,
  'deploy.model_loaded': (d) => `v${word(d, 'version')} loaded without a failed request`,
  'deploy.load_failed': (d) => `v${word(d, 'version')} could not be loaded`,
  'deploy.traffic_changed': () => 'traffic split changed',
  'deploy.shadow_changed': () => 'shadow traffic changed',
  'approval.created': () => 'waits for approval',
  'approval.approved': () => 'approved',
  'approval.rejected': (d) => `rejected${word(d, 'reason') ? `: ${word(d, 'reason')}` : ''}`,
  'approval.expired': () => 'approval expired',
  'approval.dispatch_failed': () => 'approved, but training could not be started',
  'event.push': (d) => `push to ${word(d, 'branch')}`,
  'event.freshness_changed': (d) => `is now ${word(d, 'status')}`,
  'event.config_changed': () => 'configuration changed',
  'event.flag_changed': (d) => `flag ${word(d, 'name')} switched ${d.enabled ? 'on' : 'off'}`,
  'event.notice': () => 'inboxes changed',
  'event.mention': (d) => `mentioned ${word(d, 'user')}`,
};
