import { evidenceOf } from '../../components/evidence';
import type { ReactNode } from 'react';
import { checkpointsQuery, ledgerKeysQuery, verifyLedgerQuery } from '../../api/queries';
import type { components as ControlPlane } from '../../api/gen/controlplane';
import type { components } from '../../api/gen/dashboard';
import { ProblemNote } from '../../components/act-dialog';
import { Icon, type IconName } from '../../components/icon';
import { RelativeTime } from '../../components/time';
import { formatCount, shortenHash } from '../../format/numbers';
import { useAllowedQuery, useMe } from '../../state/auth';
import { text } from '../../text';
import { useQuery } from '../../state/query';
import { orElse, type Figure } from '../../state/figure';

const words = text.governance.verdict;

export type Ledger = NonNullable<components['schemas']['GovernanceView']['audit']>;
type Verdict = ControlPlane['schemas']['AuditVerdict'];
type Checkpoint = ControlPlane['schemas']['AuditCheckpoint'];

export interface ChainState {
  kind: 'ok' | 'critical' | 'unknown';
  checked?: number;
  at?: string;
  badSeq?: number;
  reason?: string;
  /** The last entry under a trusted signature; undefined while that is not known. */
  signedSeq?: number;
}

/** Joins the ledger's own hourly verdict with one requested here; the newer one counts. */
export function chainStateOf(
  ledger: Ledger | undefined,
  verdict: Verdict | undefined,
  checkpoint: Checkpoint | undefined,
  isTrusted: boolean | undefined,
): ChainState {
  const seen = Date.parse(ledger?.verifiedAt ?? '') || 0;
  if (verdict && Date.parse(verdict.verified_at) >= seen)
    return {
      kind: verdict.verified ? 'ok' : 'critical',
      checked: verdict.checked,
      at: verdict.verified_at,
      badSeq: verdict.first_bad_seq,
      reason: verdict.reason,
      signedSeq: verdict.signed_seq,
    };
  const signedSeq = isTrusted === undefined ? undefined : checkpoint && isTrusted ? checkpoint.seq : 0;
  if (!ledger || ledger.verified === null) return { kind: 'unknown', signedSeq };
  return {
    kind: ledger.verified ? 'ok' : 'critical',
    checked: ledger.checked ?? undefined,
    at: ledger.verifiedAt ?? undefined,
    signedSeq,
  };
}

/** Whether the chain is intact, what that proves and what it does not. */
export function VerdictBanner({ ledger: figure }: { ledger: Figure<Ledger> }) {
  const ledger = orElse(figure, undefined);
  const tenant = useMe()?.tenant ?? '';
  const verdict = useQuery(verifyLedgerQuery);
  const checkpoints = useAllowedQuery(checkpointsQuery, 'audit.read').data;
  const keys = useAllowedQuery(ledgerKeysQuery, 'audit.read').data;
  const checkpoint = checkpoints?.items[0];
  const trusted =
    checkpoints === undefined || keys === undefined
      ? undefined
      : keys.items.some((key) => key.key_id === checkpoint?.key_id && key.vouched);
  // A verdict of before is one of before: it goes once the ledger gives no answer.
  const verified = figure.kind === 'measured' ? verdict.data : undefined;
  const state = chainStateOf(ledger, verified, checkpoint, trusted);
  const away = !ledger;
  const count = ledger?.count ?? state.checked;
  const unsigned = state.signedSeq && count !== undefined ? Math.max(0, count - state.signedSeq) : 0;
  const title = away
    ? words.away
    : state.kind === 'ok'
      ? words.intact
      : state.kind === 'critical'
        ? words.broken
        : words.unknown;
  const body = away
    ? words.awayBody
    : state.kind === 'ok'
      ? words.intactBody(formatCount(state.checked ?? count ?? NaN), tenant)
      : state.kind === 'critical'
        ? state.badSeq
          ? words.brokenBody(formatCount(state.badSeq), words.reasons[state.reason ?? ''] ?? state.reason ?? '')
          : words.brokenBodyShort
        : words.unknownBody;
  return (
    <section className={`verify ${state.kind}`} aria-label={words.label} aria-live="polite" {...evidenceOf(figure)}>
      <div className="seal">
        <Icon name={state.kind === 'ok' ? 'shield' : state.kind} className="i-l" />
      </div>
      <div>
        <h2>{title}</h2>
        <p className="muted small mt-s">
          {body}{' '}
          {checkpoint ? (
            <>
              {words.checkpoint(formatCount(checkpoint.seq))} <code>{shortenHash(checkpoint.key_id, 6)}</code>.
            </>
          ) : (
            checkpoints && words.noCheckpoint
          )}
        </p>
        <p className="small faint mt-s">
          {state.at && (
            <>
              {words.verified} <RelativeTime at={state.at} />.{' '}
            </>
          )}
        </p>
        {verdict.isError && <ProblemNote error={verdict.error} />}
      </div>
      <div>
        <h3>{words.proves}</h3>
        <ul>
          {state.kind !== 'ok' && <Line icon="minus">{words.provesNothing}</Line>}
          {state.kind === 'ok' && <Line icon="ok">{state.signedSeq ? words.unaltered : words.consistent}</Line>}
          {state.kind === 'ok' && state.signedSeq ? (
            <Line icon="ok">{words.existed(formatCount(state.signedSeq))}</Line>
          ) : null}
        </ul>
      </div>
      <div>
        <h3>{words.notProves}</h3>
        <ul>
          <Line icon="minus">{words.notTrue}</Line>
          <Line icon="minus">{words.notAll}</Line>
          {unsigned > 0 && <Line icon="minus">{words.notSigned(unsigned, formatCount(unsigned))}</Line>}
          {state.signedSeq === 0 && <Line icon="minus">{words.notTrusted}</Line>}
        </ul>
      </div>
    </section>
  );
}

function Line({ icon, children }: { icon: IconName; children: ReactNode }) {
  return (
    <li>
      <Icon name={icon} small className={icon === 'ok' ? 'st-ok' : ''} />
      {children}
    </li>
  );
}
