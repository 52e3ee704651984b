import type { ReactNode } from 'react';
import { text } from '../text';
import { useIsMeasured } from './evidence';
import { Icon, type StateKind } from './icon';

export type { StateKind };

/** A state in a table or line: icon, word and colour. */
export function State({ kind, children }: { kind: StateKind; children?: ReactNode }) {
  // "All well" is a claim: it needs a figure around it that was measured.
  if (!useIsMeasured() && kind === 'ok') return <NotMeasured />;
  return (
    <span className={`st st-${kind}`}>
      <Icon name={kind} small />
      <span>{children ?? text.common.states[kind]}</span>
    </span>
  );
}

/** The one pill of an object. */
export function Pill({ kind, children }: { kind: StateKind; children?: ReactNode }) {
  if (!useIsMeasured() && kind === 'ok') return <NotMeasured />;
  return (
    <span className={`st pill st-${kind}`}>
      <Icon name={kind} small />
      <span>{children ?? text.common.states[kind]}</span>
    </span>
  );
}

/** Shown in place of a figure that was not measured. Never 0. */
export function NotMeasured({ why, children }: { why?: string; children?: ReactNode }) {
  return (
    <span className="nm" title={why}>
      {children ?? text.common.notMeasured}
    </span>
  );
}

/** Shown in place of a figure that cannot exist. */
export function Impossible() {
  return <span className="faint">–</span>;
}

/** A figure or, if there is none, a text that explains it. */
export function Measured<T>({ value, children }: { value: T | null | undefined; children: (value: T) => ReactNode }) {
  return value === null || value === undefined ? <NotMeasured /> : <>{children(value)}</>;
}

/** Sorts worst first. */
export const severityOf: Record<StateKind, number> = { critical: 0, warn: 1, running: 2, unknown: 3, ok: 4 };
