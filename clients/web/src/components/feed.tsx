import type { ReactNode } from 'react';
import { Icon, type IconName } from './icon';
import { RelativeTime } from './time';

export interface FeedEntry {
  key: string;
  icon: IconName;
  kind?: 'ok' | 'warn' | 'critical' | 'running';
  what: ReactNode;
  who: ReactNode;
  at: Date;
  fresh?: boolean;
}

/** What happened, newest first. Silent for screen readers: alerts have their own live region. */
export function Feed({ entries, label }: { entries: readonly FeedEntry[]; label: string }) {
  return (
    <ul className="feed" aria-label={label}>
      {entries.map((entry) => (
        <li key={entry.key} className={entry.fresh ? 'new' : undefined}>
          <Icon name={entry.icon} small className={entry.kind ?? ''} />
          <span className="what">{entry.what}</span>
          <RelativeTime at={entry.at} short />
          <span className="who">{entry.who}</span>
        </li>
      ))}
    </ul>
  );
}
