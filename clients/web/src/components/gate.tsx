import type { ReactNode } from 'react';
import { useIsMeasured } from './evidence';
import { Icon, type StateKind } from './icon';
import { NotMeasured } from './state';

export interface GateItem {
  key: string;
  kind: StateKind;
  title: ReactNode;
  value?: ReactNode;
  detail?: ReactNode;
}

/** Checks with their reasons: a verdict is never shown without one. */
export function GateList({ items, tight }: { items: readonly GateItem[]; tight?: boolean }) {
  if (!useIsMeasured()) return <NotMeasured />;
  return (
    <ul className={tight ? 'gate tight' : 'gate'}>
      {items.map((item) => (
        <li key={item.key}>
          <Icon name={item.kind} small className={`st-${item.kind}`} />
          <span className="med">{item.title}</span>
          <span className="num">{item.value}</span>
          {item.detail && <span className="d">{item.detail}</span>}
        </li>
      ))}
    </ul>
  );
}
