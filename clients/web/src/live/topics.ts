// Which views an event makes old. A query's key begins with its topic.

export const topics = [
  'overview',
  'registry',
  'model',
  'series',
  'approvals',
  'promotions',
  'runs',
  'drift',
  'traffic',
  'alerts',
  'facility',
  'llmops',
  'governance',
  'finops',
  'health',
  'config',
  'flags',
  'audit',
  'comments',
  'inbox',
  'notifications',
  'modelrepo',
  'assistant',
] as const;

export type Topic = (typeof topics)[number];

const byNamespace: Record<string, readonly Topic[]> = {
  job: ['runs', 'overview', 'facility', 'model', 'finops'],
  drift: ['drift', 'registry', 'model', 'series', 'overview'],
  alert: ['alerts', 'overview'],
  deploy: ['registry', 'model', 'promotions', 'traffic', 'overview', 'series'],
  approval: ['approvals', 'promotions', 'overview', 'model'],
  event: ['overview'],
};

const byName: Record<string, readonly Topic[]> = {
  'event.push': ['modelrepo', 'registry', 'overview'],
  'event.freshness_changed': ['modelrepo', 'registry', 'model'],
  'event.config_changed': ['config', 'health'],
  'event.flag_changed': ['flags'],
  'event.mention': ['comments'],
  'deploy.traffic_changed': ['traffic', 'model', 'registry'],
  'deploy.shadow_changed': ['traffic', 'model'],
  'drift.retrain_requested': ['drift', 'approvals', 'overview'],
};

/** Returns the topics that an event changes; the ledger grows with every event but a notice. */
export function topicsOf(eventName: string): readonly Topic[] {
  if (eventName === 'event.notice') return ['inbox'];
  const namespace = eventName.split('.', 1)[0] ?? '';
  const changed = byName[eventName] ?? byNamespace[namespace] ?? [];
  return changed.length ? [...changed, 'governance', 'audit'] : [];
}
