import { Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import type { components } from '../../api/gen/dashboard';
import { approvalDiffQuery, effectQuery, gateQuery, promotionQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { CopyText, ErrorBlank } from '../../components/blank';
import { Button } from '../../components/button';
import { DiffView } from '../../components/diff';
import { Show } from '../../components/figure';
import { GateList } from '../../components/gate';
import { Note } from '../../components/note';
import { Skeleton } from '../../components/skeleton';
import { Facts } from '../../components/stat';
import { Pill, type StateKind } from '../../components/state';
import { RelativeTime } from '../../components/time';
import { shortenCommit, shortenHash } from '../../format/numbers';
import { Keys } from '../../components/kbd';
import type { Act } from '../../state/acts';
import { useMay, useMe } from '../../state/auth';
import { read, type Figure, orElse } from '../../state/figure';
import { keysAreOn } from '../../state/keys';
import { text } from '../../text';
import { gateItems } from '../model/gate';
import type { RegistryRow } from '../registry/health';
import { assessRisk, type Approval } from './risk';
import { useQuery } from '../../state/query';
import { EvidenceProvider, evidenceOf } from '../../components/evidence';

const words = text.approvals;
const statusKind: Record<Approval['status'], StateKind> = {
  pending: 'warn',
  approving: 'running',
  approved: 'ok',
  rejected: 'critical',
  expired: 'unknown',
};

/** Requester, age, expiry, risk with its reasons and the exact difference, before the buttons. */
export function ApprovalDetail({
  of,
  approval,
  row,
  listLength,
}: {
  /** The list or answer that the record is from. */
  of: Figure<unknown>;
  approval: Approval;
  row: RegistryRow | undefined;
  listLength: number;
}) {
  const isPromotion = approval.kind === 'promotion';
  const gate = useQuery({ ...gateQuery(approval.model_id), enabled: isPromotion && approval.status === 'pending' });
  const promotion = useQuery({
    ...promotionQuery(approval.promotion_id ?? ''),
    enabled: approval.promotion_id !== null,
  }).data;
  const verdict = read(gate, (view) => gateItems(view.promotion), ['promotion']);
  const risk = assessRisk(approval, row, gate.data?.promotion);
  const pending = approval.status === 'pending';
  const why = { high: words.risk.whyHigh, medium: words.risk.whyMedium, low: words.risk.whyLow }[risk.level];
  const others = approval.requesters.filter((who) => who !== approval.requested_by);
  const title = (words.titles[approval.origin] ?? words.titles.ci)?.(approval.model_id) ?? approval.model_id;
  return (
    <EvidenceProvider value={of}>
      <article className="detail" aria-label={title} {...evidenceOf(of)}>
        <header>
          <Link
            className="link small only-s"
            from="/approvals"
            to="/approvals"
            search={(prev) => ({ ...prev, id: undefined })}
          >
            {words.all(listLength)}
          </Link>
          <div className="row wrap">
            <h2 className="grow">{title}</h2>
            {pending ? (
              <Pill kind={risk.kind}>{words.risk[risk.level]}</Pill>
            ) : (
              <Pill kind={statusKind[approval.status]}>
                {approval.status === 'approving' ? words.approving : words.tabs[approval.status as 'approved']}
              </Pill>
            )}
          </div>
          <p className="muted">{words.explain[approval.origin]}</p>
        </header>
        <div className="sec">
          <Facts
            two
            facts={[
              [words.facts.requestedBy, approval.requested_by],
              others.length > 0 ? [words.facts.alsoAsked, others.join(', ')] : undefined,
              approval.first_approver ? [words.facts.firstApproved, approval.first_approver] : undefined,
              [
                words.facts.commit,
                <>
                  <code title={approval.commit_sha}>{shortenCommit(approval.commit_sha)}</code>{' '}
                  {approval.commit_msg && `“${approval.commit_msg.split('\n', 1)[0]}”`}
                </>,
              ],
              [words.facts.requested, <RelativeTime at={approval.requested_at} />],
              isPromotion
                ? [
                    words.facts.version,
                    promotion
                      ? words.moves(promotion.version, promotion.from, promotion.to, promotion.previous_version)
                      : text.common.loading,
                  ]
                : [words.facts.dataset, approval.dataset_name ?? words.facts.noDataset],
              pending
                ? [
                    words.facts.expires,
                    approval.expires_at ? <RelativeTime at={approval.expires_at} /> : words.facts.never,
                  ]
                : [words.facts.decided, <RelativeTime at={approval.resolved_at} />],
              [words.facts.origin, approval.origin],
              approval.resolved_by ? [words.facts.decidedBy, approval.resolved_by] : undefined,
              approval.reject_reason ? [words.facts.reason, approval.reject_reason] : undefined,
              approval.prefect_run_id
                ? [
                    words.facts.run,
                    <Link className="link" to="/runs/$id" params={{ id: approval.prefect_run_id }}>
                      {shortenHash(approval.prefect_run_id)}
                    </Link>,
                  ]
                : undefined,
            ]}
          />
        </div>
        {pending && (
          <div className="sec">
            <h3>{why}</h3>
            <GateList tight items={risk.reasons} />
          </div>
        )}
        {isPromotion && pending && (
          <div className="sec">
            <h3>{words.gate}</h3>
            <Show figure={verdict}>{(items) => <GateList tight items={items} />}</Show>
          </div>
        )}
        {!isPromotion && <DiffSection approval={approval} />}
        <Decision approval={approval} />
      </article>
    </EvidenceProvider>
  );
}

function DiffSection({ approval }: { approval: Approval }) {
  const diff = useQuery(approvalDiffQuery(approval.id));
  const [all, setAll] = useState(false);
  const files = orElse(
    read(diff, (data) => data.files),
    [],
  );
  return (
    <div className="sec">
      <h3>
        {words.diff.title}{' '}
        {diff.data && (
          <span className="faint">
            {diff.data.from_commit
              ? words.diff.since(shortenCommit(diff.data.from_commit), shortenCommit(diff.data.to_commit))
              : shortenCommit(diff.data.to_commit)}
            , {words.diff.files(files.length)}
          </span>
        )}
      </h3>
      {diff.isPending ? (
        <Skeleton shape="text" rows={5} />
      ) : diff.isError ? (
        <>
          {(diff.error as { status?: number }).status === 404 ? (
            <p className="small muted">{words.diff.none}</p>
          ) : (
            <ErrorBlank error={diff.error} onRetry={() => void diff.refetch()} />
          )}
          {approval.changed_files.length > 0 && (
            <>
              <p className="small muted">{words.diff.listed}</p>
              <ul className="small">
                {approval.changed_files.map((file) => (
                  <li key={file}>
                    <code>{file}</code>
                  </li>
                ))}
              </ul>
            </>
          )}
        </>
      ) : (
        <div className="stack-s">
          {(all ? files : files.slice(0, 3)).map((file) => (
            <DiffView
              key={file.path}
              file={file.path}
              patch={file.patch}
              additions={file.additions}
              deletions={file.deletions}
            />
          ))}
          {!all && files.length > 3 && <Button onPress={() => setAll(true)}>{words.diff.files(files.length)}</Button>}
          {diff.data.truncated && <p className="small muted">{words.diff.truncated}</p>}
        </div>
      )}
    </div>
  );
}

function decisionAct(approval: Approval, verdict: 'approve' | 'reject', reason: string, action: string): Act {
  const isPromotion = approval.kind === 'promotion';
  const approves = verdict === 'approve';
  const confirm = words.confirmApprove;
  return {
    title: approves ? confirm.title(action, approval.model_id) : words.confirmReject.title(approval.model_id),
    method: 'POST',
    path: `/api/proxy/control_plane/approvals/${approval.id}/${verdict}`,
    // The id pins what was shown: another record in its place is refused.
    body: { ...(reason ? { reason } : {}), ...(approves && !isPromotion ? { approval_id: approval.id } : {}) },
    confirm: approves ? action : words.confirmReject.do,
    done: approves
      ? isPromotion
        ? confirm.promotionDone(approval.model_id)
        : confirm.retrainDone(approval.model_id)
      : words.confirmReject.done(approval.model_id),
    unfinished: approves
      ? { member: 'second_approval_needed', equals: true, say: confirm.firstOfTwo(approval.model_id) }
      : undefined,
    topics: ['approvals', 'promotions', 'runs', 'registry', 'model', 'governance'],
  };
}

/** Explains separation of duties to this reader: the requesters, and the first of two approvers, may not approve. */
export function explainEyes(approval: Approval, reader: string | undefined): string {
  const eyes = words.fourEyes;
  const asked = [approval.requested_by, ...approval.requesters];
  if (reader !== undefined && asked.includes(reader)) return eyes.own;
  if (approval.first_approver !== null)
    return approval.first_approver === reader ? eyes.ownFirst : eyes.first(approval.first_approver);
  return approval.person_unknown ? eyes.unknown : eyes.other(approval.requested_by);
}

type Effect = components['schemas']['ApprovalEffect'];

/** What approval does, in the control plane's own words. */
function EffectList({ effect }: { effect: Figure<Effect> }) {
  return (
    <Show figure={effect}>
      {({ sentences }) => (
        <ul className="small effect">
          {sentences.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
    </Show>
  );
}

/** The bar with the buttons: approve on the right, reject with a required reason, and who may. */
function Decision({ approval }: { approval: Approval }) {
  const me = useMe();
  const mayDecide = useMay('approval.decide');
  const [asked, setAsked] = useState<'approve' | 'reject'>();
  const pending = approval.status === 'pending';
  const isPromotion = approval.kind === 'promotion';
  const refusal = !mayDecide ? words.noRole : !pending ? words.notPending : undefined;
  const effect = read(useQuery({ ...effectQuery(approval.id), enabled: pending }), (answer) => answer);
  // A change with unknown effects cannot be approved.
  const unknown = effect.kind === 'failed' || effect.kind === 'unmeasured' ? words.effect.unknown : undefined;
  const action = effect.kind === 'measured' ? effect.value.action : words.approve;
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if ((event.key !== 'a' && event.key !== 'r') || refusal !== undefined || !keysAreOn(event)) return;
      if (event.key === 'a' && unknown !== undefined) return;
      event.preventDefault();
      setAsked(event.key === 'a' ? 'approve' : 'reject');
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [refusal, unknown]);
  if (!pending) return null;
  const eyes = words.fourEyes;
  const confirm = words.confirmApprove;
  return (
    <>
      <div className="sec">
        <h3>{words.effect.title}</h3>
        <EffectList effect={effect} />
      </div>
      <div className="sec note-sec">
        <Note icon="users" title={eyes.title}>
          {!mayDecide ? eyes.viewer : explainEyes(approval, me?.sub)}
        </Note>
      </div>
      <div className="decide">
        <span className="small muted grow hide-s">
          {refusal ?? (
            <>
              {words.recorded} <CopyText value={approval.id} shown={shortenHash(approval.id)} />
            </>
          )}
        </span>
        <Button kind="danger" disabledReason={refusal} onPress={() => setAsked('reject')}>
          {words.reject} <Keys keys="r" />
        </Button>
        <Button kind="primary" disabledReason={refusal ?? unknown} onPress={() => setAsked('approve')}>
          {words.ask(action)} <Keys keys="a" />
        </Button>
      </div>
      <ActDialog
        title={confirm.title(action, approval.model_id)}
        isOpen={asked === 'approve'}
        onClose={() => setAsked(undefined)}
        act={(reason) => decisionAct(approval, 'approve', reason, action)}
        reason={{ label: confirm.note }}
        blocked={unknown ?? (effect.kind === 'loading' ? text.common.loading : undefined)}
      >
        <EffectList effect={effect} />
        <Facts
          facts={[
            [words.facts.requestedBy, approval.requested_by],
            [words.facts.commit, <code>{shortenCommit(approval.commit_sha)}</code>],
            isPromotion ? undefined : [words.facts.dataset, approval.dataset_name ?? words.facts.noDataset],
          ]}
        />
      </ActDialog>
      <ActDialog
        title={words.confirmReject.title(approval.model_id)}
        isOpen={asked === 'reject'}
        onClose={() => setAsked(undefined)}
        act={(reason) => decisionAct(approval, 'reject', reason, action)}
        danger
        reason={{ label: words.confirmReject.reason, required: true }}
      >
        <p className="muted">{words.confirmReject.hint}</p>
      </ActDialog>
    </>
  );
}
