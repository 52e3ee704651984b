import { Link, type LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Icon, type IconName } from './icon';

type ButtonLinkProps = Pick<LinkProps, 'to' | 'params' | 'search'> & {
  kind?: 'primary' | 'ghost';
  icon?: IconName;
  wide?: boolean;
  children: ReactNode;
};

/** A link that looks like a button: it leads to the page where the act is. */
export function ButtonLink({ kind, icon, wide, children, ...rest }: ButtonLinkProps) {
  return (
    <Link {...rest} className={['btn', kind, wide && 'wide'].filter(Boolean).join(' ')}>
      {icon && <Icon name={icon} small />}
      {children}
    </Link>
  );
}
