import { useRouterState } from '@tanstack/react-router';
import { useEffect, useRef, useState, useSyncExternalStore, type KeyboardEvent } from 'react';
import { assistantActionsQuery } from '../api/queries';
import { ProblemNote } from '../components/act-dialog';
import { Button } from '../components/button';
import { Chip } from '../components/chip';
import { Icon } from '../components/icon';
import { Note } from '../components/note';
import { Skeleton } from '../components/skeleton';
import { useMay } from '../state/auth';
import { invalidateTopics } from '../state/live';
import { text } from '../text';
import { ClusterBar, isOfCluster, isUnknownCluster, useClusters } from './clusters';
import { conversation, FOLLOW_UP, type ConversationState, type PageContext } from './conversation';
import { TurnView, Welcome } from './turn-view';
import { useQuery } from '../state/query';

const words = text.assistant;
/** How often a change that is running is looked at. */
const WATCH = 2000;
/** Scrolled up by more than this, the reader is reading: new words do not pull the page down. */
const NEAR_END = 80;
/** Up to this width the drawer covers the page, which then takes no focus. */
const COVERS = '(max-width: 700px)';

/** The assistant next to the work. The conversation itself lives on while this is closed. */
export default function Drawer({ onClose }: { onClose: () => void }) {
  const state = useSyncExternalStore(conversation.subscribe, conversation.getState);
  const { session = '', turns, busy } = state;
  const mayDecide = useMay('assistant.decide');
  const clusters = useClusters(state.problem);
  const watching = turns.some((turn) => turn.prompts.length > 0);
  const actions = useActions(session, watching);
  useEffect(() => void conversation.restore(), []);
  // Each prompt and each end of an answer may have changed what waits.
  const prompts = turns.reduce((n, turn) => n + turn.prompts.length, 0);
  useEffect(() => {
    if (watching) invalidateTopics(['assistant']);
  }, [watching, prompts, busy]);
  useContinuation(
    busy || state.restoring,
    actions.data?.filter((action) => action.state === 'approved').map((action) => action.action_id),
  );
  useCoveredPage();
  const aside = useRef<HTMLElement>(null);
  const talk = useStickyScroll(turns);
  const closeOnEscape = (event: KeyboardEvent): void => {
    // A dialog above the drawer has its own Escape.
    if (event.key !== 'Escape' || event.defaultPrevented || !aside.current?.contains(event.target as Node)) return;
    event.stopPropagation();
    onClose();
  };
  const path = useRouterState({ select: (router) => router.location });
  const ask = (question: string): void => {
    const context = contextOf(question, path.pathname, path.search as Record<string, unknown>);
    void conversation.ask(question, { context, cluster: clusters.chosen });
  };
  const isSample = turns.some((turn) => /sample cluster/.test(turn.answer));
  const waits = !busy && actions.data?.some((action) => action.state === 'pending');
  return (
    <aside className="drawer slide-in" id="assistant" aria-label={words.label} ref={aside} onKeyDown={closeOnEscape}>
      <header>
        <Icon name="chat" />
        <h2>{words.title}</h2>
        {isSample && <Chip title={words.sampleTitle}>{words.sample}</Chip>}
        <span className="end row">
          <Button
            kind="ghost"
            icon="plus"
            iconOnly
            label={words.fresh}
            isDisabled={turns.length === 0 && !session}
            onPress={conversation.reset}
          />
          <Button kind="ghost" icon="x" iconOnly label={words.close} onPress={onClose} />
        </span>
      </header>
      <ClusterBar clusters={clusters} state={state} onFresh={conversation.reset} />
      <div className="talk" tabIndex={0} role="log" aria-label={words.conversation} ref={talk} aria-busy={busy}>
        {turns.length === 0 && !state.restoring && state.problem === undefined && !session && <Welcome onAsk={ask} />}
        {state.restoring && turns.length === 0 && (
          <div>
            <span className="vh">{words.loading}</span>
            <Skeleton shape="text" rows={6} />
          </div>
        )}
        {turns.map((turn, i) => (
          <TurnView
            key={i}
            turn={turn}
            session={session}
            actions={actions}
            onReload={i === turns.length - 1 && session ? conversation.reload : undefined}
            onRun={busy ? undefined : () => void conversation.ask(FOLLOW_UP, { automatic: true })}
          />
        ))}
        <Footline state={state} waits={waits === true} />
      </div>
      <Composer busy={busy || state.restoring} unsent={state.unsent} onAsk={ask} mayDecide={mayDecide} />
    </aside>
  );
}

export function Footline({ state, waits }: { state: ConversationState; waits: boolean }) {
  if (isOfCluster(state.problem)) return <ClusterNote problem={state.problem} hasSession={!!state.session} />;
  if (state.problem !== undefined) {
    return (
      <div>
        <ProblemNote error={state.problem} />
        {state.session && (
          <Button icon="retry" className="mt-s" onPress={conversation.reload}>
            {words.reload}
          </Button>
        )}
      </div>
    );
  }
  if (!state.reconnecting && !waits) return null;
  return (
    <p className="row small st-running working" role="status">
      <Icon name="running" small />
      <span>{state.reconnecting ? words.reconnecting : words.waiting}</span>
    </p>
  );
}

/** Says why a question was refused for its cluster. A conversation cannot change it, so only a new one helps. */
function ClusterNote({ problem, hasSession }: { problem: unknown; hasSession: boolean }) {
  const { unknown, unknownHint, ended } = words.clusters;
  return (
    <div>
      {isUnknownCluster(problem) ? (
        <Note kind="critical" role="alert" title={unknown}>
          {hasSession ? ended : unknownHint}
        </Note>
      ) : (
        <ProblemNote error={problem} />
      )}
      {hasSession && (
        <Button icon="plus" className="mt-s" onPress={conversation.reset}>
          {words.fresh}
        </Button>
      )}
    </div>
  );
}

interface ComposerProps {
  busy: boolean;
  unsent: string | undefined;
  mayDecide: boolean;
  onAsk: (question: string) => void;
}

function Composer({ busy, unsent, mayDecide, onAsk }: ComposerProps) {
  const [draft, setDraft] = useState('');
  const input = useRef<HTMLTextAreaElement>(null);
  useEffect(() => input.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    if (unsent !== undefined) setDraft((typed) => typed || unsent);
  }, [unsent]);
  const send = (): void => {
    const question = draft.trim();
    if (!question || busy) return;
    setDraft('');
    onAsk(question);
  };
  return (
    <form
      className="compose"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label className="input lg">
        <span className="vh">{words.message}</span>
        <textarea
          ref={input}
          rows={1}
          maxLength={4000}
          value={draft}
          placeholder={words.placeholder}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            send();
          }}
        />
        <Button
          kind="ghost"
          icon="send"
          iconOnly
          label={words.send}
          type="submit"
          disabledReason={busy ? words.busy : undefined}
          isDisabled={draft.trim() === ''}
        />
      </label>
      <span className="small faint">{mayDecide ? words.hint : words.hintViewer}</span>
    </form>
  );
}

/**
 * Returns what the page shows, for a question about it. Other questions go without: a page's view can hold
 * words that make a plain request for a change look like a condition.
 */
export function contextOf(question: string, page: string, filters: Record<string, unknown>): PageContext | undefined {
  if (!/\b(this|the|current) (page|view|screen|model|run|approval|alert)\b/i.test(question)) return undefined;
  const model = /^\/models\/([^/]+)/.exec(page)?.[1];
  const shown = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
  return {
    page,
    ...(model ? { entity: { type: 'model', name: decodeURIComponent(model) } } : {}),
    ...(Object.keys(shown).length ? { filters: shown } : {}),
  };
}

/** The changes that a session proposed; one that runs is looked at again and again. */
function useActions(session: string, watching: boolean) {
  return useQuery({
    ...assistantActionsQuery(session),
    enabled: session !== '' && watching,
    refetchInterval: ({ state: { data } }) =>
      data?.some(({ state: now }) => now === 'approved' || now === 'executing') ? WATCH : false,
  });
}

/** Lets an approved change run: the assistant carries it out in the session's next turn. Each is requested once. */
function useContinuation(busy: boolean, approved: readonly string[] | undefined): void {
  const asked = useRef(new Set<string>());
  useEffect(() => {
    if (busy || !approved) return;
    const fresh = approved.filter((id) => !asked.current.has(id));
    if (fresh.length === 0) return;
    for (const id of fresh) asked.current.add(id);
    void conversation.ask(FOLLOW_UP, { automatic: true });
  }, [busy, approved]);
}

/** Follows new words while the reader is at the end. */
function useStickyScroll(turns: ConversationState['turns']): React.RefObject<HTMLDivElement | null> {
  const talk = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    const box = talk.current;
    if (!box) return;
    const note = (): void => {
      atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
    };
    // A card grows once its difference is here.
    const observer =
      typeof ResizeObserver === 'undefined'
        ? undefined
        : new ResizeObserver(() => {
            if (atEnd.current) box.scrollTop = box.scrollHeight;
          });
    for (const child of box.children) observer?.observe(child);
    box.addEventListener('scroll', note, { passive: true });
    if (atEnd.current) box.scrollTop = box.scrollHeight;
    return () => {
      observer?.disconnect();
      box.removeEventListener('scroll', note);
    };
  }, [turns]);
  return talk;
}

/** Where the drawer covers the page, the page behind it takes no focus. */
function useCoveredPage(): void {
  useEffect(() => {
    const query = matchMedia(COVERS);
    const behind = document.querySelectorAll<HTMLElement>('.app > .side, .app > .top, .app > .main');
    const apply = (): void => behind.forEach((part) => (part.inert = query.matches));
    apply();
    query.addEventListener('change', apply);
    return () => {
      query.removeEventListener('change', apply);
      behind.forEach((part) => (part.inert = false));
    };
  }, []);
}
