// Every address of the UI. Each screen is a separate chunk.

import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
  retainSearchParams,
  stripSearchParams,
} from '@tanstack/react-router';
import type { QueryClient } from '@tanstack/react-query';
import { I18nProvider } from 'react-aria-components';
import { Problem } from './api/problem';
import { meQuery } from './api/queries';
import { ErrorBlank } from './components/blank';
import { ButtonLink } from './components/link';
import { PageHead } from './components/page';
import { Panel } from './components/panel';
import { Toasts } from './components/toast';
import { Shell } from './shell/shell';
import type { Crumb } from './shell/topbar';
import { shortenHash } from './format/numbers';
import { alertStates, approvalTabs, modelTabs, registryViews, runCauses, runTabs, runViews } from './router-params';
import { queryClient } from './state/live';
import { defaultRange, isRangeKey, type RangeKey } from './state/range';
import { text } from './text';

const { nav, groups } = text.shell;

/** Reads a text of the address; the router would hand over numbers and booleans as such. */
const textParam = (value: unknown): string | undefined =>
  value === undefined || value === null || value === '' ? undefined : String(value);
const listParam = (value: unknown): string[] | undefined =>
  Array.isArray(value) && value.length > 0 ? value.map(String) : undefined;
const oneOf = <T extends string>(options: readonly T[], value: unknown): T | undefined =>
  options.find((option) => option === value);

const rootRoute = createRootRouteWithContext<{ queryClient: QueryClient }>()({
  validateSearch: (search: Record<string, unknown>): { range?: RangeKey; sso_error?: string } => ({
    range: isRangeKey(search.range) ? search.range : undefined,
    sso_error: textParam(search.sso_error),
  }),
  search: { middlewares: [retainSearchParams(['range']), stripSearchParams({ range: defaultRange })] },
  component: () => (
    // Dates and numbers are formatted by src/format alone; the locale keeps React Aria from guessing.
    <I18nProvider locale="en-GB">
      <Outlet />
      <Toasts />
    </I18nProvider>
  ),
  // Outside the shell there is no main element yet.
  notFoundComponent: () => (
    <main className="main">
      <NotFound />
    </main>
  ),
});

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/login',
  validateSearch: (search: Record<string, unknown>): { return_to?: string; sso_error?: string } => ({
    return_to: textParam(search.return_to),
    sso_error: textParam(search.sso_error),
  }),
  component: lazyRouteComponent(() => import('./screens/login/login'), 'LoginScreen'),
});

const shellRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'shell',
  beforeLoad: async ({ context, location, search }) => {
    try {
      await context.queryClient.ensureQueryData(meQuery);
    } catch (error) {
      // An unreachable or failing service is not a sign-out: the page opens and its panels show
      // what is wrong.
      if (!(error instanceof Problem) || !error.needsLogin) return;
      const returnTo = location.href === '/' || search.sso_error ? undefined : location.href;
      throw redirect({ to: '/login', search: { return_to: returnTo, sso_error: search.sso_error } });
    }
  },
  component: function ShellRoute() {
    const { sso_error } = shellRoute.useSearch();
    return <Shell ssoError={sso_error} />;
  },
});

function NotFound() {
  return (
    <>
      <PageHead title={text.shell.notFound} sub={text.shell.notFoundHint} />
      <ButtonLink to="/">{text.shell.toOverview}</ButtonLink>
    </>
  );
}

type Search = Record<string, unknown>;
/** Every parameter of an address may be absent. */
const params =
  <T extends object>(read: (s: Search) => T) =>
  (s: Search): Partial<T> =>
    read(s);
const crumbsOf =
  (...crumbs: Crumb[]) =>
  (): Crumb[] =>
    crumbs;
const parent = () => shellRoute;

const overviewRoute = createRoute({
  getParentRoute: parent,
  path: '/',
  staticData: { page: { nav: 'overview', crumbs: crumbsOf({ label: nav.overview }) } },
  component: lazyRouteComponent(() => import('./screens/overview/overview'), 'OverviewScreen'),
});

const registryRoute = createRoute({
  getParentRoute: parent,
  path: '/models',
  validateSearch: params((s) => ({
    q: textParam(s.q),
    view: oneOf(registryViews, s.view),
    stage: listParam(s.stage),
    fresh: listParam(s.fresh),
    sort: textParam(s.sort),
  })),
  staticData: { page: { nav: 'registry', crumbs: crumbsOf({ label: groups.models }, { label: nav.registry }) } },
  component: lazyRouteComponent(() => import('./screens/registry/registry'), 'RegistryScreen'),
});

const modelRoute = createRoute({
  getParentRoute: parent,
  path: '/models/$name',
  validateSearch: params((s) => ({
    tab: oneOf(modelTabs, s.tab),
    left: textParam(s.left),
    right: textParam(s.right),
    at: textParam(s.at),
    act: oneOf(['retrain', 'traffic', 'rollback'] as const, s.act),
  })),
  staticData: {
    page: {
      nav: 'registry',
      crumbs: (params) => [{ label: nav.registry, to: '/models' }, { label: params.name ?? '' }],
    },
  },
  component: lazyRouteComponent(() => import('./screens/model/model'), 'ModelScreen'),
});

const promoteRoute = createRoute({
  getParentRoute: parent,
  path: '/models/$name/promote',
  validateSearch: params((s) => ({ version: textParam(s.version), step: textParam(s.step) })),
  staticData: {
    page: {
      nav: 'registry',
      crumbs: (params) => [
        { label: nav.registry, to: '/models' },
        { label: params.name ?? '', to: `/models/${encodeURIComponent(params.name ?? '')}` },
        { label: nav.promote },
      ],
    },
  },
  component: lazyRouteComponent(() => import('./screens/promote/promote'), 'PromoteScreen'),
});

const approvalsRoute = createRoute({
  getParentRoute: parent,
  path: '/approvals',
  validateSearch: params((s) => ({
    status: oneOf(approvalTabs, s.status),
    kind: listParam(s.kind),
    id: textParam(s.id),
  })),
  staticData: { page: { nav: 'approvals', crumbs: crumbsOf({ label: groups.models }, { label: nav.approvals }) } },
  component: lazyRouteComponent(() => import('./screens/approvals/approvals'), 'ApprovalsScreen'),
});

const runsRoute = createRoute({
  getParentRoute: parent,
  path: '/runs',
  validateSearch: params((s) => ({
    state: oneOf(runTabs, s.state),
    as: oneOf(runViews, s.as),
    id: textParam(s.id),
    q: textParam(s.q),
    sort: textParam(s.sort),
    model: listParam(s.model),
    cause: listParam(s.cause)?.filter((cause) => oneOf(runCauses, cause)),
    requester: listParam(s.requester),
  })),
  staticData: { page: { nav: 'runs', crumbs: crumbsOf({ label: groups.models }, { label: nav.runs }) } },
  component: lazyRouteComponent(() => import('./screens/runs/runs'), 'RunsScreen'),
});

const runRoute = createRoute({
  getParentRoute: parent,
  path: '/runs/$id',
  staticData: {
    page: {
      nav: 'runs',
      crumbs: (params) => [{ label: nav.runs, to: '/runs' }, { label: shortenHash(params.id ?? '') }],
    },
  },
  component: lazyRouteComponent(() => import('./screens/runs/run'), 'RunScreen'),
});

const compareRunsRoute = createRoute({
  getParentRoute: parent,
  path: '/runs/compare',
  validateSearch: params((s) => ({ run: listParam(s.run) })),
  staticData: { page: { nav: 'runs', crumbs: crumbsOf({ label: nav.runs, to: '/runs' }, { label: nav.compare }) } },
  component: lazyRouteComponent(() => import('./screens/runs/compare'), 'CompareRunsScreen'),
});

const driftRoute = createRoute({
  getParentRoute: parent,
  path: '/drift',
  validateSearch: params((s) => ({
    model: textParam(s.model),
    of: oneOf(['predictions', 'inputs'] as const, s.of),
    q: textParam(s.q),
    sort: textParam(s.sort),
  })),
  staticData: { page: { nav: 'drift', crumbs: crumbsOf({ label: groups.models }, { label: nav.drift }) } },
  component: lazyRouteComponent(() => import('./screens/drift/drift'), 'DriftScreen'),
});

const alertsRoute = createRoute({
  getParentRoute: parent,
  path: '/alerts',
  validateSearch: params((s) => ({
    state: oneOf(alertStates, s.state),
    severity: listParam(s.severity),
    source: listParam(s.source),
    id: textParam(s.id),
    q: textParam(s.q),
  })),
  staticData: { page: { nav: 'alerts', crumbs: crumbsOf({ label: nav.alerts }) } },
  component: lazyRouteComponent(() => import('./screens/alerts/alerts'), 'AlertsScreen'),
});

const moreRoute = createRoute({
  getParentRoute: parent,
  path: '/more',
  staticData: { page: { nav: 'more', crumbs: crumbsOf({ label: nav.more }) } },
  component: lazyRouteComponent(() => import('./screens/more/more'), 'MoreScreen'),
});

const galleryRoute = createRoute({
  getParentRoute: parent,
  path: '/gallery',
  staticData: { page: { crumbs: crumbsOf({ label: nav.gallery }) } },
  component: lazyRouteComponent(() => import('./screens/gallery/gallery'), 'GalleryScreen'),
});

const facilityRoute = createRoute({
  getParentRoute: parent,
  path: '/facility',
  validateSearch: params((s) => ({
    cluster: textParam(s.cluster),
    job: textParam(s.job),
    state: listParam(s.state),
    q: textParam(s.q),
    sort: textParam(s.sort),
  })),
  staticData: { page: { nav: 'facility', crumbs: crumbsOf({ label: groups.cluster }, { label: nav.facility }) } },
  component: lazyRouteComponent(() => import('./screens/facility/facility'), 'FacilityScreen'),
});

const healthRoute = createRoute({
  getParentRoute: parent,
  path: '/health',
  staticData: { page: { nav: 'health', crumbs: crumbsOf({ label: groups.cluster }, { label: nav.health }) } },
  component: lazyRouteComponent(() => import('./screens/health/health'), 'HealthScreen'),
});

const llmopsRoute = createRoute({
  getParentRoute: parent,
  path: '/llmops',
  staticData: { page: { nav: 'llmops', crumbs: crumbsOf({ label: groups.cluster }, { label: nav.llmops }) } },
  component: lazyRouteComponent(() => import('./screens/llmops/llmops'), 'LlmopsScreen'),
});

const finopsRoute = createRoute({
  getParentRoute: parent,
  path: '/finops',
  staticData: { page: { nav: 'finops', crumbs: crumbsOf({ label: groups.accountability }, { label: nav.finops }) } },
  component: lazyRouteComponent(() => import('./screens/finops/finops'), 'FinopsScreen'),
});

const governanceRoute = createRoute({
  getParentRoute: parent,
  path: '/governance',
  staticData: {
    page: { nav: 'governance', crumbs: crumbsOf({ label: groups.accountability }, { label: nav.governance }) },
  },
  component: lazyRouteComponent(() => import('./screens/governance/governance'), 'GovernanceScreen'),
});

const auditRoute = createRoute({
  getParentRoute: parent,
  path: '/audit',
  validateSearch: params((s) => ({
    q: textParam(s.q),
    model: textParam(s.model),
    action: textParam(s.action),
    source: textParam(s.source),
    actor: textParam(s.actor),
    since: textParam(s.since),
    until: textParam(s.until),
  })),
  staticData: { page: { nav: 'audit', crumbs: crumbsOf({ label: groups.accountability }, { label: nav.audit }) } },
  component: lazyRouteComponent(() => import('./screens/audit/audit'), 'AuditScreen'),
});

const documentsRoute = createRoute({
  getParentRoute: parent,
  path: '/documents',
  validateSearch: params((s) => ({ path: textParam(s.path), q: textParam(s.q) })),
  staticData: { page: { nav: 'documents', crumbs: crumbsOf({ label: groups.platform }, { label: nav.documents }) } },
  component: lazyRouteComponent(() => import('./screens/documents/documents'), 'DocumentsScreen'),
});

const searchRoute = createRoute({
  getParentRoute: parent,
  path: '/search',
  validateSearch: params((s) => ({ q: textParam(s.q) })),
  staticData: { page: { crumbs: crumbsOf({ label: nav.search }) } },
  component: lazyRouteComponent(() => import('./screens/search/search'), 'SearchScreen'),
});

const flagsRoute = createRoute({
  getParentRoute: parent,
  path: '/flags',
  staticData: { page: { nav: 'flags', crumbs: crumbsOf({ label: groups.platform }, { label: nav.flags }) } },
  component: lazyRouteComponent(() => import('./screens/flags/flags'), 'FlagsScreen'),
});

const notificationsRoute = createRoute({
  getParentRoute: parent,
  path: '/notifications',
  staticData: {
    page: { nav: 'notifications', crumbs: crumbsOf({ label: groups.platform }, { label: nav.notifications }) },
  },
  component: lazyRouteComponent(() => import('./screens/notifications/notifications'), 'NotificationsScreen'),
});

const configRoute = createRoute({
  getParentRoute: parent,
  path: '/config',
  staticData: { page: { nav: 'config', crumbs: crumbsOf({ label: groups.platform }, { label: nav.config }) } },
  component: lazyRouteComponent(() => import('./screens/config/config'), 'ConfigScreen'),
});

const snapshotRoute = createRoute({
  getParentRoute: parent,
  path: '/snapshot/$token',
  staticData: { page: { crumbs: crumbsOf({ label: nav.snapshot }) } },
  component: lazyRouteComponent(() => import('./screens/snapshot/snapshot'), 'SnapshotScreen'),
});

const preferencesRoute = createRoute({
  getParentRoute: parent,
  path: '/preferences',
  staticData: { page: { nav: 'preferences', crumbs: crumbsOf({ label: nav.preferences }) } },
  component: lazyRouteComponent(() => import('./screens/preferences/preferences'), 'PreferencesScreen'),
});

/** What no other route knows: the frame stays, so that the way back is in sight. */
const unknownRoute = createRoute({
  getParentRoute: parent,
  path: '$',
  staticData: { page: { nav: '', crumbs: crumbsOf({ label: text.shell.notFound }) } },
  component: NotFound,
});

export const routeTree = rootRoute.addChildren([
  loginRoute,
  shellRoute.addChildren([
    overviewRoute,
    registryRoute,
    modelRoute,
    promoteRoute,
    approvalsRoute,
    runsRoute,
    runRoute,
    compareRunsRoute,
    driftRoute,
    alertsRoute,
    moreRoute,
    galleryRoute,
    facilityRoute,
    healthRoute,
    llmopsRoute,
    finopsRoute,
    governanceRoute,
    auditRoute,
    documentsRoute,
    searchRoute,
    flagsRoute,
    notificationsRoute,
    configRoute,
    snapshotRoute,
    preferencesRoute,
    unknownRoute,
  ]),
]);

export const router = createRouter({
  routeTree,
  context: { queryClient },
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultErrorComponent: ({ error, reset }) => (
    <>
      <PageHead title={text.shell.pageFailed} />
      <Panel title={text.common.errors.unexpected} flush>
        <ErrorBlank error={error} onRetry={reset} />
      </Panel>
    </>
  ),
  defaultNotFoundComponent: NotFound,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
