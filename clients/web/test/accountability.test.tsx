import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import type { ReactNode } from 'react';
import { describe, expect, it, vi } from 'vitest';
import { configKeysQuery, configQuery, meQuery } from '../src/api/queries';
import { modelOf, readInstant, showInstant } from '../src/screens/audit/filters';
import { outcomeKind } from '../src/screens/audit/outcome';
import { ConfigScreen } from '../src/screens/config/config';
import { canClear, clearKey, faultOf, forget, typeInto, type ConfigKey } from '../src/screens/config/draft';
import { anchorOf, headingsOf, numberAnchors, readDocLink } from '../src/screens/documents/links';
import DocMarkdown from '../src/screens/documents/markdown';
import { isWaiting, jobKind, waitOf } from '../src/screens/facility/jobs';
import { budgetBody, standingOf } from '../src/screens/finops/standing';
import { chainStateOf, type Ledger } from '../src/screens/governance/verdict';
import { placeOf } from '../src/screens/search/search';
import { frozenOf, readFrozen, spellKey } from '../src/screens/snapshot/frozen';

const secret: ConfigKey = {
  key: 'forge_token',
  is_secret: true,
  has_value: true,
  type: 'secret',
  description: 'Token',
  source: 'stored',
};
const address: ConfigKey = {
  key: 'tracker_url',
  is_secret: false,
  has_value: true,
  type: 'url',
  description: 'Tracker',
  source: 'environment',
};

describe('draft of the configuration', () => {
  it('keeps a secret whose field is blank', () => {
    expect(typeInto({}, secret, '***', '')).toEqual({});
    expect(typeInto({ forge_token: 'new' }, secret, '***', '')).toEqual({});
  });
  it('clears a secret only when told to', () => {
    expect(clearKey({}, 'forge_token')).toEqual({ forge_token: null });
    expect(forget({ forge_token: null }, 'forge_token')).toEqual({});
  });
  it('keeps blanks inside and around a secret as typed', () => {
    expect(typeInto({}, secret, '***', ' a b ')).toEqual({ forge_token: ' a b ' });
  });
  it('refuses the mask as a secret', () => {
    expect(faultOf(secret, '***')).toBe('masked');
    expect(faultOf(secret, 'real')).toBeUndefined();
  });
  it('takes an emptied address for cleared and an unchanged one for no change', () => {
    expect(typeInto({}, address, 'http://a', '')).toEqual({ tracker_url: null });
    expect(typeInto({ tracker_url: 'http://b' }, address, 'http://a', 'http://a')).toEqual({});
  });
  it('refuses addresses of other schemes and with a user name', () => {
    expect(faultOf(address, 'ftp://a')).toBe('url');
    expect(faultOf(address, 'http://me@a')).toBe('url');
    expect(faultOf(address, 'no address')).toBe('url');
    expect(faultOf(address, 'https://a:5000/api')).toBeUndefined();
    expect(faultOf(address, null)).toBeUndefined();
  });
  it('offers to clear only what is stored', () => {
    expect(canClear(secret)).toBe(true);
    expect(canClear(address)).toBe(false);
  });
});

function withData(capabilities: string[], children: ReactNode): void {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
  client.setQueryData(meQuery.queryKey, {
    sub: 'local:admin',
    role: 'admin',
    tenant: 'default',
    capabilities,
    auth_method: 'password',
    auth_time: '2026-11-22T10:00:00Z',
    expires_at: '2026-11-22T22:00:00Z',
    break_glass: false,
  });
  client.setQueryData(configKeysQuery.queryKey, [address, secret]);
  client.setQueryData(configQuery.queryKey, {
    values: { tracker_url: 'http://a:1', forge_token: '***' },
    etag: '"v1"',
  });
  render(<QueryClientProvider client={client}>{children}</QueryClientProvider>);
}

describe('ConfigScreen', () => {
  it('never shows a secret, nor its mask as a value', () => {
    withData(['config.write'], <ConfigScreen />);
    const field = screen.getByLabelText<HTMLInputElement>('forge_token');
    expect(field.type).toBe('password');
    expect(field.value).toBe('');
  });
  it('sends only what changed, with the version that was seen', async () => {
    const sent: Request[] = [];
    vi.stubGlobal(
      'fetch',
      vi.fn((request: Request) => {
        sent.push(request.clone());
        return Promise.resolve(new Response('{}', { headers: { 'content-type': 'application/json' } }));
      }),
    );
    const user = userEvent.setup();
    withData(['config.write'], <ConfigScreen />);
    await user.type(screen.getByLabelText('forge_token'), 's3cret');
    await user.click(screen.getByRole('button', { name: 'Review and save…' }));
    const dialog = screen.getByRole('alertdialog');
    expect(within(dialog).queryByText('s3cret')).toBeNull();
    await user.click(within(dialog).getByRole('button', { name: 'Save 1 change' }));
    await waitFor(() => expect(sent.some((request) => request.method === 'PUT')).toBe(true));
    const put = sent.find((request) => request.method === 'PUT');
    expect(await put?.json()).toEqual({ forge_token: 's3cret' });
    expect(put?.headers.get('if-match')).toBe('"v1"');
    vi.unstubAllGlobals();
  });
  it('marks a secret as cleared, and takes it back', async () => {
    const user = userEvent.setup();
    withData(['config.write'], <ConfigScreen />);
    await user.click(screen.getByRole('button', { name: 'Clear forge_token' }));
    expect(screen.queryByLabelText('forge_token')).toBeNull();
    expect(screen.getByText('1 change is not saved')).toBeTruthy();
    await user.click(screen.getByRole('button', { name: 'Undo the change of forge_token' }));
    expect(screen.getByLabelText('forge_token')).toBeTruthy();
    expect(screen.queryByText('1 change is not saved')).toBeNull();
  });
  it('gives a viewer nothing to type into', () => {
    withData(['view'], <ConfigScreen />);
    expect(screen.queryByLabelText('tracker_url')).toBeNull();
    expect(screen.getByText('http://a:1')).toBeTruthy();
    expect(screen.queryByText('***')).toBeNull();
  });
});

const ledger: Ledger = {
  count: 10,
  headDigest: 'h',
  verified: true,
  verifiedAt: '2026-11-22T10:00:00Z',
  checked: 10,
  entries: [],
};

describe('chainStateOf', () => {
  it('is not measured before the first verification', () => {
    expect(chainStateOf({ ...ledger, verified: null }, undefined, undefined, undefined).kind).toBe('unknown');
    expect(chainStateOf(undefined, undefined, undefined, undefined).kind).toBe('unknown');
  });
  it('lets the newer verdict count', () => {
    const head = { seq: 10, hash: 'h' };
    const bad = {
      verified: false,
      checked: 7,
      head,
      first_bad_seq: 8,
      signed_seq: 0,
      high_water: head,
      memory: 'kept' as const,
      failures: [],
      acknowledgements: [],
    };
    const later = chainStateOf(ledger, { ...bad, verified_at: '2026-11-22T11:00:00Z' }, undefined, undefined);
    expect(later).toMatchObject({ kind: 'critical', badSeq: 8 });
    const earlier = chainStateOf(ledger, { ...bad, verified_at: '2026-11-22T09:00:00Z' }, undefined, undefined);
    expect(earlier.kind).toBe('ok');
  });
  it('counts a checkpoint only under a trusted key', () => {
    const checkpoint = { seq: 8, hash: 'h', ts: '', key_id: 'k', signature: 's' };
    expect(chainStateOf(ledger, undefined, checkpoint, true).signedSeq).toBe(8);
    expect(chainStateOf(ledger, undefined, checkpoint, false).signedSeq).toBe(0);
  });
});

describe('audit log', () => {
  it.each([
    ['2026-11-22', '2026-11-22T00:00:00Z'],
    ['2026-11-22 10:00', '2026-11-22T10:00:00Z'],
    [' 2026-11-22T10:00:05.123456Z ', '2026-11-22T10:00:05.123456Z'],
    ['2026-11-22T10:00:05+02:00', '2026-11-22T10:00:05+02:00'],
    ['', undefined],
    ['yesterday', null],
    ['22/11/2026', null],
    ['2026-02-31', null],
    ['2026-11-22 25:00', null],
  ])('reads %j as %j', (typed, want) => expect(readInstant(typed)).toBe(want));
  it('shows midnight as a date, and any other instant as it is', () => {
    expect(showInstant('2026-11-22T00:00:00Z')).toBe('2026-11-22');
    expect(showInstant('2026-11-22T10:00:05.123456Z')).toBe('2026-11-22T10:00:05.123456Z');
    expect(showInstant(undefined)).toBe('');
  });
  it('finds the model of a target', () => {
    expect(modelOf('model:JPCP@Production')).toBe('JPCP');
    expect(modelOf('auth:password')).toBeUndefined();
  });
  it('takes an outcome it does not know for not measured', () => {
    expect(['ok', 'denied', 'failed', 'odd', undefined].map(outcomeKind)).toEqual([
      'ok',
      'warn',
      'critical',
      'unknown',
      'unknown',
    ]);
  });
});

describe('budgets', () => {
  const budget = {
    project: 'p',
    period: 'monthly',
    costBudget: 100,
    consumedCostUsd: 10,
    costRatio: 0.1,
    gpuHoursBudget: null,
    consumedGpuHours: 0,
    gpuHoursRatio: null,
    overBudget: false,
    updated_at: '',
    updated_by: '',
  } as const;
  it('is over when anything was spent against 0, although there is no ratio', () => {
    expect(standingOf({ ...budget, costBudget: 0, costRatio: null, overBudget: true })).toBe('critical');
  });
  it('warns from 80 % of either budget', () => {
    expect(standingOf(budget)).toBe('ok');
    expect(standingOf({ ...budget, costRatio: 0.8 })).toBe('warn');
    expect(standingOf({ ...budget, gpuHoursBudget: 10, gpuHoursRatio: 0.9 })).toBe('warn');
  });
  it('judges nothing without a limit', () => {
    expect(standingOf({ ...budget, costBudget: null, costRatio: null })).toBe('unknown');
  });
  it('tells no limit from a limit of 0', () => {
    expect(budgetBody('', '0')).toEqual({ cost_budget: null, gpu_hours_budget: 0 });
    expect(budgetBody('12.5', '')).toEqual({ cost_budget: 12.5, gpu_hours_budget: null });
    expect(budgetBody('-1', '')).toBeUndefined();
    expect(budgetBody('many', '')).toBeUndefined();
  });
});

describe('queue', () => {
  it('counts on for jobs that wait, and not for those that run', () => {
    expect(waitOf({ waitSec: 60, state: 'PENDING' }, 1000, 6000)).toBe(65_000);
    expect(waitOf({ waitSec: 60, state: 'RUNNING' }, 1000, 6000)).toBe(60_000);
  });
  it('knows the short states of the scheduler', () => {
    expect(['PD', 'CF'].every(isWaiting)).toBe(true);
    expect(['R', 'CG'].map(jobKind)).toEqual(['running', 'running']);
    expect(jobKind('UNKNOWN')).toBe('unknown');
  });
});

describe('documents', () => {
  it('follows links to other pages and headings, and to http and mail', () => {
    expect(readDocLink('../README.md#a%20b', 'docs/x.md')).toEqual({ kind: 'page', path: 'README.md', hash: 'a b' });
    expect(readDocLink('drift.md', 'docs/x.md')).toEqual({ kind: 'page', path: 'docs/drift.md', hash: undefined });
    expect(readDocLink('#here', 'docs/x.md')).toEqual({ kind: 'hash', hash: 'here' });
    expect(readDocLink('https://example.org', 'x.md').kind).toBe('external');
  });
  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:x',
    'data:text/html,x',
    '//evil.example',
    '\\\\x',
    '../../x.md',
    'x.sh',
    '',
  ])('leads nowhere from %j', (href) => expect(readDocLink(href, 'docs/x.md')).toEqual({ kind: 'none' }));
  it('numbers repeated headings, and sees none in code', () => {
    const found = headingsOf('# T\n## Same\n```sh\n## not one\n```\n## Same\n### `mlp` run');
    expect(found.map((heading) => heading.anchor)).toEqual(['same', 'same-1', 'mlp-run']);
    expect(anchorOf('drift.baseline_set')).toBe('driftbaseline_set');
    const number = numberAnchors();
    expect([number('a'), number('a'), number('b')]).toEqual(['a', 'a-1', 'b']);
  });
  it('draws HTML as text and gives the headings their anchors', () => {
    const { container } = render(
      <DocMarkdown
        path="docs/x.md"
        markdown={
          '# Title\n\n## Same\n\n## Same\n\n<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n[x](javascript:alert(1)) ![p](http://evil/p.png)\n\n<a href="javascript:alert(1)">y</a>'
        }
      />,
    );
    expect(container.querySelectorAll('script, img, iframe, a, [onerror]').length).toBe(0);
    expect([...container.querySelectorAll('h2')].map((heading) => heading.id)).toEqual(['same', 'same-1']);
  });
});

describe('snapshots', () => {
  it('come back as they were frozen', () => {
    const at = new Date('2026-11-22T10:00:00Z');
    const view = frozenOf('Facility', '/facility', { jobs: 2 }, at);
    expect(readFrozen(JSON.parse(JSON.stringify(view)))).toEqual({
      title: 'Facility',
      path: '/facility',
      takenAt: at.toISOString(),
      data: { jobs: 2 },
    });
  });
  it('lead nowhere else, whatever was frozen', () => {
    expect(readFrozen({ kind: 'page', path: '//evil.example', data: {} }).path).toBeUndefined();
    expect(readFrozen({ path: 'https://evil.example' }).path).toBeUndefined();
    expect(readFrozen('text').data).toEqual({});
  });
  it('spell keys as people read them', () => {
    expect([spellKey('total_cost_usd'), spellKey('gpuHours')]).toEqual(['total cost usd', 'gpu hours']);
  });
});

describe('search', () => {
  it('follows only addresses of this UI', () => {
    expect(placeOf({ url: '/models/jpcp' })).toBe('/models/jpcp');
    expect(['//evil.example', 'https://x', 'javascript:x', '/api/auth/logout'].map((url) => placeOf({ url }))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});
