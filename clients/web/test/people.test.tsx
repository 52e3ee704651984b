// What reaches a person: the inbox by keyboard, the channels outside, and activity as sentences about people.

import { QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router';
import { act, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
// @ts-expect-error: plain JavaScript, for development and tests only
import { answer } from '../dev/fixtures.mjs';
import type { PlatformEvent } from '../src/live/stream';
import { linesOf } from '../src/screens/overview/activity-lines';

vi.mock('../src/components/plot', () => ({ default: () => null }));

let writes: string[];

beforeEach(() => {
  writes = [];
  vi.resetModules();
  vi.stubGlobal('scrollTo', () => undefined);
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
      unobserve() {}
    },
  );
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener() {}, removeEventListener() {} }));
  localStorage.setItem(
    'dashboard_auth',
    JSON.stringify({ token: 't', role: 'admin', expires_at: new Date(Date.now() + 3.6e6) }),
  );
  vi.stubGlobal('fetch', async (request: Request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/api/v1/stream') return new Promise<Response>(() => undefined);
    if (request.method !== 'GET') writes.push(`${request.method} ${pathname} ${await request.text()}`);
    const body = (answer as (...args: unknown[]) => unknown)(
      request.method,
      pathname,
      searchParams,
      undefined,
      'admin',
    );
    return new Response(JSON.stringify(body ?? { status: 404, code: 'not_found', title: 'Not found' }), {
      status: body === undefined ? 404 : 200,
      headers: { 'content-type': body === undefined ? 'application/problem+json' : 'application/json' },
    });
  });
});
afterEach(() => vi.unstubAllGlobals());

async function open(path: string) {
  const { router } = await import('../src/router');
  const { queryClient } = await import('../src/state/live');
  router.update({ ...router.options, history: createMemoryHistory({ initialEntries: [path] }) } as never);
  await act(async () => {
    render(
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>,
    );
  });
  await screen.findByRole('heading', { level: 1 }, { timeout: 8000 });
  return router;
}

describe('the inbox', () => {
  it('opens, moves, marks and follows by keyboard alone', async () => {
    const router = await open('/more');
    await screen.findByRole('button', { name: 'Inbox, 2 unread' });
    const user = userEvent.setup();
    await user.keyboard('i');
    const rows = await screen.findAllByRole('row');
    expect(rows.map((row) => row.getAttribute('aria-label') ?? row.textContent)).toHaveLength(3);
    await waitFor(() => expect(document.activeElement).toBe(rows[0]));
    await user.keyboard('{ArrowDown}{Enter}');
    await waitFor(() => expect(router.state.location.href).toBe('/models/MACK?tab=discussion'));
    expect(writes).toEqual(['POST /api/v1/inbox/018f3a00-0000-7000-8000-000000000710/read ']);
    expect(screen.queryByRole('grid', { name: 'Inbox' })).toBeNull();
  }, 30_000);
});

describe('the channels', () => {
  it('show what failed and send a test', async () => {
    await open('/notifications');
    await screen.findByText('the receiver answered 503 Service Unavailable', {}, { timeout: 8000 });
    expect(screen.getByText('2 waiting')).toBeTruthy();
    const user = userEvent.setup();
    await user.click(screen.getByRole('button', { name: 'Acts on On-call chat' }));
    await user.click(await screen.findByRole('menuitem', { name: 'Send a test' }));
    await waitFor(() =>
      expect(writes).toEqual(['POST /api/v1/notifications/channels/018f3a00-0000-7000-8000-000000000801/test ']),
    );
  }, 30_000);
});

const flow = '0199d2a4-0000-7000-8000-000000000001';
const event = (n: number, name: string, actor: string, data: Record<string, unknown>): PlatformEvent => ({
  id: String(n),
  name,
  actor,
  data,
  at: new Date(Date.UTC(2026, 10, 30, 12, n)),
});

describe('activity', () => {
  it('is about people, one line a run, without ids', () => {
    const job = { model: 'JPCP', flow_run_id: flow };
    const lines = linesOf(
      [
        event(9, 'event.notice', 'system:inbox', { kind: 'approval', object: flow }),
        event(8, 'job.completed', 'system:follower', { ...job, version: '12' }),
        event(7, 'job.started', 'system:follower', job),
        event(6, 'job.dispatched', 'idp-a:ann', job),
        event(5, 'approval.approved', 'idp-a:bob', {
          id: flow,
          kind: 'retrain',
          model: 'JPCP',
          requested_by: 'idp-a:ann',
        }),
        event(4, 'alert.firing', 'system:alerts', {
          id: 'deploy:JPCP',
          title: `JPCP moved, promotion ${flow} requests it`,
        }),
      ],
      [
        {
          seq: 3,
          hash: '',
          prevHash: '',
          ts: '2026-11-30T12:03:00Z',
          actor: 'local:admin',
          action: 'comment.add',
          target: `comment:${flow}`,
          outcome: 'ok',
        },
        {
          seq: 2,
          hash: '',
          prevHash: '',
          ts: '2026-11-30T12:02:00Z',
          actor: 'idp-a:eve',
          action: 'approval.approve',
          target: 'model:JPCP',
          outcome: 'denied',
        },
        {
          seq: 1,
          hash: '',
          prevHash: '',
          ts: '2026-11-30T12:01:00Z',
          actor: 'idp-a:ann',
          action: 'auth.login',
          target: 'session',
          outcome: 'ok',
        },
      ],
    );
    const { container } = render(
      <ol>
        {lines.map((line) => (
          <li key={line.key}>{line.what}</li>
        ))}
      </ol>,
    );
    expect([...container.querySelectorAll('li')].map((line) => line.textContent)).toEqual([
      'ann requested training of JPCP: version 12 is trained',
      'bob approved the training of JPCP',
      'JPCP alert: JPCP moved, promotion 0199d2a4… requests it',
      'admin wrote a comment',
      'eve was refused: approved, JPCP',
    ]);
  });
});
