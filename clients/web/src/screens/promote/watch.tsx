import type { ReactNode } from 'react';
import { servedQuery } from '../../api/queries';
import { Message } from '../../components/blank';
import { Button } from '../../components/button';
import { Icon, type StateKind } from '../../components/icon';
import { Note } from '../../components/note';
import { Panel } from '../../components/panel';
import { RelativeTime } from '../../components/time';
import { useRecentEvents } from '../../state/live';
import { useNow } from '../../state/now';
import { text } from '../../text';
import type { Wizard } from './promote';
import { readReload, type Promotion } from './steps';
import { useQuery } from '../../state/query';

const words = text.promote.watch;
const versionWord = text.promote.version;
/** How often serving is polled until it answers with the version; its own events arrive sooner. */
const WATCH = 2000;

interface Line {
  key: string;
  kind: StateKind;
  title: string;
  detail?: ReactNode;
  at?: string | Date;
}

/** Decision, move of the alias, reload of each replica: each as it happens. */
export function WatchStep({ wizard, onBack }: { wizard: Wizard; onBack: () => void }) {
  const { model, trackerName, candidate, to, promotion } = wizard;
  const events = useRecentEvents();
  const moved = promotion?.state === 'promoted';
  const served = useQuery({
    ...servedQuery,
    refetchInterval: ({ state }) =>
      moved && !readReload([model, trackerName], candidate.version, to, state.data, []).served ? WATCH : false,
  });
  const now = useNow();
  const version = versionWord(candidate.version);
  if (!promotion || promotion.state === 'pending') {
    return (
      <Panel title={words.title(version, to)} flush>
        <Message icon="clock" title={words.none} actions={<Button onPress={onBack}>{text.promote.back}</Button>}>
          {words.noneHint}
        </Message>
      </Panel>
    );
  }
  const reload = readReload([model, trackerName], candidate.version, to, served.data, events);
  const done = moved && reload.served !== undefined;
  const lines = [decisionLine(promotion), ...moveLines(promotion, version, to)];
  if (moved) {
    const seconds = Math.max(0, Math.round((now.getTime() - new Date(promotion.updated_at).getTime()) / 1000));
    lines.push({
      key: 'serving',
      kind: reload.served ? 'ok' : served.isError ? 'unknown' : 'running',
      title: reload.served ? words.loaded(version) : words.loading(version),
      detail: reload.served
        ? reload.served.verified
          ? words.verified
          : words.unverified
        : served.isError
          ? words.service
          : words.loadingHint(seconds),
      at: reload.served?.loaded_at,
    });
    for (const replica of reload.replicas)
      lines.push({
        key: `replica ${replica.name}`,
        kind: 'ok',
        title: words.replica(replica.name),
        detail: words.replicaLoaded,
        at: replica.at,
      });
  }
  return (
    <Panel title={words.title(version, to)}>
      <div className="stack-s">
        <ol className="steps big" aria-live="polite">
          {lines.map((line) => (
            <li key={line.key} data-step={line.key} data-state={line.kind}>
              <Icon name={line.kind} small className={`st-${line.kind}`} />
              <span>
                <span className="med">{line.title}</span>
                {line.detail && <span className="db faint">{line.detail}</span>}
              </span>
              <span className="faint nowrap">{line.at && <RelativeTime at={line.at} />}</span>
            </li>
          ))}
        </ol>
        {reload.failures.map((failure) => (
          <Note key={`${failure.name}${failure.at.getTime()}`} kind="critical" title={words.loadFailed}>
            {failure.name}: {failure.reason} {words.loadFailedHint}
          </Note>
        ))}
        {done && (
          <Note icon="ok" role="status" title={words.complete(version, to)}>
            {null}
          </Note>
        )}
      </div>
    </Panel>
  );
}

function decisionLine(promotion: Promotion): Line {
  const ended = words.outcomes[promotion.state];
  return {
    key: 'decision',
    kind: ended ? 'critical' : 'ok',
    title: ended ?? words.approved,
    detail: [promotion.decided_by && words.by(promotion.decided_by), ended && promotion.reason]
      .filter(Boolean)
      .join('; '),
    at: promotion.decided_at ?? promotion.updated_at,
  };
}

function moveLines(promotion: Promotion, version: string, to: string): Line[] {
  const before = promotion.previous_version ? versionWord(promotion.previous_version) : undefined;
  switch (promotion.state) {
    case 'approved':
      return [{ key: 'move', kind: 'running', title: words.moving(to), detail: words.movingHint }];
    case 'promoted':
      return [
        {
          key: 'move',
          kind: 'ok',
          title: before ? words.moved(to, before, version) : words.movedFirst(to, version),
          at: promotion.updated_at,
        },
      ];
    case 'failed':
      return [
        { key: 'move', kind: 'critical', title: words.failed, detail: promotion.reason, at: promotion.updated_at },
      ];
    default:
      return [];
  }
}
