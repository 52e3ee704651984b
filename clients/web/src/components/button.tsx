import type { ReactNode } from 'react';
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from 'react-aria-components';
import { Icon, type IconName } from './icon';

export interface ButtonProps extends Omit<AriaButtonProps, 'className' | 'style' | 'children' | 'isDisabled'> {
  kind?: 'primary' | 'danger' | 'ghost';
  icon?: IconName;
  /** Shows the icon alone; `label` names the button. */
  iconOnly?: boolean;
  label?: string;
  wide?: boolean;
  small?: boolean;
  className?: string;
  /** Why the button may not be pressed. It stays focusable, so that the reason can be read. */
  disabledReason?: string;
  isDisabled?: boolean;
  children?: ReactNode;
}

/** A verb with an object. One primary button per view. */
export function Button({
  kind,
  icon,
  iconOnly,
  label,
  wide,
  small,
  className,
  disabledReason,
  isDisabled,
  children,
  ...rest
}: ButtonProps) {
  const classes = ['btn', kind, iconOnly && 'icon', wide && 'wide', small && 'btn-s', className]
    .filter(Boolean)
    .join(' ');
  const off = isDisabled || disabledReason !== undefined;
  return (
    <AriaButton
      {...rest}
      className={classes}
      aria-label={label ?? rest['aria-label']}
      aria-disabled={off || undefined}
      onPress={off ? undefined : rest.onPress}
      type={off ? 'button' : rest.type}
      render={disabledReason ? (props) => <button {...props} title={disabledReason} /> : undefined}
    >
      {icon && <Icon name={icon} small />}
      {!iconOnly && children}
    </AriaButton>
  );
}
