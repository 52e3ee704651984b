// What a person did, as the rest of a sentence that begins with the person. The keys are events and actions of the
// ledger; the object is the model, or whatever else the entry is about.

type Data = Record<string, unknown>;
type Deed = (object: string, data: Data) => string;
const word = (data: Data, key: string): string =>
  data[key] === undefined || data[key] === null ? '' : String(data[key]);
const version = (data: Data): string => (word(data, 'version') ? ` v${word(data, 'version')}` : '');
const because = (data: Data): string => (word(data, 'reason') ? `: ${word(data, 'reason')}` : '');
/** A training or a promotion waits, is approved or rejected. */
const matter = (object: string, data: Data): string =>
  `the ${data.kind === 'promotion' ? 'promotion' : 'training'} of ${object}`;

const train: Deed = (o) => `requested training of ${o}`;
const cancel: Deed = (o) => `cancelled training of ${o}`;
const request: Deed = (o, d) => `requested ${matter(o, d)}`;
const approve: Deed = (o, d) => `approved ${d.kind ? matter(o, d) : o}`;
const reject: Deed = (o, d) => `rejected ${d.kind ? matter(o, d) : o}${because(d)}`;
const acknowledge: Deed = (o) => `acknowledged the alert ${o}`;
const rollBack: Deed = (o, d) => `rolled ${o} back${version(d) && ` to${version(d)}`}`;
const approvePromotion: Deed = (o) => `approved the promotion of ${o}`;
const rejectPromotion: Deed = (o) => `rejected the promotion of ${o}`;
const split: Deed = (o) => `changed the traffic split of ${o}`;
const baseline: Deed = (o) => `set the drift baseline of ${o}`;
const reset: Deed = (o) => `reset the recent predictions of ${o}`;
const setPolicy: Deed = (o) => `set the promotion policy of ${o}`;

export const deeds: Record<string, Deed> = {
  'job.dispatched': train,
  'run.created': train,
  'retrain.requested': train,
  'retrain.dispatched': train,
  'job.cancelled': cancel,
  'run.cancel': cancel,
  'run.cancelled': cancel,
  'approval.created': request,
  'approval.requested_again': (o) => `requested ${o} again`,
  'approval.approve': approve,
  'approval.approved': approve,
  'approval.first_approved': (o) => `gave the first of two approvals of ${o}`,
  'approval.reject': reject,
  'approval.rejected': reject,
  'alert.ack': acknowledge,
  'alert.acked': acknowledge,
  'deploy.promoted': (o, d) => `promoted ${o}${version(d)}${word(d, 'to') && ` to ${word(d, 'to')}`}`,
  'model.promote': (o) => `promoted ${o}`,
  'promotion.opened': (o) => `requested the promotion of ${o}`,
  'promotion.approve': approvePromotion,
  'promotion.approved': approvePromotion,
  'promotion.first_approved': (o) => `gave the first of two approvals of the promotion of ${o}`,
  'promotion.reject': rejectPromotion,
  'promotion.rejected': rejectPromotion,
  'deploy.rolled_back': rollBack,
  'alias.rolled_back': rollBack,
  'deploy.traffic_changed': split,
  'traffic.set': split,
  'traffic.clear': (o) => `removed the traffic split of ${o}`,
  'deploy.shadow_changed': (o) => `changed the shadow traffic of ${o}`,
  'drift.baseline_set': baseline,
  'drift.reset': reset,
  'event.flag_changed': (_, d) => `switched the flag ${word(d, 'name')} ${d.enabled ? 'on' : 'off'}`,
  'flag.set': (o) => `switched the flag ${o}`,
  'flag.clear': (o) => `reset the flag ${o}`,
  'event.mention': (o, d) => `mentioned ${word(d, 'user')} in a comment on ${o}`,
  'event.config_changed': () => 'changed the configuration',
  'event.push': (_, d) => `pushed to ${word(d, 'branch')}`,
  'config.set': (o) => `changed the setting ${o}`,
  'config.clear': (o) => `reset the setting ${o}`,
  'channel.add': () => 'added a notification channel',
  'channel.change': () => 'changed a notification channel',
  'channel.delete': () => 'deleted a notification channel',
  'comment.add': () => 'wrote a comment',
  'comment.delete': () => 'removed a comment',
  'copilot.query': () => 'asked the assistant',
  'assistant.decide': () => 'decided on a change that the assistant proposed',
  'snapshot.create': () => 'took a snapshot of a view',
  'auto_retrain.enabled': (o) => `switched auto-retrain of ${o} on`,
  'auto_retrain.disabled': (o) => `switched auto-retrain of ${o} off`,
  'auto_retrain.set': (o) => `set auto-retrain of ${o}`,
  'budget.set': (o) => `set the budget ${o}`,
  'budget.removed': (o) => `removed the budget ${o}`,
  'compliance.set': (o) => `set the risk class of ${o}`,
  'model_card.set': (o) => `wrote the model card of ${o}`,
  'eval.recorded': (o) => `recorded an evaluation of ${o}`,
  'cost.recorded': () => 'recorded usage',
  'llm_endpoint.set': (o) => `set the LLM endpoint ${o}`,
  'llm_endpoint.removed': (o) => `removed the LLM endpoint ${o}`,
  'policy.set': setPolicy,
  'promotion_policy.set': setPolicy,
  'promotion_policy.removed': (o) => `removed the promotion policy of ${o}`,
  'modelrepo.synced': () => 'read the model repository',
  'modelrepo.config_set': () => 'changed the settings of the model repository',
  'modelrepo.pushed': () => 'pushed to the model repository',
  'setting.changed': (o) => `changed the setting ${o}`,
};

/** How a run stands, after the person who requested it. */
export const runStates: Record<string, (data: Data) => string> = {
  'job.started': () => 'it is running',
  'job.completed': (d) => (word(d, 'version') ? `version ${word(d, 'version')} is trained` : 'it has completed'),
  'job.failed': (d) => `it failed${because(d)}`,
  'job.cancelled': () => 'it was cancelled',
  'job.crashed': () => 'it crashed',
  'job.lost': () => 'the orchestrator lost it',
  'run.started': () => 'it is running',
  'run.completed': () => 'it has completed',
  'run.failed': () => 'it failed',
  'run.cancelled': () => 'it was cancelled',
  'run.crashed': () => 'it crashed',
  'run.lost': () => 'the orchestrator lost it',
};
