import type { ReactNode } from 'react';
import {
  Menu as AriaMenu,
  MenuItem,
  MenuTrigger,
  Popover,
  type PopoverProps,
  type Selection,
} from 'react-aria-components';
import { Button, type ButtonProps } from './button';
import { Icon, type IconName } from './icon';

export interface MenuEntry {
  id: string;
  label: string;
  detail?: string;
  icon?: IconName;
  danger?: boolean;
}

interface MenuButtonProps {
  button: Omit<ButtonProps, 'children'> & { children?: ReactNode };
  label: string;
  entries: readonly MenuEntry[];
  onAction?: (id: string) => void;
  /** With a selection the menu is a choice: the chosen entries are marked. */
  selected?: readonly string[];
  onSelect?: (ids: string[]) => void;
  multiple?: boolean;
  placement?: PopoverProps['placement'];
}

/** A button that opens a menu of acts or choices. */
export function MenuButton({
  button,
  label,
  entries,
  onAction,
  selected,
  onSelect,
  multiple,
  placement = 'bottom end',
}: MenuButtonProps) {
  const choose = (keys: Selection): void =>
    onSelect?.(keys === 'all' ? entries.map((e) => e.id) : [...keys].map(String));
  return (
    <MenuTrigger>
      <Button {...button} />
      <Popover className="popover" placement={placement}>
        <AriaMenu
          className="menu"
          aria-label={label}
          onAction={(key) => onAction?.(String(key))}
          selectionMode={selected ? (multiple ? 'multiple' : 'single') : 'none'}
          selectedKeys={selected ?? []}
          onSelectionChange={choose}
          disallowEmptySelection={!multiple}
        >
          {entries.map((entry) => (
            <MenuItem
              key={entry.id}
              id={entry.id}
              textValue={entry.label}
              className={entry.danger ? 'menu-i danger' : 'menu-i'}
            >
              {({ isSelected }) => (
                <>
                  {selected && <Icon name="check" small className={isSelected ? '' : 'ghosted'} />}
                  {entry.icon && <Icon name={entry.icon} small />}
                  <span className="grow">{entry.label}</span>
                  {entry.detail && <span className="faint small">{entry.detail}</span>}
                </>
              )}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
