import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { governanceQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { Feed, type FeedEntry } from '../../components/feed';
import type { IconName } from '../../components/icon';
import { Panel } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import { formatCount } from '../../format/numbers';
import { parseTime } from '../../format/time';
import type { PlatformEvent } from '../../live/stream';
import { useMe } from '../../state/auth';
import { useConnection, useRecentEvents } from '../../state/live';
import { orElse, read, silentSources } from '../../state/figure';
import { useNow } from '../../state/now';
import { text } from '../../text';
import { useQuery } from '../../state/query';

const words = text.overview.activity;
const LENGTH = 14;
const noEntries: never[] = [];
/** New rows are tinted this long. */
const FRESH = 20_000;

const namespaceIcons: Record<string, IconName> = {
  job: 'runs',
  drift: 'drift',
  alert: 'bell',
  deploy: 'up',
  approval: 'approve',
  event: 'commit',
  auth: 'key',
  model: 'cube',
  config: 'gear',
  proxy: 'link',
  flag: 'flag',
};

function kindOf(name: string): FeedEntry['kind'] {
  if (/(failed|crashed|lost|load_failed|firing)$/.test(name)) return 'critical';
  if (/(denied|blocked|expired|rolled_back)$/.test(name)) return 'warn';
  if (/(completed|promoted|model_loaded|resolved)$/.test(name)) return 'ok';
  return name === 'job.started' ? 'running' : undefined;
}

/** Returns a line of the feed for an event. */
export function describeEvent(event: PlatformEvent): FeedEntry {
  const namespace = event.name.split('.', 1)[0] ?? '';
  const subject = String(event.data.model ?? event.data.entity ?? '');
  const say = text.events[event.name];
  const kind = kindOf(event.name);
  const icon =
    kind === 'running'
      ? 'running'
      : kind === 'critical' || kind === 'warn' || kind === 'ok'
        ? kind
        : (namespaceIcons[namespace] ?? 'pulse');
  return {
    key: event.id,
    icon,
    kind,
    what: (
      <>
        {subject && <b>{subject}</b>} {say ? say(event.data) : event.name}
      </>
    ),
    who: event.actor ? words.by(event.actor) : event.name,
    at: event.at,
  };
}

/** What happened: live events on top of the ledger's last entries. It can be paused, so that nothing moves under the pointer. */
export function ActivityPanel() {
  const governance = useQuery(governanceQuery);
  const ledger = read(governance, (view) => view.audit?.entries, ['audit']);
  const live = useRecentEvents();
  const connection = useConnection();
  const now = useNow();
  const isAdmin = useMe()?.role === 'admin';
  const [paused, setPaused] = useState<readonly PlatformEvent[]>();
  const events = paused ?? live;
  const entries = useMemo(() => {
    const opened = events.at(-1)?.at.getTime() ?? Infinity;
    const history: FeedEntry[] = orElse(ledger, noEntries).flatMap((entry) => {
      const at = parseTime(entry.ts);
      // What has arrived as an event since is not listed twice.
      if (!at || at.getTime() >= opened) return [];
      const namespace = entry.action?.split('.', 1)[0] ?? '';
      // Sign-ins have the audit log; here they would push out the work.
      if (namespace === 'auth') return [];
      return [
        {
          key: `ledger-${entry.seq}`,
          icon:
            entry.outcome === 'failed'
              ? 'critical'
              : entry.outcome === 'denied'
                ? 'x'
                : (namespaceIcons[namespace] ?? 'lock'),
          kind: entry.outcome === 'failed' ? ('critical' as const) : undefined,
          what: (
            <>
              <b>{entry.target?.replace(/^[a-z_]+:/, '')}</b> {text.actions[entry.action ?? ''] ?? entry.action}
            </>
          ),
          who: `${words.by(entry.actor ?? '')}, ${words.ledger(formatCount(entry.seq))}`,
          at,
        },
      ];
    });
    return [...events.map(describeEvent), ...history].slice(0, LENGTH);
    // The figure is a new object at each render; its inputs are not.
  }, [events, governance.data, governance.isError]);
  const shown = entries.map((entry) => ({
    ...entry,
    fresh: !entry.key.startsWith('ledger-') && now.getTime() - entry.at.getTime() < FRESH,
  }));
  return (
    <Panel
      title={words.title}
      flush
      partial={silentSources(governance.data, ['audit'])}
      actions={
        <>
          <span className="conn">
            <i className={`dot ${paused ? 'warn' : connection.kind === 'live' ? 'ok' : 'warn'}`} aria-hidden="true" />
            {paused
              ? words.paused
              : connection.kind === 'live'
                ? text.shell.connection.live
                : text.shell.connection.polling}
          </span>
          <Button
            kind="ghost"
            icon={paused ? 'play' : 'pause'}
            iconOnly
            label={paused ? words.resume : words.pause}
            onPress={() => setPaused(paused ? undefined : live)}
          />
        </>
      }
      footer={
        isAdmin ? (
          <Link className="link" to="/audit">
            {words.audit}
          </Link>
        ) : (
          <Link className="link" to="/governance">
            {words.governance}
          </Link>
        )
      }
    >
      {entries.length > 0 ? (
        <Feed entries={shown} label={words.title} />
      ) : governance.isPending ? (
        <div className="sk-pad">
          <Skeleton shape="list" rows={6} />
        </div>
      ) : (
        <Blank of={ledger} icon="pulse" title={words.none} />
      )}
    </Panel>
  );
}
