import { Link, type LinkProps } from '@tanstack/react-router';
import type { Figure } from '../state/figure';
import { Count } from './figure';

export interface Tab {
  id: string;
  label: string;
  count?: Figure<number>;
}

/** Parts of one object. The address holds the tab, so they are links. */
export function Tabs({
  label,
  tabs,
  current,
  linkOf,
}: {
  label: string;
  tabs: readonly Tab[];
  current: string;
  linkOf: (id: string) => Pick<LinkProps, 'to' | 'params' | 'search'>;
}) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link
          key={tab.id}
          {...linkOf(tab.id)}
          aria-current={tab.id === current ? 'page' : undefined}
          // The first tab is the address without one, which the router would find in every other.
          activeOptions={{ exact: true, includeSearch: true, explicitUndefined: true }}
          activeProps={{}}
          resetScroll={false}
        >
          {tab.label}
          {tab.count && <Count figure={tab.count} />}
        </Link>
      ))}
    </nav>
  );
}
