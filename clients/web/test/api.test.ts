import { afterEach, describe, expect, it, vi } from 'vitest';
import { onSessionOver, platformFetch } from '../src/api/client';
import { Problem } from '../src/api/problem';
import { storeSession } from '../src/api/session';
import {
  getStepUp,
  missingSecrets,
  performAct,
  setStepUp,
  storePendingAct,
  takePendingAct,
  type Act,
} from '../src/state/acts';
import { safeReturnTo } from '../src/state/auth';
import { explainSSOError } from '../src/screens/login/form';
import { text } from '../src/text';

const url = 'http://localhost:3000/api/v1/overview';
const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString();

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Request[] {
  const seen: Request[] = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    seen.push(request);
    return new Response(JSON.stringify(body), {
      status,
      headers: { 'content-type': 'application/problem+json', ...headers },
    });
  });
  return seen;
}

afterEach(() => {
  vi.unstubAllGlobals();
  setStepUp(undefined);
});

describe('platformFetch', () => {
  it('sends the bearer of a password session and nothing else', async () => {
    storeSession({ token: 't', role: 'admin', expires_at: inAnHour() });
    const seen = answer(200, {});
    await platformFetch(url);
    const request = seen[0];
    expect(request?.headers.get('authorization')).toBe('Bearer t');
    expect(request?.headers.get('x-platform-csrf')).toBeNull();
  });

  it('proves a cookie session with the CSRF header', async () => {
    const seen = answer(200, {});
    await platformFetch(url, { method: 'POST' });
    expect(seen[0]?.headers.get('x-platform-csrf')).toBe('1');
    expect(seen[0]?.headers.get('authorization')).toBeNull();
  });

  it('does not send an expired token', async () => {
    storeSession({ token: 't', role: 'admin', expires_at: '2020-01-01T00:00:00Z' });
    const seen = answer(200, {});
    await platformFetch(url);
    expect(seen[0]?.headers.get('authorization')).toBeNull();
  });

  it('throws the problem with its code, fields, request id and wait', async () => {
    answer(
      429,
      {
        status: 429,
        code: 'rate_limited',
        title: 'Rate limited',
        detail: 'Too many.',
        errors: [{ loc: ['body', 'x'], msg: 'no' }],
      },
      { 'retry-after': '7', 'x-request-id': 'r1' },
    );
    const problem = await platformFetch(url).catch((error: unknown) => error);
    expect(problem).toBeInstanceOf(Problem);
    expect(problem).toMatchObject({
      status: 429,
      code: 'rate_limited',
      message: 'Too many.',
      requestId: 'r1',
      retryAfter: 7,
      fields: [{ loc: ['body', 'x'], msg: 'no' }],
    });
  });

  it('forgets the token and tells the shell when the session is over, but not for a step-up or a refusal', async () => {
    const over = vi.fn();
    const off = onSessionOver(over);
    storeSession({ token: 't', role: 'admin', expires_at: inAnHour() });
    answer(403, { code: 'role_required' });
    await platformFetch(url).catch(() => undefined);
    answer(401, { code: 'step_up_required' });
    await platformFetch(url).catch(() => undefined);
    expect(over).not.toHaveBeenCalled();
    expect(localStorage.getItem('dashboard_auth')).not.toBeNull();
    answer(401, { code: 'invalid_token' });
    await platformFetch(url).catch(() => undefined);
    expect(over).toHaveBeenCalledOnce();
    expect(localStorage.getItem('dashboard_auth')).toBeNull();
    off();
  });

  it('tells an unreachable dashboard from an answer', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('network')));
    await expect(platformFetch(url)).rejects.toMatchObject({ status: 0, code: 'unreachable' });
  });
});

describe('acts', () => {
  const act: Act = {
    title: 'Move Production of JPCP from v12 to v13',
    method: 'POST',
    path: '/api/proxy/control_plane/promotions',
    body: { model: 'JPCP' },
    confirm: 'Promote',
    done: 'Promoted',
    topics: ['registry'],
  };

  it('opens the step-up dialog with the act, and nothing has happened', async () => {
    answer(401, {
      code: 'step_up_required',
      acr_values: ['mfa'],
      max_age: 900,
      login_url: '/api/auth/sso/idp-a/login?step_up=true',
    });
    await expect(performAct(act)).resolves.toEqual({ done: false, reason: 'step_up' });
    expect(getStepUp()).toMatchObject({
      act,
      acrValues: ['mfa'],
      maxAge: 900,
      loginUrl: '/api/auth/sso/idp-a/login?step_up=true',
    });
  });

  it('survives the way to the provider once, for ten minutes', () => {
    vi.useFakeTimers();
    storePendingAct({ act, acrValues: [], maxAge: 900 });
    expect(takePendingAct()?.act).toEqual(act);
    expect(takePendingAct()).toBeUndefined();
    storePendingAct({ act, acrValues: [], maxAge: 900 });
    vi.advanceTimersByTime(10 * 60_000);
    expect(takePendingAct()).toBeUndefined();
    vi.useRealTimers();
  });

  it('leaves its secrets behind on the way to the provider, and names them', () => {
    const body = { forge_token: 'sesame-open', tracker_url: 'http://tracker', dashboards_api_key: null };
    storePendingAct({ act: { ...act, body, secrets: ['forge_token'] }, acrValues: [], maxAge: 900 });
    expect(JSON.stringify({ ...sessionStorage })).not.toContain('sesame');
    const back = takePendingAct()?.act;
    expect(back?.body).toEqual({ tracker_url: 'http://tracker', dashboards_api_key: null });
    expect(missingSecrets(back ?? act)).toEqual(['forge_token']);
    expect(missingSecrets({ ...act, body, secrets: ['forge_token'] })).toEqual([]);
  });

  it('throws a refusal for the dialog to show', async () => {
    answer(403, { code: 'own_request', detail: 'You requested this.' });
    await expect(performAct(act)).rejects.toMatchObject({ code: 'own_request' });
  });
});

describe('safeReturnTo', () => {
  it.each(['//evil.example', '/\\evil', 'https://evil.example', '/api/auth/me', 'models', '/a\u0000b', undefined])(
    'sends %j to the overview',
    (path) => expect(safeReturnTo(path)).toBe('/'),
  );
  it('keeps a path of this origin', () =>
    expect(safeReturnTo('/models/JPCP?tab=drift')).toBe('/models/JPCP?tab=drift'));
});

describe('explainSSOError', () => {
  it('has words for every reason the server gives', () => {
    for (const code of [
      'session_expired',
      'state_mismatch',
      'unknown_provider',
      'idp_unreachable',
      'login_rejected',
      'step_up_not_met',
      'account_disabled',
      'no_role',
      'trust_file_invalid',
    ] as const)
      expect(explainSSOError(code)).toBe(text.login.sso[code]);
    expect(explainSSOError('idp_access_denied')).toContain('access denied');
    expect(explainSSOError('something_new')).toContain('something_new');
  });
});
