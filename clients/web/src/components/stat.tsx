import { Link, type LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Figure } from '../state/figure';
import { Show } from './figure';

export interface Stat {
  label: string;
  value: Figure<ReactNode>;
  /** Shown with a measured value only. */
  unit?: string;
  /** What the figure is, whether it is known or not. */
  note?: ReactNode;
  /** A second measured figure; replaces note. */
  found?: Figure<ReactNode>;
  /** Where the figure comes from. */
  link?: Pick<LinkProps, 'to' | 'params' | 'search' | 'hash'>;
}

/** A row of figures: each has a unit and what it is measured against. */
export function Figures({ stats }: { stats: readonly Stat[] }) {
  return (
    <dl className="figures">
      {stats.map(({ label, value, unit, note, found, link }) => {
        const shown = (
          <>
            <Show figure={value}>{(each) => each}</Show>
            {unit && value.kind === 'measured' && <small>{unit}</small>}
          </>
        );
        return (
          <div key={label}>
            <dt>{label}</dt>
            <dd>
              {link ? (
                <Link className="quiet" {...link}>
                  {shown}
                </Link>
              ) : (
                shown
              )}
              {found?.kind === 'measured' ? (
                <div className="sub">
                  <Show figure={found}>{(each) => each}</Show>
                </div>
              ) : (
                note !== undefined && <div className="sub">{note}</div>
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** Names and values of one object. */
export function Facts({
  facts,
  two,
}: {
  facts: readonly (readonly [label: string, value: ReactNode] | undefined)[];
  two?: boolean;
}) {
  return (
    <dl className={two ? 'facts two' : 'facts'}>
      {facts.map((fact) =>
        fact ? (
          <div className="fact" key={fact[0]}>
            <dt>{fact[0]}</dt>
            <dd>{fact[1]}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

/** A bar of a share from 0 to 1. */
export function Meter({
  value,
  label,
  kind = 'running',
}: {
  value: number | undefined;
  label: string;
  kind?: 'running' | 'warn' | 'ok' | 'critical' | 'plain';
}) {
  if (value === undefined) return <span className="meter db dashed" role="img" aria-label={label} />;
  const percent = Math.min(100, Math.max(0, value * 100));
  return (
    <span
      className="meter db"
      role="progressbar"
      aria-label={label}
      aria-valuenow={Math.round(percent)}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <i className={kind} style={{ width: `${percent}%` }} />
    </span>
  );
}
