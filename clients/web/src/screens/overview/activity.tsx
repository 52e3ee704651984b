import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { governanceQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { Feed } from '../../components/feed';
import { Panel } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import type { PlatformEvent } from '../../live/stream';
import { useMe } from '../../state/auth';
import { useConnection, useRecentEvents } from '../../state/live';
import { orElse, read, silentSources } from '../../state/figure';
import { useNow } from '../../state/now';
import { text } from '../../text';
import { useQuery } from '../../state/query';
import { linesOf } from './activity-lines';

const words = text.overview.activity;
const LENGTH = 14;
const noEntries: never[] = [];
/** New rows are tinted this long. */
const FRESH = 20_000;

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
    return linesOf(events, orElse(ledger, noEntries)).slice(0, LENGTH);
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
