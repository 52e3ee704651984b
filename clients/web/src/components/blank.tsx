import { useState, type ReactNode } from 'react';
import { explainProblem } from '../api/explain';
import { Problem } from '../api/problem';
import type { Figure } from '../state/figure';
import { text } from '../text';
import { Button } from './button';
import { Evidence } from './evidence';
import { Icon, type IconName } from './icon';
import { Skeleton } from './skeleton';

export { explainProblem };

interface MessageProps {
  icon?: IconName;
  title: string;
  /** 2 where there is no panel title above. */
  level?: 2 | 3;
  children?: ReactNode;
  actions?: ReactNode;
  kind?: 'critical';
}

/** A sentence in an empty place, and the next useful act. It claims nothing about a service. */
export function Message({ icon, title, children, actions, kind, level = 3 }: MessageProps) {
  return (
    <div className="blank">
      {icon && <Icon name={icon} className={`i-l ${kind === 'critical' ? 'st-critical' : 'faint'}`} />}
      {level === 2 ? <h2>{title}</h2> : <h3>{title}</h3>}
      {children && <p>{children}</p>}
      {actions && <div className="row">{actions}</div>}
    </div>
  );
}

/** Shows that there is nothing: one sentence, and the next useful act. Only what was measured can be nothing. */
export function Blank({
  of,
  ...message
}: MessageProps & {
  /** Whatever was counted; it must be known before there can be none of it. */
  of: Figure<unknown>;
}) {
  if (of.kind === 'loading') return <Skeleton shape="list" />;
  return (
    <Evidence of={of} as="div">
      {of.kind === 'measured' ? <Message {...message} /> : <UnmeasuredBlank why={of.why} level={message.level} />}
    </Evidence>
  );
}

/** Replaces content that was not measured. */
export function UnmeasuredBlank({ why, level, actions }: { why: string; level?: 2 | 3; actions?: ReactNode }) {
  return (
    <Message icon="unknown" level={level} title={text.common.states.unknown} actions={actions}>
      {why} {text.common.figures.again}
    </Message>
  );
}

/** A failed request: what failed, what to do, the request's id, and a second try. */
export function ErrorBlank({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { title, hint } = explainProblem(error);
  const problem = error instanceof Problem ? error : undefined;
  const refused = problem?.status === 403;
  const off = problem?.code === 'feature_off';
  return (
    <Message
      icon={off ? 'flag' : refused ? 'lock' : 'critical'}
      kind={refused ? undefined : 'critical'}
      title={title}
      actions={
        onRetry && !refused ? (
          <Button icon="retry" onPress={onRetry}>
            {text.common.retry}
          </Button>
        ) : undefined
      }
    >
      {hint}
      {problem && problem.status > 0 && (
        <span className="db small faint">
          {problem.requestId && (
            <>
              {text.common.requestId} <CopyText value={problem.requestId} />{' '}
            </>
          )}
          {text.common.httpStatus(problem.status, problem.code)}
        </span>
      )}
    </Message>
  );
}

/** A value in code type with a button that copies it. */
export function CopyText({ value, shown }: { value: string; shown?: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <span className="copy">
      <code title={value}>{shown ?? value}</code>
      <Button
        kind="ghost"
        icon={copied ? 'check' : 'copy'}
        iconOnly
        small
        label={copied ? text.common.copied : text.common.copy}
        onPress={() => {
          void navigator.clipboard?.writeText(value).then(() => {
            setCopied(true);
            setTimeout(() => setCopied(false), 2000);
          });
        }}
      />
    </span>
  );
}
