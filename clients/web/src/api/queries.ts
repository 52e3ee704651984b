// Every read of the UI: a key that begins with the view's topic, and the call.

import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { boundsOf, type TimeRange } from '../state/range';
import { bodyOf, controlPlane, dashboard, platformFetch, sendJSON, serving } from './client';
import { Problem } from './problem';
import type { components as ControlPlane } from './gen/controlplane';
import type { components as Dashboard } from './gen/dashboard';

type SeriesMetric = Dashboard['schemas']['SeriesMetric'];
export type ApprovalStatus = ControlPlane['schemas']['ApprovalStatus'];

/** Lists are read whole up to this many rows. */
export const LIST_LIMIT = 200;
/** The service takes steps of up to a week, in seconds. */
const LONGEST_STEP = 604_800;

export const meQuery = queryOptions({
  queryKey: ['me'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/auth/me', { signal })),
  staleTime: 60_000,
  retry: false,
});

export const providersQuery = queryOptions({
  queryKey: ['providers'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/auth/sso/providers', { signal })),
});

export const overviewQuery = queryOptions({
  queryKey: ['overview'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/overview', { signal })),
});

export const healthQuery = queryOptions({
  queryKey: ['health'],
  meta: { from: 'dashboard' },
  // The server shares its probes: their time is that of the figures.
  queryFn: async ({ signal }) => {
    const health = await bodyOf(dashboard.GET('/api/health', { signal }));
    return { ...health, _as_of: health.checked_at };
  },
  refetchInterval: 15_000,
});

export const registryQuery = queryOptions({
  queryKey: ['registry'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/mlops/registry', { signal })),
});

export interface RegistryFilters {
  q?: string;
  view?: 'all' | 'attention' | 'unmeasured';
  stage?: string;
  freshness?: string;
  sort?: string;
}

type RegistryView = Dashboard['schemas']['RegistryView'];

const fetchRegistryPage = (filters: RegistryFilters, limit: number, cursor?: string, signal?: AbortSignal) =>
  bodyOf(dashboard.GET('/api/v1/mlops/registry', { params: { query: { ...filters, limit, cursor } }, signal }));

/** The rows of a registry that match, as far as they were read; all else is of the newest page. */
export const registryPagesQuery = (filters: RegistryFilters) =>
  infiniteQueryOptions({
    queryKey: ['registry', filters],
    meta: { from: 'dashboard' },
    queryFn: ({ pageParam, signal }) => fetchRegistryPage(filters, REGISTRY_PAGE, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.registry.next_cursor ?? undefined,
    select: ({ pages }): RegistryView => {
      const last = pages.at(-1) as RegistryView;
      return { ...last, registry: { ...last.registry, rows: pages.flatMap((page) => page.registry.rows) } };
    },
    placeholderData: keepPreviousData,
  });

const REGISTRY_PAGE = 200;

/** Every row that matches, for a file. */
export async function fetchRegistry(filters: RegistryFilters): Promise<RegistryView['registry']['rows']> {
  const rows: RegistryView['registry']['rows'] = [];
  for (let cursor: string | undefined; ;) {
    const { registry } = await fetchRegistryPage(filters, 500, cursor);
    rows.push(...registry.rows);
    if (!registry.next_cursor) return rows;
    cursor = registry.next_cursor;
  }
}

export const modelQuery = (name: string) =>
  queryOptions({
    queryKey: ['model', name],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) =>
      bodyOf(dashboard.GET('/api/v1/mlops/model/{name}', { params: { path: { name } }, signal })),
  });

export const seriesQuery = (name: string, metric: SeriesMetric, range: TimeRange, points = 240) =>
  queryOptions({
    queryKey: ['series', name, metric, range.key, points],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) => {
      const { from, to } = boundsOf(range);
      const step = Math.min(LONGEST_STEP, Math.max(1, Math.round(range.span / 1000 / points)));
      const query = { metric, from: from.toISOString(), to: to.toISOString(), step };
      return bodyOf(dashboard.GET('/api/v1/mlops/model/{name}/series', { params: { path: { name }, query }, signal }));
    },
    refetchInterval: 60_000,
  });

export const gateQuery = (name: string) =>
  queryOptions({
    queryKey: ['promotions', 'gate', name],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) =>
      bodyOf(dashboard.GET('/api/v1/mlops/promotion/{name}', { params: { path: { name } }, signal })),
  });

export const approvalsQuery = (status?: ApprovalStatus) =>
  queryOptions({
    queryKey: ['approvals', status ?? 'all'],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(controlPlane.GET('/approvals', { params: { query: { status, limit: LIST_LIMIT } }, signal })),
  });

export const approvalQuery = (id: string) =>
  queryOptions({
    queryKey: ['approvals', 'one', id],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) => bodyOf(controlPlane.GET('/approvals/{id}', { params: { path: { id } }, signal })),
  });

/** What approving the record would do now; fetched again before each decision. */
export const effectQuery = (id: string) =>
  queryOptions({
    queryKey: ['approvals', 'effect', id],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(dashboard.GET('/api/v1/approvals/{id}/effect', { params: { path: { id } }, signal })),
    staleTime: 0,
    refetchInterval: 15_000,
  });

export const approvalDiffQuery = (id: string) =>
  queryOptions({
    queryKey: ['approvals', 'diff', id],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) => bodyOf(controlPlane.GET('/approvals/{id}/diff', { params: { path: { id } }, signal })),
    staleTime: Infinity, // between two commits
    retry: false,
  });

export const promotionsQuery = queryOptions({
  queryKey: ['promotions', 'list'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) =>
    bodyOf(controlPlane.GET('/promotions', { params: { query: { limit: LIST_LIMIT } }, signal })),
});

export const promotionQuery = (id: string) =>
  queryOptions({
    queryKey: ['promotions', 'one', id],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) => bodyOf(controlPlane.GET('/promotions/{id}', { params: { path: { id } }, signal })),
  });

export const policiesQuery = queryOptions({
  queryKey: ['promotions', 'policies'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) =>
    bodyOf(controlPlane.GET('/promotion-policies', { params: { query: { limit: LIST_LIMIT } }, signal })),
});

export const runsQuery = (model?: string) =>
  queryOptions({
    queryKey: ['runs', 'list', model ?? ''],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(controlPlane.GET('/runs', { params: { query: { model, limit: LIST_LIMIT } }, signal })),
  });

/** The runs with what each did, cost and changed. */
export const runRowsQuery = queryOptions({
  queryKey: ['runs', 'rows'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/runs', { signal })),
});

/** A run that was started a moment ago is not in the shared list yet: its absence counts after a few seconds. */
export const runDetailQuery = (id: string) =>
  queryOptions({
    queryKey: ['runs', 'detail', id],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/runs/{id}', { params: { path: { id } }, signal })),
    retry: (failures, error) => failures < 3 && error instanceof Problem && [0, 404].includes(error.status),
    retryDelay: 1500,
  });

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: ['runs', 'one', id],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(controlPlane.GET('/retrain/{flow_run_id}', { params: { path: { flow_run_id: id } }, signal })),
  });

export const repositoryModelsQuery = queryOptions({
  queryKey: ['modelrepo', 'models'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) => bodyOf(controlPlane.GET('/models', { signal })),
});

export const modelMetaQuery = (model: string) =>
  queryOptions({
    queryKey: ['modelrepo', 'meta', model],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) => bodyOf(controlPlane.GET('/models/{model}/meta', { params: { path: { model } }, signal })),
    retry: false,
  });

export const freshnessQuery = queryOptions({
  queryKey: ['modelrepo', 'status'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) => bodyOf(controlPlane.GET('/modelrepo/status', { signal })),
});

export const pushesQuery = queryOptions({
  queryKey: ['modelrepo', 'events'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) => bodyOf(controlPlane.GET('/modelrepo/events', { params: { query: { limit: 50 } }, signal })),
});

export const aliasHistoryQuery = (model: string) =>
  queryOptions({
    queryKey: ['model', model, 'aliases'],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(controlPlane.GET('/alias-history', { params: { query: { model, limit: LIST_LIMIT } }, signal })),
  });

/** Returns who held an alias at an instant, from the control plane's own records. */
export const aliasAtQuery = (model: string, alias: string, at: string) =>
  queryOptions({
    queryKey: ['model', model, 'alias-at', alias, at],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(controlPlane.GET('/alias-history', { params: { query: { model, alias, at } }, signal })),
  });

export const modelCostsQuery = (model: string) =>
  queryOptions({
    queryKey: ['finops', 'model', model],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(controlPlane.GET('/costs', { params: { query: { model, limit: LIST_LIMIT } }, signal })),
  });

export const autoRetrainQuery = queryOptions({
  queryKey: ['drift', 'auto'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) =>
    bodyOf(controlPlane.GET('/auto-retrain', { params: { query: { limit: LIST_LIMIT } }, signal })),
});

export const driftQuery = (model?: string) =>
  queryOptions({
    queryKey: ['drift', 'status', model ?? ''],
    meta: { from: 'serving' },
    queryFn: ({ signal }) =>
      bodyOf(serving.GET('/drift/status', { params: { query: { model, limit: LIST_LIMIT } }, signal })),
  });

export interface InputDrift {
  model: string;
  alias?: string;
  status: string;
  overall?: string;
  z_score?: number | null;
  max_z?: number | null;
  n_snapshots?: number;
  reason?: string;
  measures?: Record<string, { value?: number | null; status?: string }>;
}

/** Drift of the inputs; a serving build without it answers 404, which the panel reports. */
export const inputDriftQuery = queryOptions({
  queryKey: ['drift', 'input'],
  meta: { from: 'serving' },
  queryFn: () => sendJSON<InputDrift[]>('GET', '/api/proxy/serving/drift/input/status'),
  retry: false,
});

/** Which inputs of a model moved, with histograms of both samples. */
export const inputReportQuery = (model: string) =>
  queryOptions({
    queryKey: ['drift', 'report', model],
    meta: { from: 'serving' },
    queryFn: ({ signal }) =>
      bodyOf(serving.GET('/drift/input/{model_name}/report', { params: { path: { model_name: model } }, signal })),
    retry: false,
  });

export const servedQuery = queryOptions({
  queryKey: ['registry', 'served'],
  meta: { from: 'serving' },
  queryFn: ({ signal }) =>
    bodyOf(serving.GET('/models', { params: { query: { alias: '*', limit: LIST_LIMIT } }, signal })),
});

export const alertsQuery = (state?: 'resolved' | 'all') =>
  queryOptions({
    queryKey: ['alerts', state ?? 'open'],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/alerts', { params: { query: { state } }, signal })),
  });

/** Changes of rules that wait for a second person. */
export const guardedChangesQuery = queryOptions({
  queryKey: ['governance', 'changes'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) =>
    bodyOf(
      controlPlane.GET('/governance/changes', { params: { query: { state: 'pending', limit: LIST_LIMIT } }, signal }),
    ),
});

export const governanceQuery = queryOptions({
  queryKey: ['governance'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/governance/overview', { signal })),
});

export const finopsQuery = queryOptions({
  queryKey: ['finops'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/finops/overview', { signal })),
});

export const llmopsQuery = queryOptions({
  queryKey: ['llmops'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/llmops/overview', { signal })),
});

export const facilityQuery = (cluster?: string) =>
  queryOptions({
    queryKey: ['facility', 'overview', cluster ?? ''],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) =>
      bodyOf(dashboard.GET('/api/v1/facility/overview', { params: { query: { cluster } }, signal })),
  });

export const queueQuery = (cluster?: string) =>
  queryOptions({
    queryKey: ['facility', 'queue', cluster ?? ''],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) =>
      bodyOf(dashboard.GET('/api/v1/facility/queue', { params: { query: { cluster } }, signal })),
  });

export const jobQuery = (id: string, cluster?: string) =>
  queryOptions({
    queryKey: ['facility', 'job', id, cluster ?? ''],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) =>
      bodyOf(
        dashboard.GET('/api/v1/facility/job/{job_id}', {
          params: { path: { job_id: id }, query: { cluster } },
          signal,
        }),
      ),
  });

export const selfQuery = queryOptions({
  queryKey: ['health', 'self'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/selfobs/status', { signal })),
  refetchInterval: 15_000,
});

export const flagsQuery = queryOptions({
  queryKey: ['flags'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/flags', { signal })),
});

export const inboxQuery = queryOptions({
  queryKey: ['inbox'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/inbox', { signal })),
});

export const channelsQuery = queryOptions({
  queryKey: ['notifications'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/notifications/channels', { signal })),
  refetchInterval: 10_000,
});

export const commentsQuery = (type: string, id: string) =>
  queryOptions({
    queryKey: ['comments', type, id],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) =>
      bodyOf(
        dashboard.GET('/api/v1/collab/{type}/{id}/comments', {
          params: { path: { type, id }, query: { limit: LIST_LIMIT } },
          signal,
        }),
      ),
  });

export const activityQuery = (type: string, id: string) =>
  queryOptions({
    queryKey: ['comments', type, id, 'activity'],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) =>
      bodyOf(dashboard.GET('/api/v1/collab/{type}/{id}/activity', { params: { path: { type, id } }, signal })),
  });

export const searchQuery = (q: string, limit = 20) =>
  queryOptions({
    queryKey: ['search', q, limit],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/search', { params: { query: { q, limit } }, signal })),
    enabled: q.trim() !== '',
    staleTime: 10_000,
  });

/** The newest signed checkpoints of the ledger. */
export const checkpointsQuery = queryOptions({
  queryKey: ['governance', 'checkpoints'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) => bodyOf(controlPlane.GET('/audit/checkpoints', { params: { query: { limit: 20 } }, signal })),
  retry: false,
});

export const ledgerKeysQuery = queryOptions({
  queryKey: ['governance', 'keys'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) => bodyOf(controlPlane.GET('/audit/keys', { signal })),
  staleTime: 60_000,
  retry: false,
});

/** Recomputes the whole chain; slow on a large ledger, so it runs only on request. */
export const verifyLedgerQuery = queryOptions({
  queryKey: ['ledger-verdict'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) => bodyOf(controlPlane.GET('/audit/verify', { signal })),
  enabled: false,
  staleTime: Infinity,
  gcTime: 0,
  retry: false,
});

export const modelCardsQuery = queryOptions({
  queryKey: ['governance', 'cards'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) =>
    bodyOf(controlPlane.GET('/model-cards', { params: { query: { limit: LIST_LIMIT } }, signal })),
});

export interface AuditFilters {
  q?: string;
  model?: string;
  action?: string;
  source?: string;
  actor?: string;
  since?: string;
  until?: string;
}

export const AUDIT_PAGE = 200;

export const auditQuery = (filters: AuditFilters) =>
  infiniteQueryOptions({
    queryKey: ['audit', filters],
    meta: { from: 'control_plane' },
    queryFn: ({ pageParam, signal }) =>
      bodyOf(
        dashboard.GET('/api/audit', {
          params: { query: { ...filters, limit: AUDIT_PAGE, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    retry: false,
  });

/** The ledger as NDJSON that can be verified offline. */
export async function fetchLedger(since?: string, until?: string): Promise<Blob> {
  const query = new URLSearchParams();
  if (since) query.set('since', since);
  if (until) query.set('until', until);
  const tail = query.size ? `?${query}` : '';
  return (await platformFetch(`${location.origin}/api/proxy/control_plane/audit/export${tail}`)).blob();
}

export const carbonQuery = queryOptions({
  queryKey: ['finops', 'carbon'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) => bodyOf(controlPlane.GET('/carbon', { signal })),
});

export const budgetsQuery = queryOptions({
  queryKey: ['finops', 'budgets'],
  meta: { from: 'control_plane' },
  queryFn: ({ signal }) => bodyOf(controlPlane.GET('/budgets', { params: { query: { limit: LIST_LIMIT } }, signal })),
});

/** Cost by model or by project; the view has one of them. */
export const costSummaryQuery = (by: 'model' | 'project') =>
  queryOptions({
    queryKey: ['finops', 'summary', by],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) => bodyOf(controlPlane.GET('/costs/summary', { params: { query: { by } }, signal })),
  });

export const evalsQuery = (model?: string) =>
  queryOptions({
    queryKey: ['llmops', 'evals', model ?? ''],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) => bodyOf(controlPlane.GET('/evals', { params: { query: { model, limit: 50 } }, signal })),
  });

/** The settings with the tag that a write returns, so that no one overwrites a change they have not seen. */
export const configQuery = queryOptions({
  queryKey: ['config', 'values'],
  meta: { from: 'dashboard' },
  queryFn: async ({ signal }) => {
    const { data, response } = await dashboard.GET('/api/config', { signal });
    return { values: data as Dashboard['schemas']['Config'], etag: response.headers.get('etag') ?? undefined };
  },
});

export const configKeysQuery = queryOptions({
  queryKey: ['config', 'keys'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/config/keys', { signal })),
});

export const flagDefinitionsQuery = queryOptions({
  queryKey: ['flags', 'definitions'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/v1/flags/admin', { signal })),
});

export const docsTreeQuery = queryOptions({
  queryKey: ['docs', 'tree'],
  meta: { from: 'dashboard' },
  queryFn: ({ signal }) => bodyOf(dashboard.GET('/api/docs/tree', { signal })),
  staleTime: 60_000,
});

export const docsPageQuery = (path: string) =>
  queryOptions({
    queryKey: ['docs', 'page', path],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) =>
      bodyOf(dashboard.GET('/api/docs/content', { params: { query: { path } }, parseAs: 'text', signal })),
    staleTime: 60_000,
    retry: false,
  });

export const snapshotQuery = (token: string) =>
  queryOptions({
    queryKey: ['snapshot', token],
    meta: { from: 'dashboard' },
    queryFn: ({ signal }) =>
      bodyOf(dashboard.GET('/api/v1/collab/snapshot/{token}', { params: { path: { token } }, signal })),
    staleTime: Infinity,
    retry: false,
  });

/** A change that the assistant proposed, in its wire form; see clients/go/assistant/openapi.yaml. */
export interface AssistantAction {
  action_id: string;
  cluster?: string;
  state: 'pending' | 'approved' | 'denied' | 'expired' | 'stale' | 'executing' | 'succeeded' | 'failed' | 'unknown';
  human_summary: string;
  risk_level: string;
  always_confirm: boolean;
  always_confirm_reasons?: string[];
  notes?: string[];
  digest: string;
  diff: string;
  requested_at: string;
  expires_at: string;
  decided_at?: string;
  reason?: string;
  replaced_by?: string;
  result?: string;
  verification?: string;
}

/** The clusters that the assistant answers about, the default first; none where there is one without a name. */
export const assistantClustersQuery = queryOptions({
  queryKey: ['assistant-clusters'],
  meta: { from: 'assistant' },
  queryFn: async ({ signal }) => (await bodyOf(dashboard.GET('/api/v1/assistant/clusters', { signal }))).clusters,
  staleTime: 60_000,
});

/** The changes that a conversation proposed. */
export const assistantActionsQuery = (session: string) =>
  queryOptions({
    queryKey: ['assistant', 'actions', session],
    meta: { from: 'assistant' },
    queryFn: async ({ signal }) => {
      const params = { path: { session }, query: { limit: 50 } };
      const page = await bodyOf(dashboard.GET('/api/v1/assistant/sessions/{session}/actions', { params, signal }));
      return (page as { items?: AssistantAction[] }).items ?? [];
    },
    enabled: session !== '',
  });

/** Returns how the gate judges one version on its way from one alias to another. */
export const versionGateQuery = (model: string, version: string, from: string, to: string) =>
  queryOptions({
    queryKey: ['promotions', 'version-gate', model, version, from, to],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(
        controlPlane.GET('/promotions/{model}/gate', {
          params: { path: { model }, query: { version, from, to } },
          signal,
        }),
      ),
    enabled: version !== '',
  });

export const policyQuery = (model: string) =>
  queryOptions({
    queryKey: ['promotions', 'policy', model],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(controlPlane.GET('/promotion-policies/{model}', { params: { path: { model } }, signal })),
    retry: false,
  });

export const modelPromotionsQuery = (model: string) =>
  queryOptions({
    queryKey: ['promotions', 'of', model],
    meta: { from: 'control_plane' },
    queryFn: ({ signal }) =>
      bodyOf(controlPlane.GET('/promotions', { params: { query: { model, limit: 20 } }, signal })),
  });
