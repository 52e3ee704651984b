import { act as settle, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Toasts } from '../src/components/toast';
import { explainEyes } from '../src/screens/approvals/detail';
import type { Approval } from '../src/screens/approvals/risk';
import { performAct } from '../src/state/acts';
import { text } from '../src/text';

const eyes = text.approvals.fourEyes;
const approval = (change: Partial<Approval>): Approval =>
  ({
    requested_by: 'forge:push',
    requesters: ['forge:push'],
    person_unknown: false,
    first_approver: null,
    ...change,
  }) as Approval;

describe('four eyes', () => {
  it.each<[string, Partial<Approval>, string]>([
    ['another person’s change', {}, eyes.other('forge:push')],
    ['one that the reader requested', { requested_by: 'ana' }, eyes.own],
    ['one whose commit the reader pushed', { requesters: ['forge:push', 'ana'] }, eyes.own],
    ['one that another has approved', { person_unknown: true, first_approver: 'bob' }, eyes.first('bob')],
    ['one that the reader has approved', { person_unknown: true, first_approver: 'ana' }, eyes.ownFirst],
    ['one of an unknown person', { person_unknown: true }, eyes.unknown],
  ])('are explained for %s', (_, change, want) => expect(explainEyes(approval(change), 'ana')).toBe(want));

  it('name the requester while the reader is not known yet', () =>
    expect(explainEyes(approval({ requested_by: 'ana' }), undefined)).toBe(eyes.other('ana')));
});

afterEach(() => vi.unstubAllGlobals());

describe('an approval', () => {
  it.each([
    [{ second_approval_needed: true }, 'one of two'],
    [{ second_approval_needed: false }, 'started'],
  ])('that is answered with %j is called %s', async (answer, want) => {
    vi.stubGlobal('fetch', async () => new Response(JSON.stringify(answer), { status: 200 }));
    render(<Toasts />);
    await settle(() =>
      performAct({
        title: 'Approve',
        method: 'POST',
        path: '/api/proxy/control_plane/approvals/1/approve',
        confirm: 'Approve',
        done: 'started',
        unfinished: { member: 'second_approval_needed', equals: true, say: 'one of two' },
        topics: [],
      }),
    );
    expect(screen.getByRole('status').lastElementChild?.textContent).toContain(want);
  });
});
