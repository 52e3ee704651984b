import { Link } from '@tanstack/react-router';
import type { components } from '../../api/gen/dashboard';
import { Button } from '../../components/button';
import type { StateKind } from '../../components/icon';
import { Pill } from '../../components/state';
import { notify } from '../../components/toast';
import { RelativeTime } from '../../components/time';
import { explainProblem } from '../../components/blank';
import { performAct } from '../../state/acts';
import { useMay } from '../../state/auth';
import { text } from '../../text';

export type Alert = components['schemas']['Alert'];

const words = text.alerts;
const severityKind: Record<Alert['severity'], StateKind> = { critical: 'critical', error: 'critical', warn: 'warn' };
const rank: Record<Alert['severity'], number> = { critical: 0, error: 1, warn: 2 };

export function kindOfAlert(alert: Alert): StateKind {
  return alert.state === 'resolved' ? 'ok' : severityKind[alert.severity];
}

/** Worst first, then the newest; acknowledged ones after those that fire. */
export function sortAlerts(alerts: readonly Alert[]): Alert[] {
  return [...alerts].sort(
    (a, b) =>
      Number(a.state === 'acknowledged') - Number(b.state === 'acknowledged') ||
      rank[a.severity] - rank[b.severity] ||
      (b.since ?? '').localeCompare(a.since ?? ''),
  );
}

/** Acknowledging asks nothing: it changes no model and names the person. */
export async function acknowledge(alert: Alert): Promise<void> {
  try {
    await performAct({
      title: words.acknowledge,
      method: 'POST',
      path: `/api/v1/alerts/${encodeURIComponent(alert.id)}/ack`,
      confirm: words.acknowledge,
      done: words.acked(alert.title),
      topics: ['alerts', 'audit', 'governance'],
    });
  } catch (error) {
    const { title, hint } = explainProblem(error);
    notify(text.shell.failed(`${title}. ${hint}`), 'critical');
  }
}

/** One alert in the overview's list. */
export function AlertRow({ alert }: { alert: Alert }) {
  const mayAck = useMay('alert.ack');
  const [head, ...rest] = alert.title.split(/,\s(.*)/s);
  return (
    <li>
      <div className="item al">
        <span className="pc wide">
          <Pill kind={kindOfAlert(alert)}>{words.severities[alert.severity]}</Pill>
        </span>
        <span className="grow">
          <Link className="ttl" to="/alerts" search={{ id: alert.id }}>
            {head}
          </Link>
          <span className="small muted db">{rest.join('') || labelLine(alert)}</span>
        </span>
        <span className="small faint nowrap">
          <RelativeTime at={alert.since} />
        </span>
        {alert.state === 'firing' && mayAck ? (
          <Button className="hide-s" onPress={() => void acknowledge(alert)}>
            {words.acknowledge}
          </Button>
        ) : (
          <span className="small faint hide-s">{words.states[alert.state]}</span>
        )}
      </div>
    </li>
  );
}

export function labelLine(alert: Alert): string {
  return Object.entries(alert.labels)
    .map(([key, value]) => `${key} ${value}`)
    .join(', ');
}
