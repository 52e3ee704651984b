import { useState } from 'react';
import { ActDialog } from '../../components/act-dialog';
import { CopyText, ErrorBlank } from '../../components/blank';
import { Button } from '../../components/button';
import { GateList } from '../../components/gate';
import { Note } from '../../components/note';
import { Panel } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import { Facts } from '../../components/stat';
import { NotMeasured } from '../../components/state';
import { RelativeTime } from '../../components/time';
import { shortenHash } from '../../format/numbers';
import type { Act } from '../../state/acts';
import { useMay, useMe } from '../../state/auth';
import { text } from '../../text';
import { gateItems, type VersionGate } from './judge';
import type { Wizard } from './promote';
import type { Reading } from '../../state/query';
import { readLast } from '../../state/figure';

const words = text.promote.approve;
const versionWord = text.promote.version;

export type Verdict = 'promote' | 'open' | 'reject';

/** Builds the act: a promotion that waits is decided by its id, otherwise one is opened. */
export function promotionAct(wizard: Wizard, verdict: Verdict, reason: string): Act {
  const { model, candidate, from, to, promotion } = wizard;
  const version = versionWord(candidate.version);
  const waiting = promotion?.state === 'pending' ? promotion : undefined;
  const topics = ['promotions', 'approvals', 'model', 'registry', 'overview', 'governance'] as const;
  const said = reason ? { reason } : {};
  const proxied = '/api/proxy/control_plane/promotions';
  if (verdict === 'reject') {
    return {
      title: words.rejectAct(model, version),
      method: 'POST',
      path: `${proxied}/${waiting?.id ?? ''}/reject`,
      body: said,
      confirm: words.rejectDo,
      done: words.rejected,
      topics,
    };
  }
  const opens = { model, version: String(candidate.version), from, to, approve: verdict === 'promote', ...said };
  const decides = verdict === 'promote' && waiting !== undefined;
  return {
    title: verdict === 'promote' ? words.act(model, version, to) : words.askAct(model, version),
    method: 'POST',
    path: decides ? `${proxied}/${waiting.id}/approve` : proxied,
    body: decides ? said : opens,
    confirm: verdict === 'promote' ? words.do : words.askDo,
    done: verdict === 'promote' ? words.done(version) : words.asked,
    topics,
  };
}

/** What moves, what follows, who may decide: before the buttons. */
export function ApproveStep({ wizard, gate }: { wizard: Wizard; gate: Reading<VersionGate> }) {
  const { model, candidate, current, to, promotion } = wizard;
  const me = useMe();
  const mayPromote = useMay('model.promote');
  const [asked, setAsked] = useState<Verdict>();
  const waiting = promotion?.state === 'pending' ? promotion : undefined;
  const version = versionWord(candidate.version);
  const own = waiting !== undefined && me !== undefined && waiting.requested_by === me.sub;
  const digest = candidate.tags?.artifact_digest;
  if (!gate.data) {
    return (
      <Panel title={words.title} flush>
        {gate.isError ? (
          <ErrorBlank error={gate.error} onRetry={() => void gate.refetch()} />
        ) : (
          <div className="sk-pad">
            <Skeleton shape="list" />
          </div>
        )}
      </Panel>
    );
  }
  const failing = gateItems(gate.data).filter((item) => item.kind === 'critical');
  const held = failing.length > 0;
  const refusal = !mayPromote ? words.adminsOnly : held ? words.held : undefined;
  return (
    <Panel title={words.title} note={version} of={readLast(gate)}>
      <div className="stack-s">
        <p className="strong">
          {current ? words.moves(to, versionWord(current.version), version) : words.first(to, version)}
        </p>
        <Facts
          facts={[
            [words.what, words.effect],
            current ? [words.undo, words.undoHow] : undefined,
            waiting ? [words.requested, waiting.requested_by] : undefined,
            waiting ? [words.age, <RelativeTime at={waiting.requested_at} />] : undefined,
            waiting?.expires_at ? [words.expires, <RelativeTime at={waiting.expires_at} />] : undefined,
            [words.digest, digest ? <CopyText value={digest} shown={shortenHash(digest)} /> : <NotMeasured />],
            [words.mayDecide, words.anyAdmin],
          ]}
        />
        {held ? (
          <>
            <Note kind="critical" title={words.held}>
              {text.promote.gate.heldHint}
            </Note>
            <GateList tight items={failing} />
          </>
        ) : (
          <Note icon="users" title={waiting ? words.waiting : undefined}>
            {own ? words.own : words.trained}
          </Note>
        )}
        <div className="wizard-acts">
          {refusal && <span className="small muted grow">{refusal}</span>}
          {waiting ? (
            <Button disabledReason={mayPromote ? undefined : words.adminsOnly} onPress={() => setAsked('reject')}>
              {words.reject}
            </Button>
          ) : (
            <Button disabledReason={refusal} onPress={() => setAsked('open')}>
              {words.ask}
            </Button>
          )}
          <Button kind="primary" disabledReason={refusal} onPress={() => setAsked('promote')}>
            {words.do}
          </Button>
        </div>
      </div>
      <ActDialog
        title={
          asked === 'reject'
            ? words.rejectTitle(model, version)
            : asked === 'open'
              ? words.askTitle(model, version)
              : words.confirmTitle(model, version, to)
        }
        isOpen={asked !== undefined}
        onClose={() => setAsked(undefined)}
        act={(reason) => promotionAct(wizard, asked ?? 'open', reason)}
        danger={asked === 'reject'}
        reason={
          asked === 'reject'
            ? { label: words.rejectReason, required: true }
            : asked === 'promote'
              ? { label: words.reason }
              : undefined
        }
      >
        <p className="muted">
          {asked === 'open' ? words.askHint : asked === 'reject' ? words.rejected : words.confirmHint}
        </p>
      </ActDialog>
    </Panel>
  );
}
