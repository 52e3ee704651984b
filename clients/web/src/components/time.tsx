import { DAY, formatExact, formatRough, parseTime, relateTime, type RelativeTime as Relation } from '../format/time';
import { useNow } from '../state/now';
import { text } from '../text';
import { NotMeasured } from './state';

/** Words of a relative time: now, 58 min ago, in 23 h, or the date once a week has passed. */
export function describeTime(at: Date, now: Date): string {
  return wordsOf(relateTime(at, now));
}

const LONG_AGE = 90 * DAY;

function wordsOf(relation: Relation): string {
  switch (relation.kind) {
    case 'now':
      return text.common.now;
    case 'past':
      return text.common.ago(relation.text);
    case 'future':
      return text.common.inFuture(relation.text);
    case 'date':
      return relation.text;
  }
}

/** A time in everyday form; the exact one in UTC and in local time on hover. */
export function RelativeTime({
  at,
  short,
  rough,
}: {
  at: string | Date | null | undefined;
  short?: boolean;
  /** A span up to three months, for columns that compare ages. */
  rough?: boolean;
}) {
  const now = useNow();
  const time = at instanceof Date ? at : parseTime(at);
  if (!time) return <NotMeasured />;
  const relation = relateTime(time, now, rough ? LONG_AGE : undefined);
  const words = short && relation.kind === 'past' ? relation.text : wordsOf(relation);
  return (
    <time dateTime={time.toISOString()} title={`${formatExact(time)} (${time.toLocaleString()})`}>
      {words}
    </time>
  );
}

/** How long something has lasted, updated automatically. */
export function Age({ since }: { since: Date }) {
  const now = useNow();
  return (
    <time dateTime={since.toISOString()} title={formatExact(since)}>
      {formatRough(now.getTime() - since.getTime())}
    </time>
  );
}
