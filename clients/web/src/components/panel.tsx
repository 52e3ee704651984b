import type { ReactNode } from 'react';
import { formatClock, formatRough, MINUTE, parseTime } from '../format/time';
import { explainSilence, read, readLast, silentSources, sourceless, type Figure } from '../state/figure';
import { useNow } from '../state/now';
import type { Reading } from '../state/query';
import { text } from '../text';
import { ErrorBlank, explainProblem, Message, UnmeasuredBlank } from './blank';
import { Boundary } from './boundary';
import { Button } from './button';
import { Chip } from './chip';
import { evidenceOf, EvidenceProvider, useEvidence } from './evidence';
import { Icon } from './icon';
import { Skeleton, type SkeletonShape } from './skeleton';

/** Figures older than this are marked: the source answers late or no longer. */
const LATE = 2 * MINUTE;

export interface PanelProps {
  /** The figure that all of the panel shows; without one it can hold no claim but those of figures inside. */
  of?: Figure<unknown>;
  title: string;
  /** What a link of the page points to. */
  id?: string;
  /** Secondary text after the title: a count, or what it covers. */
  note?: ReactNode;
  /** Time of the oldest source. */
  asOf?: Date;
  /** Sources that gave no answer. */
  partial?: readonly string[];
  actions?: ReactNode;
  footer?: ReactNode;
  /** Lets the content reach the edges: tables and lists have their own padding. */
  flush?: boolean;
  /** The page's only table is named by the page: no visible title, and count and time are in the footer. */
  untitled?: boolean;
  className?: string;
  children: ReactNode;
}

/** A flat box with a title. A fault inside stays inside. */
export function Panel({
  of,
  title,
  id,
  note,
  asOf,
  partial,
  actions,
  footer,
  flush,
  untitled,
  className = '',
  children,
}: PanelProps) {
  const guarded = (
    <Boundary
      fallback={(retry) => (
        <Message
          icon="critical"
          kind="critical"
          title={text.common.errors.crash}
          actions={<Button onPress={retry}>{text.common.retry}</Button>}
        >
          {text.common.errors.crashHint}
        </Message>
      )}
    >
      {children}
    </Boundary>
  );
  const silent = partial && partial.length > 0 && <PartialChip sources={partial} />;
  const around = useEvidence();
  const shown = of ?? (around === sourceless ? undefined : around);
  const evidence = shown && evidenceOf(shown);
  const within = (section: ReactNode): ReactNode =>
    of ? <EvidenceProvider value={of}>{section}</EvidenceProvider> : section;
  if (untitled)
    return within(
      <section id={id} className={`panel ${className}`} aria-label={title} {...evidence}>
        <h2 className="vh">{title}</h2>
        {(silent || actions) && (
          <header className="untitled">
            <span className="end row">
              {silent}
              {actions}
            </span>
          </header>
        )}
        {flush ? guarded : <div className="body">{guarded}</div>}
        {(footer || note !== undefined || asOf) && (
          <footer>
            {footer}
            <span className="end row nowrap">
              {note !== undefined && <span>{note}</span>}
              {asOf && <AsOf at={asOf} />}
            </span>
          </footer>
        )}
      </section>,
    );
  return within(
    <section id={id} className={`panel ${className}`} aria-label={title} {...evidence}>
      <header>
        <h2>
          {title}
          {note !== undefined && <span className="n"> {note}</span>}
        </h2>
        <span className="end row">
          {silent}
          {actions}
          {asOf && <AsOf at={asOf} />}
        </span>
      </header>
      {flush ? guarded : <div className="body">{guarded}</div>}
      {footer && <footer>{footer}</footer>}
    </section>,
  );
}

/** Names the sources whose figures are not measured just now. */
export function PartialChip({ sources }: { sources: readonly string[] }) {
  return (
    <Chip kind="partial" title={text.common.partialTitle}>
      <Icon name="warn" small />
      {text.common.partial(sources.join(', '))}
    </Chip>
  );
}

/** When the figures were true; amber when that is long ago. */
export function AsOf({ at }: { at: Date }) {
  const now = useNow();
  const age = now.getTime() - at.getTime();
  const late = age > LATE;
  return (
    <span className={late ? 'asof late' : 'asof'} title={text.common.asOfTitle}>
      {late && <Icon name="clock" small />}{' '}
      {late ? text.common.asOfLate(formatClock(at), formatRough(age)) : text.common.asOf(formatClock(at))}
    </span>
  );
}

interface Fresh {
  _as_of?: string;
  _partial?: string[];
}

/** Returns when an answer was true: by its own word, else when it came. */
export function freshnessOf(query: Pick<Reading<unknown>, 'data' | 'dataUpdatedAt'>): {
  asOf?: Date;
  partial?: string[];
} {
  const fresh = (query.data ?? {}) as Fresh;
  const came = query.dataUpdatedAt ? new Date(query.dataUpdatedAt) : undefined;
  return { asOf: parseTime(fresh._as_of) ?? came, partial: fresh._partial };
}

export interface QueryPanelProps<T> extends Omit<
  PanelProps,
  'children' | 'asOf' | 'partial' | 'note' | 'actions' | 'footer' | 'of'
> {
  query: Reading<T>;
  skeleton?: SkeletonShape;
  note?: ReactNode | ((data: T) => ReactNode);
  actions?: ReactNode | ((data: T) => ReactNode);
  footer?: ReactNode | ((data: T) => ReactNode);
  /** Returns the text to show instead of the content, when there is none. */
  empty?: (data: T, of: Figure<T>) => ReactNode | undefined;
  /** Sources that matter to this panel; others' silence is not its business. */
  sources?: readonly string[];
  /** Those of them that its rows come from: without their answer it has neither count nor emptiness. Default all. */
  rowsOf?: readonly string[];
  hideAsOf?: boolean;
  /** All of its content comes from these sources: nothing is left to show without them. */
  whole?: boolean;
  children: (data: T, of: Figure<T>) => ReactNode;
}

/** A panel over one query, with all its states: loading, empty, error, partial, late, not allowed, off. */
export function QueryPanel<T>({
  query,
  skeleton = 'list',
  note,
  actions,
  footer,
  empty,
  sources,
  rowsOf,
  hideAsOf,
  whole,
  children,
  ...panel
}: QueryPanelProps<T>) {
  const { data } = query;
  const { asOf, partial } = freshnessOf(query);
  const mine = sources ? partial?.filter((source) => sources.includes(source)) : partial;
  const show = <V,>(part: V | ((data: T) => V) | undefined): V | undefined =>
    typeof part === 'function' ? (data === undefined ? undefined : (part as (data: T) => V)(data)) : part;
  if (data === undefined) {
    return (
      <Panel {...panel} of={read(query, (all) => all, rowsOf ?? sources)} flush>
        {query.isError ? (
          <ErrorBlank error={query.error} onRetry={() => void query.refetch()} />
        ) : (
          <div className="sk-pad">
            <Skeleton shape={skeleton} />
          </div>
        )}
      </Panel>
    );
  }
  const silent = silentSources(data, rowsOf ?? sources);
  const claim = read(query, (all) => all, rowsOf ?? sources);
  // What is shown of before is a figure of before.
  const shown = readLast(query, rowsOf ?? sources);
  let blank = empty?.(data, claim) ?? (whole && silent.length > 0 ? '' : undefined);
  // Emptiness is a claim: it needs an answer, and one of now.
  if (blank !== undefined && query.isError)
    blank = <ErrorBlank error={query.error} onRetry={() => void query.refetch()} />;
  else if (blank !== undefined && silent.length > 0) blank = <UnmeasuredBlank why={explainSilence(data, silent)} />;
  return (
    <Panel
      {...panel}
      of={blank === undefined ? shown : claim}
      flush={panel.flush || blank !== undefined}
      note={silent.length > 0 && typeof note === 'function' ? undefined : show(note)}
      actions={show(actions)}
      footer={blank === undefined ? show(footer) : undefined}
      partial={mine}
      asOf={hideAsOf && !query.isError ? undefined : asOf}
    >
      {query.isError && blank === undefined && (
        <p className="pad-s small st-warn" role="status">
          {text.common.notRefreshed(explainProblem(query.error).title)}
        </p>
      )}
      {blank ?? children(data, shown)}
    </Panel>
  );
}
