import type { IconName } from '../components/icon';
import { text } from '../text';

export interface NavEntry {
  key: string;
  to: string;
  icon: IconName;
  label: string;
  /** The letter after g. */
  letter?: string;
  adminOnly?: boolean;
  /** Shown in the bottom bar of a phone. */
  mobile?: boolean;
  /** The flag that switches the page off. */
  flag?: string;
}

export interface NavGroup {
  key: string;
  title?: string;
  entries: readonly NavEntry[];
}

const { nav, groups } = text.shell;

export const navGroups: readonly NavGroup[] = [
  {
    key: 'top',
    entries: [
      { key: 'overview', to: '/', icon: 'home', label: nav.overview, letter: 'o', mobile: true },
      { key: 'alerts', to: '/alerts', icon: 'bell', label: nav.alerts, letter: 'l', mobile: true },
    ],
  },
  {
    key: 'models',
    title: groups.models,
    entries: [
      {
        key: 'registry',
        to: '/models',
        icon: 'cube',
        label: nav.registry,
        letter: 'm',
        mobile: true,
        flag: 'mlopsConsole',
      },
      { key: 'approvals', to: '/approvals', icon: 'approve', label: nav.approvals, letter: 'a', mobile: true },
      { key: 'runs', to: '/runs', icon: 'runs', label: nav.runs, letter: 'r' },
      { key: 'drift', to: '/drift', icon: 'drift', label: nav.drift, letter: 'd' },
    ],
  },
  {
    key: 'cluster',
    title: groups.cluster,
    entries: [
      { key: 'facility', to: '/facility', icon: 'server', label: nav.facility, letter: 'f', flag: 'facilityConsole' },
      { key: 'health', to: '/health', icon: 'pulse', label: nav.health, letter: 'h' },
      { key: 'llmops', to: '/llmops', icon: 'llm', label: nav.llmops, flag: 'llmopsConsole' },
    ],
  },
  {
    key: 'accountability',
    title: groups.accountability,
    entries: [
      { key: 'finops', to: '/finops', icon: 'cost', label: nav.finops, letter: 'c', flag: 'finopsConsole' },
      { key: 'governance', to: '/governance', icon: 'shield', label: nav.governance, letter: 'g' },
      { key: 'audit', to: '/audit', icon: 'list', label: nav.audit, adminOnly: true },
    ],
  },
  {
    key: 'platform',
    title: groups.platform,
    entries: [
      { key: 'documents', to: '/documents', icon: 'book', label: nav.documents },
      { key: 'flags', to: '/flags', icon: 'flag', label: nav.flags, adminOnly: true },
      { key: 'notifications', to: '/notifications', icon: 'send', label: nav.notifications, adminOnly: true },
      { key: 'config', to: '/config', icon: 'gear', label: nav.config },
    ],
  },
];

export interface Viewer {
  isAdmin: boolean;
  flags: Record<string, boolean> | undefined;
}

/** Leaves out what the role may not use and what is switched off. */
export function visibleGroups({ isAdmin, flags }: Viewer): NavGroup[] {
  return navGroups
    .map((group) => ({
      ...group,
      entries: group.entries.filter(
        (entry) => (!entry.adminOnly || isAdmin) && (!entry.flag || flags?.[entry.flag] !== false),
      ),
    }))
    .filter((group) => group.entries.length > 0);
}
