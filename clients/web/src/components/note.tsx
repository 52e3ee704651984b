import type { ReactNode } from 'react';
import { Icon, type IconName } from './icon';

/** A boxed remark: what is so, and what follows. */
export function Note({
  kind,
  icon,
  title,
  children,
  role,
}: {
  kind?: 'warn' | 'critical' | 'info';
  icon?: IconName;
  title?: string;
  children?: ReactNode;
  role?: 'alert' | 'status';
}) {
  return (
    <div className={kind ? `note ${kind}` : 'note'} role={role}>
      <Icon name={icon ?? (kind === 'warn' || kind === 'critical' ? kind : 'clock')} small />
      <span className="grow">
        {title && <b>{title}</b>} {children}
      </span>
    </div>
  );
}
