import type { ReactNode } from 'react';
import type { Figure } from '../state/figure';
import { text } from '../text';
import { Blank } from './blank';
import { Panel, type PanelProps } from './panel';
import { Skeleton, type SkeletonShape } from './skeleton';
import { NotMeasured } from './state';

/** A measured value, or why there is none. */
export function Show<T>({ figure, children }: { figure: Figure<T>; children: (value: T) => ReactNode }) {
  switch (figure.kind) {
    case 'measured':
      return <>{children(figure.value)}</>;
    case 'loading':
      return <span className="faint">…</span>;
    default:
      return <NotMeasured why={figure.why} />;
  }
}

/** A count next to a name; a dash where nothing was counted. */
export function Count({ figure, className = 'n' }: { figure: Figure<ReactNode>; className?: string }) {
  if (figure.kind === 'loading') return null;
  if (figure.kind === 'measured') return <span className={className}>{figure.value}</span>;
  return (
    <span className={className} title={figure.why} data-unmeasured>
      –<span className="vh"> {text.common.notMeasured}</span>
    </span>
  );
}

/** Sentences about what was measured, then what was not, once. */
export function Says({ sentences }: { sentences: readonly Figure<string>[] }) {
  const said = sentences.flatMap((each) => (each.kind === 'measured' && each.value ? [each.value] : []));
  const missing = [
    ...new Set(sentences.flatMap((each) => (each.kind === 'failed' || each.kind === 'unmeasured' ? [each.why] : []))),
  ];
  if (said.length === 0 && missing.length === 0) return <span className="faint">{text.common.loading}</span>;
  return (
    <>
      {said.map((sentence) => (
        <span key={sentence}>{sentence} </span>
      ))}
      {missing.length > 0 && <span className="nm">{text.common.figures.missing(missing.join(' '))}</span>}
    </>
  );
}

/** Replaces a panel's content that was not measured. */
export function UnmeasuredBlank({ why, level, actions }: { why: string; level?: 2 | 3; actions?: ReactNode }) {
  return (
    <Blank icon="unknown" level={level} title={text.common.states.unknown} actions={actions}>
      {why} {text.common.figures.again}
    </Blank>
  );
}

/** Shows that there is nothing, but only where that was measured. */
export function Nothing({
  of,
  level,
  children,
}: {
  /** Whatever was counted; it must be known before there can be none of it. */
  of: Figure<unknown>;
  level?: 2 | 3;
  children: ReactNode;
}) {
  if (of.kind === 'measured') return <>{children}</>;
  if (of.kind === 'loading') return null;
  return <UnmeasuredBlank why={of.why} level={level} />;
}

/** A panel over one figure. */
export function FigurePanel<T>({
  figure,
  skeleton = 'list',
  children,
  ...panel
}: Omit<PanelProps, 'children'> & {
  figure: Figure<T>;
  skeleton?: SkeletonShape;
  children: (value: T) => ReactNode;
}) {
  if (figure.kind === 'measured') return <Panel {...panel}>{children(figure.value)}</Panel>;
  return (
    <Panel {...panel} note={undefined} footer={undefined} flush>
      {figure.kind === 'loading' ? (
        <div className="sk-pad">
          <Skeleton shape={skeleton} />
        </div>
      ) : (
        <UnmeasuredBlank why={figure.why} />
      )}
    </Panel>
  );
}
