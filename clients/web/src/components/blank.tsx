import { useState, type ReactNode } from 'react';
import { Problem } from '../api/problem';
import { text } from '../text';
import { Button } from './button';
import { Icon, type IconName } from './icon';

/** Shown by a panel without content: one sentence, and the next useful act. */
export function Blank({
  icon,
  title,
  children,
  actions,
  kind,
  level = 3,
}: {
  icon?: IconName;
  title: string;
  /** 2 where there is no panel title above. */
  level?: 2 | 3;
  children?: ReactNode;
  actions?: ReactNode;
  kind?: 'critical';
}) {
  return (
    <div className="blank">
      {icon && <Icon name={icon} className={`i-l ${kind === 'critical' ? 'st-critical' : 'faint'}`} />}
      {level === 2 ? <h2>{title}</h2> : <h3>{title}</h3>}
      {children && <p>{children}</p>}
      {actions && <div className="row">{actions}</div>}
    </div>
  );
}

/** Returns a title for what failed and a hint on what to do. */
export function explainProblem(error: unknown): { title: string; hint: string } {
  const words = text.common.errors;
  if (!(error instanceof Problem)) return { title: words.unexpected, hint: words.unexpectedHint };
  if (error.code === 'unreachable') return { title: words.unreachable, hint: words.unreachableHint };
  if (error.status === 429)
    return {
      title: words.rate_limited,
      hint: error.retryAfter ? words.rateLimitedHint(error.retryAfter) : error.message,
    };
  const known = words[error.code as keyof typeof words];
  const title = typeof known === 'string' ? known : error.title || words.unexpected;
  return { title, hint: error.message !== title ? error.message : words.otherPanels };
}

/** A failed request: what failed, what to do, the request's id, and a second try. */
export function ErrorBlank({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { title, hint } = explainProblem(error);
  const problem = error instanceof Problem ? error : undefined;
  const refused = problem?.status === 403;
  const off = problem?.code === 'feature_off';
  return (
    <Blank
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
    </Blank>
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
