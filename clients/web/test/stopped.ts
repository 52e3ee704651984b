// The answers of the dashboard while a service behind it is unreachable, has no data, or answers normally: reads
// through the proxy fails, and a view loses the members of that service, as docs/dashboard.md has it.

// @ts-expect-error: plain JavaScript, for development and tests only
import { answer, registryOf } from '../dev/fixtures.mjs';

export const services = ['tracker', 'serving', 'control_plane'] as const;
export type Service = (typeof services)[number];
/** The state of a service: normal, without any data, all well, or unreachable. */
export type Mood = 'full' | 'empty' | 'well' | 'away';

type Doc = Record<string, unknown>;
const as = <T = Doc>(value: unknown): T => value as T;

const unmeasured: Record<Service, readonly string[]> = {
  tracker: ['aliases', 'version'],
  serving: ['zScore', 'trend', 'driftStatus', 'served'],
  control_plane: ['freshnessStatus', 'governed'],
};
const registrySources: Record<Service, string[]> = {
  tracker: ['tracker'],
  serving: ['drift', 'serving', 'traffic'],
  control_plane: ['freshness', 'promotion'],
};
/** The members of each service in the views that are objects. */
const members: Record<Service, Record<string, Record<string, string>>> = {
  tracker: { detail: { versions: 'tracker', description: 'tracker' } },
  serving: { detail: { drift: 'drift', traffic: 'traffic' } },
  control_plane: {
    detail: { cost: 'cost', promotion: 'promotion', aliasHistory: 'promotion' },
    governance: { posture: 'posture', compliance: 'compliance', cards: 'cards', audit: 'audit' },
    finops: { cost: 'cost', budget: 'budget', carbon: 'carbon', unitEconomics: 'cost' },
  },
};

/** Returns the value with every list empty and every number 0. */
function emptied(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  if (typeof value === 'number') return 0;
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, emptied(each)]));
}

function withPartial(view: Doc, sources: string[]): Doc {
  const states = sources.map((name) => [
    name,
    { state: 'failed', status: 'error', ms: 1, error: 'the service cannot be reached' },
  ]);
  return { ...view, _partial: [...new Set(sources)].sort(), _sources: Object.fromEntries(states) };
}

function registryView(view: Doc, service: Service, mood: Mood): Doc {
  const rows = as<{ rows: Doc[] }>(view.registry).rows;
  if (service === 'tracker') {
    const kept = mood === 'full' || mood === 'well' ? rows : [];
    const changed = { ...view, registry: registryOf(kept) };
    return mood === 'away' ? withPartial(changed, ['tracker']) : changed;
  }
  const changed = rows.map((row) => {
    const next: Doc = { ...row };
    if (mood === 'well') {
      Object.assign(next, {
        zScore: 0,
        driftStatus: 'OK',
        served: true,
        health: 'ok',
        severity: 'ok',
        healthReasons: [],
      });
      Object.assign(next, { freshnessStatus: 'current', governed: true });
    } else if (mood === 'empty') {
      if (service === 'serving')
        Object.assign(next, { zScore: 0, driftStatus: 'NO_BASELINE', served: false, trend: [] });
      else Object.assign(next, { freshnessStatus: 'unknown', governed: false });
      Object.assign(next, { health: 'unknown', severity: 'unknown', healthReasons: ['nothing was compared'] });
    } else {
      for (const name of unmeasured[service]) delete next[name];
      Object.assign(next, { health: 'unknown', severity: 'unknown', healthReasons: ['the source did not answer'] });
    }
    return next;
  });
  const out = { ...view, registry: registryOf(mood === 'full' ? rows : changed) };
  return mood === 'away' ? withPartial(out, registrySources[service]) : { ...out, _partial: undefined };
}

function without(view: Doc, service: Service, mood: Mood, kind: string, at?: string): Doc {
  const mine = members[service][kind];
  if (!mine || mood === 'full' || mood === 'well') return view;
  const holder = { ...(at ? as(view[at]) : view) };
  for (const name of Object.keys(mine)) {
    if (mood === 'away') delete holder[name];
    else holder[name] = emptied(holder[name]);
  }
  const out = at
    ? { ...view, [at]: holder }
    : { ...view, ...holder, ...Object.fromEntries(Object.keys(mine).map((n) => [n, holder[n]])) };
  return mood === 'away' ? withPartial(out, Object.values(mine)) : out;
}

/** Returns the empty replacement of a view whose shape stays without its source. */
function shaped(view: Doc, mood: Mood, sources: string[]): Doc {
  if (mood === 'full' || mood === 'well') return view;
  return mood === 'away' ? withPartial(as(emptied(view)), sources) : as(emptied(view));
}

/** Returns the view of runs: the control plane has the runs, the tracker knows the version in Production. */
function runsView(view: Doc, service: Service, mood: Mood): Doc {
  if (service === 'serving' || mood === 'full' || mood === 'well') return view;
  if (service === 'control_plane')
    return mood === 'away'
      ? withPartial({}, ['runs', 'promotion', 'cost'])
      : { ...view, runs: { items: [], truncated: false } };
  const change =
    mood === 'away'
      ? { state: 'failed', reason: 'the tracker gave no answer about Production' }
      : { state: 'not_measured', reason: 'the model has no version in Production' };
  const items = as<{ items: Doc[] }>(view.runs).items.map((run) => ({ ...run, change }));
  const out = { ...view, runs: { items, truncated: false } };
  return mood === 'away' ? withPartial(out, ['tracker']) : out;
}

const shapes: [RegExp, Service, string[]][] = [
  [/^\/api\/v1\/alerts$/, 'control_plane', ['alerts']],
  [/^\/api\/v1\/llmops\/overview$/, 'control_plane', ['endpoints', 'evals']],
  [/^\/api\/v1\/facility\/(overview|queue)$/, 'control_plane', ['jobs']],
  [/^\/api\/v1\/search$/, 'tracker', ['tracker']],
  [/^\/api\/v1\/collab\/[^/]+\/[^/]+\/activity$/, 'control_plane', ['audit']],
];

/** Returns the body, or undefined where the dashboard reports that the service behind is unreachable. */
export function answerWith(url: URL, service: Service, mood: Mood): unknown {
  const { pathname: path, searchParams: query } = url;
  const body = (answer as (...args: unknown[]) => unknown)('GET', path, query, undefined, 'admin');
  const owner =
    /^\/api\/proxy\/(control_plane|serving)\//.exec(path)?.[1] ?? (path === '/api/audit' ? 'control_plane' : '');
  if (owner === service) return mood === 'away' ? undefined : mood === 'empty' ? emptied(body) : body;
  if (body === undefined) return undefined;
  if (path === '/api/v1/mlops/registry') return registryView(as(body), service, mood);
  if (/^\/api\/v1\/mlops\/model\/[^/]+$/.test(path)) return without(as(body), service, mood, 'detail', 'detail');
  if (path === '/api/v1/runs') return runsView(as(body), service, mood);
  if (path.endsWith('/series')) {
    const cost = query.get('metric') === 'cost_usd';
    if ((cost ? 'control_plane' : 'serving') !== service || mood === 'full' || mood === 'well') return body;
    const view = { ...as(body), points: [] };
    return mood === 'away' ? withPartial(view, [cost ? 'cost' : 'drift']) : view;
  }
  if (path === '/api/v1/governance/overview') return without(as(body), service, mood, 'governance');
  if (path === '/api/v1/finops/overview') return without(as(body), service, mood, 'finops');
  if (path.startsWith('/api/v1/mlops/promotion/') && service === 'control_plane' && mood === 'away')
    return withPartial(as(body), ['promotion']);
  const shape = shapes.find(([pattern, owner]) => owner === service && pattern.test(path));
  return shape ? shaped(as(body), mood, shape[2]) : body;
}
