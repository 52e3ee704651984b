import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, it, vi } from 'vitest';
import { meQuery } from '../src/api/queries';
import { Toasts } from '../src/components/toast';
import { ChangesPanel } from '../src/screens/governance/changes';

const change = {
  id: '01a20000-0000-7000-8000-000000000001',
  kind: 'promotion_policy',
  target: 'JPCP',
  old: { threshold: 50 },
  new: null,
  state: 'pending',
  requested_by: 'idp-a:ana',
  requested_at: '2026-11-23T00:00:00Z',
  person_unknown: false,
  first_approver: null,
  decided_by: null,
  decided_at: null,
  reason: null,
  expires_at: null,
};

function show(items: unknown[], can: string[]): Request[] {
  const sent: Request[] = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    if (request.method === 'GET') return Response.json({ items, next_cursor: null });
    sent.push(request);
    return Response.json({ ...change, first_approver: 'idp-a:bob' });
  });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(meQuery.queryKey, { sub: 'idp-a:bob', capabilities: can } as never);
  render(
    <QueryClientProvider client={client}>
      <ChangesPanel />
      <Toasts />
    </QueryClientProvider>,
  );
  return sent;
}

afterEach(() => vi.unstubAllGlobals());

it('shows what is in force and what is requested, and sends the decision', async () => {
  const sent = show([change], ['approval.decide']);
  const panel = await screen.findByRole('region', { name: 'Rule changes' });
  expect(panel.textContent).toContain('{"threshold":50}');
  expect(panel.textContent).toContain('nothing');
  await userEvent.click(within(panel).getByRole('button', { name: 'Approve…' }));
  await userEvent.click(await screen.findByRole('button', { name: 'Approve and apply' }));
  expect(await screen.findByText(/a second person must approve it too/)).toBeDefined();
  expect(sent.map((request) => `${request.method} ${new URL(request.url).pathname}`)).toEqual([
    `POST /api/proxy/control_plane/governance/changes/${change.id}/approve`,
  ]);
});

it('shows no buttons to people who may not decide', async () => {
  show([change], []);
  const panel = await screen.findByRole('region', { name: 'Rule changes' });
  expect(within(panel).queryByRole('button')).toBeNull();
});
