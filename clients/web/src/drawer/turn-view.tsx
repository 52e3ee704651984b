import type { AssistantAction } from '../api/queries';
import { Button } from '../components/button';
import { Icon, type StateKind } from '../components/icon';
import { Note } from '../components/note';
import { formatDuration } from '../format/time';
import { text } from '../text';
import { Answer } from './answer';
import { ActionCard } from './card';
import type { StepStatus } from './frames';
import { progressOf, type ToolCall, type Turn } from './turns';
import type { Reading } from '../state/query';

const words = text.assistant;

export interface TurnViewProps {
  turn: Turn;
  session: string;
  actions: Pick<Reading<AssistantAction[]>, 'data' | 'isError' | 'error' | 'refetch'>;
  onReload?: () => void;
  onRun?: () => void;
}

/** A question, what was examined, the answer, and the changes it proposes. */
export function TurnView({ turn, session, actions, onReload, onRun }: TurnViewProps) {
  return (
    <article className="turn" aria-label={turn.question}>
      {turn.automatic ? (
        <p className="small faint">{words.automatic}</p>
      ) : (
        turn.question && (
          <p className="ask-q">
            <span className="vh">{words.you}: </span>
            {turn.question}
          </p>
        )
      )}
      <Investigation turn={turn} />
      {turn.answer.trim() !== '' && <Answer words={turn.answer} />}
      {turn.remarks.map((remark, i) => (
        <p key={i} className="small muted">
          {words.remark}: {remark.message}
        </p>
      ))}
      {turn.prompts.map((prompt) => (
        <ActionCard key={prompt.actionId} prompt={prompt} session={session} actions={actions} onRun={onRun} />
      ))}
      {turn.failure && !turn.running && (
        <Note
          kind="critical"
          title={turn.failure.code === 'interrupted' ? words.interrupted : words.failed}
          role="status"
        >
          {turn.failure.message || words.interruptedHint}{' '}
          {onReload && (
            <button type="button" className="link" onClick={onReload}>
              {words.reload}
            </button>
          )}
        </Note>
      )}
    </article>
  );
}

const stepKinds: Record<StepStatus, StateKind> = {
  pending: 'unknown',
  in_progress: 'running',
  done: 'ok',
  skipped: 'unknown',
};

/** The plan and each check while in progress; folded away once the answer is here. */
function Investigation({ turn }: { turn: Turn }) {
  if (turn.plan.length === 0 && turn.calls.length === 0) {
    return turn.running ? <Working what={turn.status || words.starting} /> : null;
  }
  const took =
    turn.began !== undefined && turn.ended !== undefined ? formatDuration(turn.ended - turn.began) : undefined;
  const n = turn.calls.length;
  const list = (
    <ol className="steps">
      {turn.plan.map((step, i) => (
        <li key={`plan${i}`} className={step.status === 'pending' ? 'todo' : undefined}>
          <Icon name={stepKinds[step.status]} small className={`st-${stepKinds[step.status]}`} />
          <span>
            {step.description}
            <span className="vh">, {words.status[step.status]}</span>
          </span>
          <span />
        </li>
      ))}
      {turn.calls.map((call, i) => (
        <CallLine key={`${call.id}/${i}`} call={call} />
      ))}
    </ol>
  );
  if (turn.running) {
    return (
      <div>
        <div className="row small muted mb-s">
          <span className="med">{words.investigation}</span>
          <span className="end">{words.checks(n)}</span>
        </div>
        {list}
        <Working what={describeProgress(turn)} />
      </div>
    );
  }
  return (
    <details className="checks">
      <summary className="small muted">
        <span className="med">{words.investigation}</span>
        <span className="end">{took ? words.checksIn(n, took) : words.checks(n)}</span>
      </summary>
      {list}
    </details>
  );
}

/** Returns what is being done, with how far it has come. */
export function describeProgress(turn: Turn): string {
  const { done, all, current } = progressOf(turn);
  if (turn.plan.length > 0 && done < all) return words.step(done + 1, all, turn.status || current || '');
  if (turn.plan.length === 0 && all > 0 && current) return words.checked(done, all, trimCall(current));
  return turn.answer ? words.answering : (turn.status ?? words.starting);
}

const trimCall = (message: string): string => message.replace(/^Running: /, '');

function CallLine({ call }: { call: ToolCall }) {
  const kind: StateKind = call.ok === undefined ? 'running' : call.ok ? 'ok' : 'critical';
  const output = call.output?.trim() ?? '';
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const time =
    call.began !== undefined && call.ended !== undefined ? formatDuration(Math.max(1, call.ended - call.began)) : '';
  return (
    <li>
      <Icon name={kind} small className={`st-${kind}`} />
      <span className="call">
        <code>{trimCall(call.message)}</code>
        {lines.length > 0 && (
          <span className="db faint">
            {lines.slice(0, 3).join(', ')}
            {lines.length > 3 || call.truncated ? ' …' : ''}
          </span>
        )}
      </span>
      <span className="faint nowrap">{time}</span>
    </li>
  );
}

function Working({ what }: { what: string }) {
  return (
    <p className="row small st-running working" role="status">
      <Icon name="running" small />
      <span>{what}</span>
    </p>
  );
}

/** What the drawer shows before the first question. */
export function Welcome({ onAsk }: { onAsk: (question: string) => void }) {
  return (
    <div className="welcome">
      <h3>{words.emptyTitle}</h3>
      <p className="muted">{words.emptyHint}</p>
      <div className="stack-s">
        {words.examples.map((example) => (
          <Button key={example} wide onPress={() => onAsk(example)}>
            {example}
          </Button>
        ))}
      </div>
    </div>
  );
}
