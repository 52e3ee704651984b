import type { components } from '../../api/gen/dashboard';
import type { GateItem } from '../../components/gate';
import { formatScore } from '../../format/numbers';
import { text } from '../../text';
import { explainCheck, nameMetric } from '../../text/metrics';

export type Gate = components['schemas']['Promotion'];

const words = text.model.gate;

/** Reports whether the version is where the policy would move it: there is nothing to judge, and nothing wrong. */
export function isInPlace(gate: Gate): boolean {
  return gate.checks?.some((check) => check.name === 'to' && !check.pass) ?? false;
}

/** Returns the gate as checks with reasons: the server's own list if it sent one, else its three parts. */
export function gateItems(gate: Gate): GateItem[] {
  if (gate.checks?.length) {
    return gate.checks.map((check) => {
      const asked = /approval/.test(check.name) && !check.pass && gate.approval.state === 'pending';
      return {
        key: check.name,
        kind: check.pass ? 'ok' : asked ? 'unknown' : 'critical',
        title: text.promote.gate.checks[check.name] ?? check.name.replaceAll('_', ' '),
        value: check.pass ? words.passed : asked ? words.waiting : words.failed,
        detail: explainCheck(check.detail),
      };
    });
  }
  const notRun = gate.eval.state === 'not_run';
  return [
    {
      key: 'policy',
      kind: gate.policy.allow ? 'ok' : 'critical',
      title: words.policy,
      value: gate.policy.allow ? words.passed : words.failed,
      detail: gate.policy.reasons.join('; ') || undefined,
    },
    {
      key: 'eval',
      kind: gate.eval.pass ? 'ok' : notRun ? 'unknown' : 'critical',
      title: words.evaluation,
      value: gate.eval.pass ? words.passed : notRun ? words.notRun : words.failed,
      detail:
        Object.entries(gate.eval.metrics)
          .filter(([, metric]) => !metric.passed)
          .map(([name, metric]) =>
            words.missed(
              nameMetric(name),
              formatScore(metric.value),
              metric.threshold === null || metric.threshold === undefined ? undefined : formatScore(metric.threshold),
            ),
          )
          .join('; ') || undefined,
    },
    {
      key: 'approval',
      kind: gate.approval.state === 'approved' ? 'ok' : gate.approval.state === 'rejected' ? 'critical' : 'unknown',
      title: words.approval,
      value: gate.approval.required ? gate.approval.state : words.notRequired,
    },
  ];
}
