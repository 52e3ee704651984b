import { useState } from 'react';
import type { AssistantAction } from '../api/queries';
import { ActDialog } from '../components/act-dialog';
import { CopyText, explainProblem } from '../components/blank';
import { Button } from '../components/button';
import { DiffView } from '../components/diff';
import { Icon, type StateKind } from '../components/icon';
import { Note } from '../components/note';
import { Skeleton } from '../components/skeleton';
import { Facts } from '../components/stat';
import { State } from '../components/state';
import { RelativeTime } from '../components/time';
import { shortenHash } from '../format/numbers';
import { formatDuration, parseTime } from '../format/time';
import type { Act } from '../state/acts';
import { useMay } from '../state/auth';
import { useNow } from '../state/now';
import { text } from '../text';
import { splitDiff } from './diffs';
import type { Prompt } from './frames';
import type { Reading } from '../state/query';
import { Evidence } from '../components/evidence';
import { answered, alsoFrom } from '../state/figure';

const words = text.assistant.card;
/** So many affected objects are named. */
const MOST_AFFECTED = 6;

export type CardState = AssistantAction['state'];

/** Returns a change's current state: time can end it before the server reports so. */
export function stateOf(prompt: Prompt, action: AssistantAction | undefined, now: number): CardState {
  const state = action?.state ?? 'pending';
  const expires = parseTime(action?.expires_at ?? prompt.expiresAt);
  return state === 'pending' && expires && expires.getTime() <= now ? 'expired' : state;
}

const kinds: Record<CardState, StateKind> = {
  pending: 'warn',
  approved: 'running',
  executing: 'running',
  succeeded: 'ok',
  failed: 'critical',
  denied: 'unknown',
  expired: 'unknown',
  stale: 'warn',
  unknown: 'warn',
};
const riskKinds: Record<string, StateKind> = { low: 'ok', medium: 'warn', high: 'critical' };

export interface ActionCardProps {
  prompt: Prompt;
  session: string;
  actions: Pick<Reading<AssistantAction[]>, 'data' | 'isError' | 'error' | 'refetch'>;
  /** Lets an approved change run, where it has not begun automatically. */
  onRun?: () => void;
}

/** One exact change: the command, the difference, the risk with its reasons and the expiry, before the buttons. */
export function ActionCard({ prompt, session, actions, onRun }: ActionCardProps) {
  const now = useNow();
  const mayDecide = useMay('assistant.decide');
  const action = actions.data?.find((each) => each.action_id === prompt.actionId);
  const state = stateOf(prompt, action, now.getTime());
  const expires = parseTime(action?.expires_at ?? prompt.expiresAt);
  const command = action?.human_summary ?? prompt.command;
  const cluster = action?.cluster ?? prompt.cluster;
  const risk = action?.risk_level ?? prompt.risk;
  const pending = state === 'pending';
  const title = pending && !mayDecide ? words.titles.viewer : words.titles[state];
  return (
    <section className={pending ? 'card needs' : 'card'} aria-label={words.label(command)} data-state={state}>
      <header>
        <Icon name={kinds[state]} small className={`st-${kinds[state]}`} />
        <span role="status">{title}</span>
        <span className="end small muted nowrap">
          {pending && expires ? (
            <time dateTime={expires.toISOString()}>
              {words.expiresIn(formatDuration(expires.getTime() - now.getTime()))}
            </time>
          ) : (
            action?.decided_at && <RelativeTime at={action.decided_at} />
          )}
        </span>
      </header>
      <div className="body">
        <pre className="cmd" tabIndex={0} aria-label={text.assistant.code}>
          {command}
        </pre>
        <Difference action={action} actions={actions} />
        <Facts
          facts={[
            [
              words.risk,
              <>
                <Evidence of={alsoFrom(answered(risk, 'assistant'), 'assistant')}>
                  <State kind={riskKinds[risk] ?? 'unknown'}>{words.risks[risk] ?? risk}</State>
                </Evidence>{' '}
                <span className="muted">{reasonsOf(prompt, action)}</span>
              </>,
            ],
            cluster ? [words.cluster, cluster] : undefined,
            prompt.affected.length ? [words.affects, <Affected objects={prompt.affected} />] : undefined,
            ...(action?.notes ?? []).map((note) => [words.note, note] as const),
            [
              words.digest,
              <span className="row wrap">
                <CopyText
                  value={action?.digest ?? prompt.digest}
                  shown={shortenHash((action?.digest ?? prompt.digest).replace(/^sha256:/, ''))}
                />
                {pending && <span className="muted">{words.once}</span>}
              </span>,
            ],
            action?.result ? [words.result, action.result] : undefined,
            action?.verification ? [words.verified, action.verification] : undefined,
            action?.reason ? [words.reason, action.reason] : undefined,
          ]}
        />
        <Aftermath state={state} />
      </div>
      {pending && <Decision prompt={prompt} session={session} command={command} action={action} />}
      {state === 'approved' && onRun && (
        <footer>
          <Button icon="play" onPress={onRun}>
            {words.run}
          </Button>
        </footer>
      )}
    </section>
  );
}

function reasonsOf(prompt: Prompt, action: AssistantAction | undefined): string {
  const reasons = (action?.always_confirm_reasons ?? []).map((reason) => words.reasons[reason] ?? reason);
  if (action?.always_confirm ?? prompt.alwaysConfirm) reasons.push(words.asksAlways);
  return reasons.join(', ');
}

function Affected({ objects }: { objects: readonly string[] }) {
  return (
    <ul className="affected">
      {objects.slice(0, MOST_AFFECTED).map((object) => (
        <li key={object}>
          <code>{object}</code>
        </li>
      ))}
      {objects.length > MOST_AFFECTED && <li>{words.more(objects.length - MOST_AFFECTED)}</li>}
    </ul>
  );
}

function Difference({ action, actions }: { action: AssistantAction | undefined; actions: ActionCardProps['actions'] }) {
  if (action) {
    const { objects, deleted, remarks } = splitDiff(action.diff);
    if (objects.length + deleted.length + remarks.length === 0) return <p className="small muted">{words.noDiff}</p>;
    return (
      <div className="stack-s">
        {objects.map((object) =>
          object.patch === undefined ? (
            <p key={object.name} className="small">
              <code>{object.name}</code>
            </p>
          ) : (
            <DiffView key={object.name} file={object.name} patch={object.patch} />
          ),
        )}
        {deleted.length > 0 && (
          <div className="small">
            {words.deletes(deleted.length)} <Affected objects={deleted} />
          </div>
        )}
        {remarks.map((remark) => (
          <p key={remark} className="small muted">
            {remark}
          </p>
        ))}
        <p className="small faint">{words.diffSource}</p>
      </div>
    );
  }
  if (!actions.isError) return <Skeleton shape="text" rows={4} />;
  return (
    <Note kind="critical" title={words.diffFailed}>
      {explainProblem(actions.error).hint}{' '}
      <button type="button" className="link" onClick={() => void actions.refetch()}>
        {text.common.retry}
      </button>
    </Note>
  );
}

function Aftermath({ state }: { state: CardState }) {
  const hint = {
    stale: words.replaced,
    expired: words.expiredHint,
    denied: words.deniedHint,
    unknown: words.unknownHint,
  }[state as string];
  return hint ? <p className="small muted">{hint}</p> : null;
}

/** Builds the act that decides; the action's id pins the digest that was shown. */
export function decisionAct(
  session: string,
  actionId: string,
  command: string,
  decision: 'approve' | 'deny',
  reason: string,
): Act {
  const approves = decision === 'approve';
  return {
    title: approves ? words.approveAct(command) : words.denyAct(command),
    method: 'POST',
    path: `/api/v1/assistant/sessions/${encodeURIComponent(session)}/actions/${encodeURIComponent(actionId)}`,
    body: { decision, ...(reason ? { reason } : {}) },
    confirm: approves ? words.approve : words.denyDo,
    done: approves ? words.approved : words.denied,
    topics: ['assistant'],
  };
}

interface DecisionProps {
  prompt: Prompt;
  session: string;
  command: string;
  action: AssistantAction | undefined;
}

function Decision({ prompt, session, command, action }: DecisionProps) {
  const mayDecide = useMay('assistant.decide');
  const [asked, setAsked] = useState<'approve' | 'deny'>();
  const refusal = mayDecide ? undefined : words.adminsOnly;
  const approves = asked !== 'deny';
  return (
    <footer>
      {refusal && <span className="small muted grow">{refusal}</span>}
      <Button disabledReason={refusal} onPress={() => setAsked('deny')}>
        {words.deny}
      </Button>
      <Button
        kind="primary"
        disabledReason={refusal ?? (action ? undefined : words.diffNeeded)}
        onPress={() => setAsked('approve')}
      >
        {words.approve}
      </Button>
      <ActDialog
        title={approves ? words.approveTitle : words.denyTitle}
        isOpen={asked !== undefined}
        onClose={() => setAsked(undefined)}
        act={(reason) => decisionAct(session, prompt.actionId, command, asked ?? 'deny', reason)}
        reason={approves ? undefined : { label: words.denyReason }}
      >
        <pre className="cmd">{command}</pre>
        <p className="muted">{approves ? words.approveHint : words.deniedHint}</p>
      </ActDialog>
    </footer>
  );
}
