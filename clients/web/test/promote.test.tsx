import { describe, expect, it } from 'vitest';
import { promotionAct } from '../src/screens/promote/approve';
import { gateItems, isOpen } from '../src/screens/promote/judge';
import type { Wizard } from '../src/screens/promote/promote';
import {
  defaultCandidate,
  isUnderWay,
  meets,
  metricNames,
  promotionOf,
  readReload,
  type LoadedModel,
  type Promotion,
  type Version,
} from '../src/screens/promote/steps';

const version = (n: number, aliases: string[], metrics: Record<string, number> = {}): Version => ({
  version: n,
  aliases,
  runId: `run${n}`,
  createdAt: '2026-11-22T00:00:00Z',
  metrics,
});

const now = Date.parse('2026-11-22T12:00:00Z');
const promotion = (change: Partial<Promotion>): Promotion =>
  ({
    id: 'p1',
    version: '2',
    to: 'Production',
    state: 'pending',
    updated_at: '2026-11-22T11:59:00Z',
    ...change,
  }) as Promotion;

const wizard = (change: Partial<Wizard> = {}): Wizard => ({
  model: 'JPCP',
  trackerName: 'jpcp',
  versions: [],
  candidate: version(2, ['Staging']),
  current: version(1, ['Production']),
  from: 'Staging',
  to: 'Production',
  ...change,
});

describe('the candidate', () => {
  it('is the version the policy promotes from, else the newest that does not serve yet', () => {
    const v1 = version(1, ['Production']);
    const v2 = version(2, ['Staging']);
    const v3 = version(3, []);
    expect(defaultCandidate([v3, v2, v1], 'Staging', 'Production')).toBe(v2);
    expect(defaultCandidate([v3, v1], 'Staging', 'Production')).toBe(v3);
    expect(defaultCandidate([version(1, ['Production', 'Staging'])], 'Staging', 'Production')).toBeUndefined();
  });
});

describe('the promotion that the steps are about', () => {
  const held = version(2, ['Staging']);
  it('is the one that waits before any that is over', () => {
    const waiting = promotion({ id: 'old' });
    expect(promotionOf([promotion({ id: 'new', state: 'rejected' }), waiting], held, 'Production', now)).toBe(waiting);
  });
  it('is none of another version or alias', () => {
    const others = [promotion({ version: '3' }), promotion({ to: 'Canary' })];
    expect(promotionOf(others, held, 'Production', now)).toBeUndefined();
  });
  it('is none of long ago once its version was rolled back', () => {
    const old = promotion({ state: 'promoted', updated_at: '2026-11-22T09:00:00Z' });
    expect(promotionOf([old], held, 'Production', now)).toBeUndefined();
    expect(promotionOf([old], version(2, ['Production']), 'Production', now)).toBe(old);
    const fresh = promotion({ state: 'promoted' });
    expect(promotionOf([fresh], held, 'Production', now)).toBe(fresh);
  });
  it('is under way once it is approved', () => {
    const states = ['pending', 'rejected', 'expired', 'superseded', 'approved', 'promoted', 'failed'] as const;
    expect(states.filter((state) => isUnderWay(promotion({ state })))).toEqual(['approved', 'promoted', 'failed']);
  });
});

describe('the gate', () => {
  const check = (name: string, pass: boolean) => ({ name, pass, detail: `${name}.` });
  const gate = (...checks: { name: string; pass: boolean; detail: string }[]) =>
    ({ checks, allowed: false, approval: { required: true, state: 'pending' } }) as never;
  it('shows what holds a version first', () => {
    const items = gateItems(gate(check('policy', true), check('policy_metric', false)));
    expect(items.map((item) => [item.kind, item.detail])).toEqual([
      ['critical', 'policy_metric.'],
      ['ok', 'policy.'],
    ]);
  });
  it('is open when only the decision is missing', () => {
    expect(isOpen(gate(check('policy', true)))).toBe(true);
    expect(isOpen(gate(check('policy', true), check('to', false)))).toBe(false);
    expect(isOpen(gate())).toBe(false);
  });
  it.each([
    [17, 'lte', 17, true],
    [17, 'lt', 17, false],
    [0.7, 'gte', 0.7, true],
    [0.7, 'gt', 0.7, false],
    [1, 'eq', 1, undefined],
  ] as const)('judges %d %s %d as the control plane does', (value, operator, threshold, want) => {
    expect(meets(value, operator, threshold)).toBe(want);
  });
  it('lists the metric of the policy first and baselines not at all', () => {
    const candidate = version(2, [], { val_rmse: 2, mae: 1, baseline_rmse: 9, rmse: 3 });
    expect(metricNames(candidate, version(1, [], { r2: 1 }), 'rmse')).toEqual(['rmse', 'mae', 'r2', 'val_rmse']);
  });
});

describe('the act', () => {
  it('decides the promotion that waits, by its id', () => {
    const act = promotionAct(wizard({ promotion: promotion({}) }), 'promote', '');
    expect(act).toMatchObject({ path: '/api/proxy/control_plane/promotions/p1/approve', body: {} });
  });
  it('opens one and approves it where none waits', () => {
    const act = promotionAct(wizard({ promotion: promotion({ state: 'rejected' }) }), 'promote', 'launch');
    expect(act.path).toBe('/api/proxy/control_plane/promotions');
    expect(act.body).toEqual({
      model: 'JPCP',
      version: '2',
      from: 'Staging',
      to: 'Production',
      approve: true,
      reason: 'launch',
    });
  });
  it('only opens one for another person', () => {
    expect(promotionAct(wizard(), 'open', '').body).toMatchObject({ approve: false });
  });
  it('names model, version and alias for the step-up', () => {
    expect(promotionAct(wizard(), 'promote', '').title).toBe('Move Production of JPCP to v2');
  });
});

describe('the reload', () => {
  const loaded = (change: Partial<LoadedModel>): LoadedModel =>
    ({ model_name: 'JPCP', model_version: '2', alias: 'Production', verified: true, ...change }) as LoadedModel;
  const event = (name: string, data: object) => ({
    id: name + JSON.stringify(data),
    name,
    data: { model: 'JPCP', version: '2', alias: 'Production', ...data },
    at: new Date(now),
    actor: '',
  });
  const read = (list: LoadedModel[], events: ReturnType<typeof event>[] = []) =>
    readReload(['JPCP', 'jpcp'], 2, 'Production', list, events);
  it('is done when serving answers with this version under this alias', () => {
    expect(read([loaded({ model_version: '1' }), loaded({ alias: 'Canary' })]).served).toBeUndefined();
    expect(read([loaded({ model_name: 'jpcp' })]).served).toBeDefined();
  });
  it('names each replica once, and those that failed with their reason', () => {
    const got = read(
      [],
      [
        event('deploy.model_loaded', { replica: 'a' }),
        event('deploy.model_loaded', { replica: 'a', reason: 'again' }),
        event('deploy.model_loaded', { replica: 'b', version: '1' }),
        event('deploy.load_failed', { replica: 'c', reason: 'digest mismatch' }),
      ],
    );
    expect(got.replicas.map((replica) => replica.name)).toEqual(['a']);
    expect(got.failures).toMatchObject([{ name: 'c', reason: 'digest mismatch' }]);
  });
});
