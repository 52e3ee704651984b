import { Link, useNavigate } from '@tanstack/react-router';
import { useSyncExternalStore, type ReactNode } from 'react';
import { Button } from '../components/button';
import { Icon } from '../components/icon';
import { MenuButton } from '../components/menu';
import {
  choicesOf,
  readPreference,
  storePreference,
  subscribeToPreferences,
  type Preferences,
} from '../state/preferences';
import { isRangeKey, rangeKeys, useRange } from '../state/range';
import { text } from '../text';
import { ConnectionBadge } from './connection';

export interface Crumb {
  label: string;
  to?: string;
}

export interface TopbarProps {
  crumbs: readonly Crumb[];
  onPalette?: () => void;
  onAssistant?: () => void;
  inbox?: ReactNode;
}

export function Topbar({ crumbs, onPalette, onAssistant, inbox }: TopbarProps) {
  return (
    <header className="top">
      <nav className="grow trunc" aria-label={text.shell.breadcrumb}>
        <ol className="crumbs">
          {crumbs.map((crumb, i) => (
            <li key={crumb.label}>
              {crumb.to && i < crumbs.length - 1 ? (
                <Link to={crumb.to}>{crumb.label}</Link>
              ) : (
                <span
                  className="trunc"
                  dir="auto"
                  title={crumb.label}
                  aria-current={i === crumbs.length - 1 ? 'page' : undefined}
                >
                  {crumb.label}
                </span>
              )}
            </li>
          ))}
        </ol>
      </nav>
      <ConnectionBadge />
      <RangeMenu />
      {onPalette && (
        <button type="button" className="find" onClick={onPalette} aria-keyshortcuts="Control+K Meta+K">
          <Icon name="search" small />
          <span>{text.shell.search}</span> <kbd>Ctrl K</kbd>
        </button>
      )}
      {inbox}
      {onAssistant && <Button kind="ghost" icon="chat" iconOnly label={text.shell.assistant} onPress={onAssistant} />}
      <ThemeMenu />
    </header>
  );
}

function RangeMenu() {
  const range = useRange();
  const navigate = useNavigate();
  return (
    <span className="hide-s">
      <MenuButton
        label={text.shell.range}
        entries={rangeKeys.map((key) => ({ id: key, label: text.shell.ranges[key] }))}
        selected={[range.key]}
        onSelect={([key]) => {
          // The other parts of the address stay: only the range changes.
          if (isRangeKey(key))
            void navigate({
              to: '.',
              search: (prev: Record<string, unknown>) => ({ ...prev, range: key }),
              resetScroll: false,
            } as never);
        }}
        button={{
          kind: 'ghost',
          icon: 'clock',
          label: `${text.shell.range}: ${text.shell.ranges[range.key]}`,
          children: (
            <>
              {text.shell.ranges[range.key]}
              <Icon name="down" small />
            </>
          ),
        }}
      />
    </span>
  );
}

/** Returns a preference and follows its changes. */
export function usePreference<K extends keyof Preferences>(name: K): Preferences[K] {
  return useSyncExternalStore(subscribeToPreferences, () => readPreference(name));
}

const themeIcons = { system: 'screen', light: 'sun', dark: 'moon' } as const;

function ThemeMenu() {
  const theme = usePreference('theme');
  return (
    <span className="hide-s">
      <MenuButton
        label={text.shell.theme}
        entries={choicesOf('theme').map((id) => ({ id, label: text.shell.themes[id], icon: themeIcons[id] }))}
        selected={[theme]}
        onSelect={([id]) => id && storePreference('theme', id as Preferences['theme'])}
        button={{ kind: 'ghost', icon: themeIcons[theme], iconOnly: true, label: text.shell.theme }}
      />
    </span>
  );
}
