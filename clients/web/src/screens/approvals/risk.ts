import type { components } from '../../api/gen/controlplane';
import type { components as DashboardSchemas } from '../../api/gen/dashboard';
import type { GateItem } from '../../components/gate';
import type { StateKind } from '../../components/icon';
import { formatZ } from '../../format/numbers';
import { text } from '../../text';
import type { RegistryRow } from '../registry/health';

export type Approval = components['schemas']['Approval'];
type Gate = DashboardSchemas['schemas']['Promotion'];

export interface Risk {
  level: 'high' | 'medium' | 'low';
  kind: StateKind;
  reasons: GateItem[];
}

const words = text.approvals.risk;

/** Weighs what an approval would touch: Production's answers, a model that is served, or nothing yet. */
export function assessRisk(approval: Approval, row: RegistryRow | undefined, gate?: Gate): Risk {
  const reasons: GateItem[] = [];
  const production = row?.aliases?.Production;
  let level: Risk['level'] = 'low';
  if (approval.kind === 'promotion') {
    level = 'high';
    reasons.push({ key: 'promotes', kind: 'critical', title: words.promotes, detail: words.promotesHint });
  } else if (production !== undefined) {
    level = 'medium';
    reasons.push({
      key: 'served',
      kind: 'warn',
      title: words.trainsServed(production),
    });
  } else if (row) reasons.push({ key: 'first', kind: 'ok', title: words.trainsFirst });
  else {
    level = 'medium';
    reasons.push({ key: 'first', kind: 'unknown', title: words.modelUnknown });
  }

  const corrupt = (row?.healthReasons ?? []).some((reason) => /corrupt/i.test(reason));
  if (corrupt) {
    level = 'high';
    reasons.push({ key: 'corrupt', kind: 'critical', title: words.corrupt, detail: words.corruptHint });
  } else if (row && row.health !== 'unknown') reasons.push({ key: 'data', kind: 'ok', title: words.dataOk });
  if (row?.zScore !== undefined && row.zScore !== null)
    reasons.push({
      key: 'z',
      kind: row.zScore >= 3 ? 'critical' : row.zScore >= 2 ? 'warn' : 'ok',
      title: words.drift(formatZ(row.zScore)),
    });
  if (approval.kind === 'promotion' && gate) {
    // The approval itself is the pending question; it cannot block the gate yet.
    const others = gate.policy.reasons.filter((reason) => !/approv/i.test(reason));
    reasons.push({
      key: 'gate',
      kind: others.length ? 'critical' : 'ok',
      title: others.length ? words.gateHeld : words.gateOk,
      detail: others.join('; ') || undefined,
    });
  }
  if (approval.kind === 'retrain')
    reasons.push({
      key: 'files',
      kind: 'ok',
      title: approval.changed_files.length ? words.files(approval.changed_files.length) : words.noFiles,
    });
  return { level, kind: level === 'high' ? 'critical' : level === 'medium' ? 'warn' : 'ok', reasons };
}
