import type { ReactNode } from 'react';
import type { Figure } from '../state/figure';
import { text } from '../text';
import { UnmeasuredBlank } from './blank';
import { Evidence, evidenceOf, EvidenceProvider } from './evidence';
import { Panel, type PanelProps } from './panel';
import { Skeleton, type SkeletonShape } from './skeleton';
import { NotMeasured } from './state';

/** A measured value, or why there is none. */
export function Show<T>({ figure, children }: { figure: Figure<T>; children: (value: T) => ReactNode }) {
  switch (figure.kind) {
    case 'measured':
      return <Evidence of={figure}>{children(figure.value)}</Evidence>;
    case 'loading':
      return <span className="faint">…</span>;
    default:
      return (
        <Evidence of={figure}>
          <NotMeasured why={figure.why} />
        </Evidence>
      );
  }
}

/** A count next to a name; a dash where nothing was counted. */
export function Count({ figure, className = 'n' }: { figure: Figure<ReactNode>; className?: string }) {
  if (figure.kind === 'loading') return null;
  if (figure.kind === 'measured')
    return (
      <span className={className} {...evidenceOf(figure)}>
        {figure.value}
      </span>
    );
  return (
    <span className={className} title={figure.why} data-unmeasured {...evidenceOf(figure)}>
      –<span className="vh"> {text.common.notMeasured}</span>
    </span>
  );
}

/** Sentences about what was measured, then what was not, once. */
export function Says({ sentences }: { sentences: readonly Figure<string>[] }) {
  const said = sentences.flatMap((each) => (each.kind === 'measured' && each.value ? [each] : []));
  const missing = [
    ...new Set(sentences.flatMap((each) => (each.kind === 'failed' || each.kind === 'unmeasured' ? [each.why] : []))),
  ];
  if (said.length === 0 && missing.length === 0) return <span className="faint">{text.common.loading}</span>;
  return (
    <>
      {said.map((each) => (
        <Evidence key={each.value} of={each}>
          {each.value}{' '}
        </Evidence>
      ))}
      {missing.length > 0 && <span className="nm">{text.common.figures.missing(missing.join(' '))}</span>}
    </>
  );
}

/** Panels over one figure; one panel in their place while it has no value. */
export function FigureParts<T>({
  figure,
  title,
  skeleton,
  children,
}: {
  figure: Figure<T>;
  title: string;
  skeleton?: SkeletonShape;
  children: (value: T) => ReactNode;
}) {
  if (figure.kind === 'measured') return <EvidenceProvider value={figure}>{children(figure.value)}</EvidenceProvider>;
  return (
    <FigurePanel figure={figure} title={title} skeleton={skeleton}>
      {() => null}
    </FigurePanel>
  );
}

/** A panel over one figure. */
export function FigurePanel<T>({
  figure,
  skeleton = 'list',
  note,
  children,
  ...panel
}: Omit<PanelProps, 'children' | 'note'> & {
  figure: Figure<T>;
  skeleton?: SkeletonShape;
  note?: ReactNode | ((value: T) => ReactNode);
  children: (value: T) => ReactNode;
}) {
  if (figure.kind === 'measured')
    return (
      <Panel
        {...panel}
        of={figure}
        note={typeof note === 'function' ? (note as (value: T) => ReactNode)(figure.value) : note}
      >
        {children(figure.value)}
      </Panel>
    );
  return (
    <Panel {...panel} of={figure} note={undefined} footer={undefined} flush>
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
