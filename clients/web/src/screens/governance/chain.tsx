import { Link } from '@tanstack/react-router';
import { Fragment } from 'react';
import { checkpointsQuery } from '../../api/queries';
import type { components } from '../../api/gen/dashboard';
import { Blank } from '../../components/blank';
import { QueryPanel } from '../../components/panel';
import { NotMeasured, State, type StateKind } from '../../components/state';
import { RelativeTime } from '../../components/time';
import { formatCount, shortenHash } from '../../format/numbers';
import { formatExact, parseTime } from '../../format/time';
import { useAllowedQuery, useMe } from '../../state/auth';
import { text } from '../../text';
import { outcomeKind } from '../audit/outcome';
import type { Reading } from '../../state/query';
import { orElse, read } from '../../state/figure';

const words = text.governance.ledger;

type View = components['schemas']['GovernanceView'];
type Entry = components['schemas']['LedgerEntry'];

/** The newest entries, each with the hash that it continues, and the checkpoints between them. */
export function LedgerPanel({ query }: { query: Reading<View> }) {
  const isAdmin = useMe()?.role === 'admin';
  const checkpoints = orElse(
    read(useAllowedQuery(checkpointsQuery, 'audit.read'), (page) => page.items),
    [],
  );
  return (
    <QueryPanel
      title={words.title}
      query={query}
      sources={['audit']}
      flush
      skeleton="table"
      note={(view) => view.audit && words.count(view.audit.count, formatCount(view.audit.count))}
      actions={
        isAdmin ? (
          <Link className="link small nowrap" to="/audit">
            {words.openAudit}
          </Link>
        ) : undefined
      }
      empty={(view, of) =>
        view.audit?.entries.length === 0 ? (
          <Blank of={of} icon="list" title={words.none}>
            {words.noneHint}
          </Blank>
        ) : view.audit ? undefined : (
          <Blank of={of} icon="unknown" title={text.governance.verdict.away}>
            {text.governance.verdict.awayBody}
          </Blank>
        )
      }
    >
      {(view) => {
        const entries = view.audit?.entries ?? [];
        const oldest = entries.at(-1)?.seq ?? 0;
        const below = checkpoints.find((checkpoint) => checkpoint.seq < oldest);
        return (
          <ol className="chain">
            {entries.map((entry) => (
              <Fragment key={entry.seq}>
                {checkpoints
                  .filter((checkpoint) => checkpoint.seq === entry.seq)
                  .map((checkpoint) => (
                    <CheckpointRow key={checkpoint.seq} {...checkpoint} />
                  ))}
                <EntryRow entry={entry} />
              </Fragment>
            ))}
            {below && <CheckpointRow {...below} hidden={oldest - below.seq - 1} />}
          </ol>
        );
      }}
    </QueryPanel>
  );
}

function EntryRow({ entry }: { entry: Entry }) {
  const at = parseTime(entry.ts);
  const kind: StateKind = outcomeKind(entry.outcome);
  return (
    <li>
      <span className="node" />
      <span className="faint">{formatCount(entry.seq)}</span>
      {at ? <time dateTime={at.toISOString()}>{formatExact(at)}</time> : <NotMeasured />}
      <span className="lw">
        <span className="act">{entry.action}</span>{' '}
        <span className="muted" title={entry.target}>
          {entry.target}
        </span>
        <span className="faint">{words.by(entry.actor ?? '')}</span>
      </span>
      <span>
        <State kind={kind}>{text.audit.outcomes[entry.outcome ?? ''] ?? entry.outcome}</State>
      </span>
      <span className="hash" title={`${entry.prevHash} → ${entry.hash}`}>
        {shortenHash(entry.prevHash)} → <b>{shortenHash(entry.hash)}</b>
      </span>
    </li>
  );
}

function CheckpointRow({
  seq,
  ts,
  signature,
  hidden = 0,
}: {
  seq: number;
  ts: string;
  signature: string;
  hidden?: number;
}) {
  return (
    <li className="cp">
      <span className="node" />
      <span>
        <b className="med">{words.checkpoint(formatCount(seq))}</b>, {words.signed} <RelativeTime at={ts} />.{' '}
        {hidden > 0 && words.notShown(hidden, formatCount(hidden))}
      </span>
      <span className="small faint" title={signature}>
        {words.signature(shortenHash(signature))}
      </span>
    </li>
  );
}
