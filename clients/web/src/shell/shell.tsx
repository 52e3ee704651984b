import { Outlet, useMatches, useNavigate, useRouterState } from '@tanstack/react-router';
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import { flagsQuery } from '../api/queries';
import { Note } from '../components/note';
import { notify } from '../components/toast';
import { explainSSOError } from '../screens/login/form';
import { useDrawer } from '../drawer/open';
import { useMe } from '../state/auth';
import { stream } from '../state/live';
import { text } from '../text';
import { ConnectionBanner } from './connection';
import { InboxButton } from './inbox';
import { KeySheet, useGlobalKeys } from './keys';
import { LoginDialog } from './login-dialog';
import { Sidebar } from './sidebar';
import { resumePendingAct, StepUpDialog } from './step-up';
import { Topbar, type Crumb } from './topbar';
import { useQuery } from '../state/query';

const Palette = lazy(() => import('./palette'));
const Drawer = lazy(() => import('../drawer/drawer'));

/** A route's data for the shell. */
export interface PageInfo {
  /** The sidebar entry that is current. */
  nav?: string;
  crumbs?: (params: Record<string, string>) => Crumb[];
}

declare module '@tanstack/react-router' {
  interface StaticDataRouteOption {
    page?: PageInfo;
  }
}

export function Shell({ ssoError }: { ssoError: string | undefined }) {
  const me = useMe();
  const navigate = useNavigate();
  const flags = useQuery(flagsQuery).data?.flags;
  const [paletteOpen, setPaletteOpen] = useState(false);
  const [keysOpen, setKeysOpen] = useState(false);
  const [inboxOpen, setInboxOpen] = useState(false);
  const page = useMatches({ select: (matches) => matches.at(-1)?.staticData.page });
  const params = useMatches({ select: (matches) => (matches.at(-1)?.params ?? {}) as Record<string, string> });
  const openPalette = useCallback(() => setPaletteOpen(true), []);
  const openHelp = useCallback(() => setKeysOpen(true), []);
  const openInbox = useCallback(() => setInboxOpen(true), []);
  const hasPalette = flags?.commandPalette !== false;
  const drawer = useDrawer();
  const hasDrawer = flags?.copilotDrawer !== false;
  const onAssistant = hasDrawer ? drawer.toggle : undefined;
  useGlobalKeys({ onPalette: hasPalette ? openPalette : undefined, onAssistant, onInbox: openInbox, onHelp: openHelp });
  useFocusOnNavigation();

  useEffect(() => {
    stream.start();
    return () => stream.stop();
  }, []);
  // An act that went to the provider comes back here; so does its failure.
  const resumed = useRef(false);
  useEffect(() => {
    if (resumed.current) return;
    resumed.current = true;
    const hadAct = resumePendingAct(ssoError);
    if (!ssoError) return;
    if (!hadAct) notify(explainSSOError(ssoError), 'critical');
    void navigate({
      to: '.',
      search: (prev: Record<string, unknown>) => ({ ...prev, sso_error: undefined }),
      replace: true,
    } as never);
  }, [ssoError, navigate]);

  const crumbs = page?.crumbs?.(params) ?? [];
  return (
    <div className="app">
      <a className="skip" href="#main">
        {text.shell.skip}
      </a>
      <Sidebar current={page?.nav} onPreferences={() => void navigate({ to: '/preferences' })} />
      <Topbar
        crumbs={crumbs}
        onPalette={hasPalette ? openPalette : undefined}
        onAssistant={onAssistant}
        inbox={<InboxButton isOpen={inboxOpen} onOpenChange={setInboxOpen} />}
      />
      <main className="main" id="main" tabIndex={-1}>
        {me?.break_glass && (
          <div className="banner">
            <Note kind="warn" title={text.shell.breakGlass}>
              {text.shell.breakGlassHint}
            </Note>
          </div>
        )}
        <ConnectionBanner />
        <Outlet />
      </main>
      {paletteOpen && (
        <Suspense>
          <Palette onClose={() => setPaletteOpen(false)} />
        </Suspense>
      )}
      {hasDrawer && drawer.isOpen && (
        <Suspense>
          <Drawer onClose={drawer.close} />
        </Suspense>
      )}
      <KeySheet isOpen={keysOpen} onClose={() => setKeysOpen(false)} />
      <StepUpDialog />
      <LoginDialog />
    </div>
  );
}

/** Moves the focus to the page when another one opens, as a page load would; a new filter keeps it. */
function useFocusOnNavigation(): void {
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const last = useRef<string>(undefined);
  useEffect(() => {
    if (last.current !== undefined && path !== undefined && last.current !== path)
      document.getElementById('main')?.focus({ preventScroll: true });
    last.current = path ?? last.current;
  }, [path]);
}
