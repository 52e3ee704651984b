import { useState } from 'react';
import { guardedChangesQuery } from '../../api/queries';
import type { components } from '../../api/gen/controlplane';
import { ActDialog } from '../../components/act-dialog';
import { Button } from '../../components/button';
import { QueryPanel } from '../../components/panel';
import { Facts } from '../../components/stat';
import { RelativeTime } from '../../components/time';
import type { Act } from '../../state/acts';
import { useMay } from '../../state/auth';
import { text } from '../../text';
import { useQuery } from '../../state/query';

type Change = components['schemas']['GuardedChange'];

const words = text.governance.changes;

/** Changes of the rules that guard promotions, which wait for a second person. Nothing is shown while none is known to wait. */
export function ChangesPanel() {
  const query = useQuery(guardedChangesQuery);
  const mayDecide = useMay('approval.decide');
  const [asked, setAsked] = useState<{ change: Change; approves: boolean }>();
  if (!query.isError && !query.data?.items.length && !asked) return null;
  return (
    <>
      <QueryPanel title={words.title} query={query} flush note={(list) => words.note(list.items.length)}>
        {({ items }) => (
          <ul className="ctl">
            {items.map((change) => (
              <li key={change.id}>
                <div className="row wrap">
                  <b className="med grow">{words.what(change.kind, change.target)}</b>
                  {mayDecide && (
                    <>
                      <Button small kind="danger" onPress={() => setAsked({ change, approves: false })}>
                        {text.approvals.reject}
                      </Button>
                      <Button small onPress={() => setAsked({ change, approves: true })}>
                        {text.approvals.ask(text.approvals.approve)}
                      </Button>
                    </>
                  )}
                </div>
                <ChangeFacts change={change} />
              </li>
            ))}
          </ul>
        )}
      </QueryPanel>
      {asked && (
        <ActDialog
          title={(asked.approves ? words.approve : words.reject)(words.what(asked.change.kind, asked.change.target))}
          isOpen
          onClose={() => setAsked(undefined)}
          act={(reason) => decideChange(asked.change, asked.approves, reason)}
          danger={!asked.approves}
          reason={
            asked.approves
              ? { label: text.approvals.confirmApprove.note }
              : { label: text.approvals.confirmReject.reason, required: true }
          }
        >
          <p className="muted">
            {!asked.approves ? words.rejectHint : isFirst(asked.change) ? words.firstHint : words.approveHint}
          </p>
          <ChangeFacts change={asked.change} />
        </ActDialog>
      )}
    </>
  );
}

function ChangeFacts({ change }: { change: Change }) {
  const facts = text.approvals.facts;
  return (
    <Facts
      facts={[
        [words.from, <Value value={change.old} />],
        [words.to, <Value value={change.new} />],
        [facts.requestedBy, change.requested_by],
        [facts.requested, <RelativeTime at={change.requested_at} />],
        change.first_approver ? [facts.firstApproved, change.first_approver] : undefined,
        change.expires_at ? [facts.expires, <RelativeTime at={change.expires_at} />] : undefined,
      ]}
    />
  );
}

function Value({ value }: { value: unknown }) {
  if (value === null || value === undefined) return <span className="faint">{words.nothing}</span>;
  return <code className="small wrap-any">{typeof value === 'string' ? value : JSON.stringify(value)}</code>;
}

/** Two people must approve a change whose requester is unknown. */
const isFirst = (change: Change): boolean => change.person_unknown && change.first_approver === null;

export function decideChange(change: Change, approves: boolean, reason: string): Act {
  const what = words.what(change.kind, change.target);
  return {
    title: (approves ? words.approve : words.reject)(what),
    method: 'POST',
    path: `/api/proxy/control_plane/governance/changes/${change.id}/${approves ? 'approve' : 'reject'}`,
    body: reason ? { reason } : {},
    confirm: approves ? (isFirst(change) ? words.approveFirst : words.approveDo) : text.approvals.confirmReject.do,
    done: approves ? words.approved(what) : words.rejected(what),
    unfinished: approves ? { member: 'state', equals: 'pending', say: words.firstOfTwo(what) } : undefined,
    topics: ['governance', 'registry', 'model', 'promotions'],
  };
}
