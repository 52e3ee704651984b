import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { AUDIT_PAGE, auditQuery, type AuditFilters } from '../../api/queries';
import type { components } from '../../api/gen/dashboard';
import { Blank, CopyText, ErrorBlank, Message } from '../../components/blank';
import { Button } from '../../components/button';
import { downloadText, formatCSV } from '../../components/csv';
import { Dialog } from '../../components/dialog';
import { TextField } from '../../components/field';
import { FilterBar, FilterChip, TextFilter } from '../../components/filters';
import { ButtonLink } from '../../components/link';
import { PageHead } from '../../components/page';
import { Panel } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import { Facts } from '../../components/stat';
import { State } from '../../components/state';
import { DataTable, type Column } from '../../components/table';
import { formatCount, shortenHash } from '../../format/numbers';
import { formatExact } from '../../format/time';
import { useMe } from '../../state/auth';
import { read, readLast, orElse } from '../../state/figure';
import { text } from '../../text';
import { ExportButton } from '../governance/governance';
import { outcomeKind } from './outcome';
import { modelOf, readInstant, showInstant } from './filters';
import { useInfiniteQuery } from '../../state/query';

const route = getRouteApi('/shell/audit');
const words = text.audit;

type Entry = components['schemas']['AuditEntry'];

const columns: Column<Entry>[] = [
  { key: 'seq', header: words.columns.seq, numeric: true, drop: 'phone', cell: (row) => row.seq },
  {
    key: 'outcome',
    header: words.columns.outcome,
    isHealth: true,
    cell: (row) => <Outcome outcome={row.outcome} />,
  },
  {
    key: 'action',
    header: words.columns.action,
    isName: true,
    cell: (row) => <span className="med">{row.action}</span>,
  },
  {
    key: 'target',
    header: words.columns.target,
    cell: (row) => (
      <span className="trunc cell-w" title={row.target}>
        {row.target}
      </span>
    ),
  },
  {
    key: 'actor',
    header: words.columns.actor,
    cell: (row) => (
      <span className="trunc cell-w" title={row.actor}>
        {row.actor}
      </span>
    ),
  },
  { key: 'source', header: words.columns.source, drop: 'medium', cell: (row) => row.source },
  { key: 'at', header: words.columns.at, cell: (row) => formatExact(new Date(row.at)) },
  {
    key: 'hash',
    header: words.columns.hash,
    drop: 'medium',
    className: 'hide-s',
    cell: (row) => (
      <code className="faint" title={row.hash}>
        {shortenHash(row.hash)}
      </code>
    ),
  },
];

function Outcome({ outcome }: { outcome: string }) {
  return <State kind={outcomeKind(outcome)}>{words.outcomes[outcome] ?? outcome}</State>;
}

export function AuditScreen() {
  const me = useMe();
  if (me && me.role !== 'admin')
    return (
      <>
        <PageHead title={words.title} />
        <Panel title={words.title} flush>
          <Message
            icon="lock"
            title={words.adminsOnly}
            actions={<ButtonLink to="/governance">{words.toGovernance}</ButtonLink>}
          >
            {words.adminsOnlyHint}
          </Message>
        </Panel>
      </>
    );
  return <AuditLog />;
}

const noPages: { pages: { items: Entry[] }[] } = { pages: [] };

function AuditLog() {
  const { q, model, action, source, actor, since, until } = route.useSearch();
  const filters: AuditFilters = useMemo(
    () => ({ q, model, action, source, actor, since, until }),
    [q, model, action, source, actor, since, until],
  );
  const query = useInfiniteQuery(auditQuery(filters));
  const navigate = useNavigate({ from: '/audit' });
  const [open, setOpen] = useState<Entry>();
  const set = useCallback(
    (change: AuditFilters) =>
      void navigate({ to: '/audit', search: (old) => ({ ...old, ...change }), replace: true, resetScroll: false }),
    [navigate],
  );
  const setText = useCallback((value: string) => set({ q: value.trim() || undefined }), [set]);
  const rows = useMemo(() => orElse(readLast(query), noPages).pages.flatMap((page) => page.items), [query.data]);
  const total = read(query, (data) => data.pages[0]?.total);
  const filtered = Object.values(filters).some(Boolean);
  const clear = (): void =>
    set({
      q: undefined,
      model: undefined,
      action: undefined,
      source: undefined,
      actor: undefined,
      since: undefined,
      until: undefined,
    });
  const chip = (name: 'model' | 'action' | 'source' | 'actor') => {
    const values = rows.map((row) => (name === 'model' ? modelOf(row.target) : row[name]));
    const seen = [...new Set([filters[name], ...values])].filter((v): v is string => !!v).sort();
    return (
      <FilterChip
        name={words[name]}
        options={seen.map((id) => ({ id, label: id }))}
        value={filters[name] ? [filters[name]] : []}
        // The server filters by one value: the newest choice counts.
        onChange={(ids) => set({ [name]: ids.find((id) => id !== filters[name]) })}
      />
    );
  };
  const saveCSV = (): void =>
    downloadText(
      words.csvFile,
      'text/csv',
      formatCSV(
        ['seq', 'at', 'actor', 'role', 'action', 'target', 'source', 'outcome', 'details', 'hash'],
        rows.map((r) => [
          r.seq,
          r.at,
          r.actor,
          r.role,
          r.action,
          r.target,
          r.source,
          r.outcome,
          JSON.stringify(r.details),
          r.hash,
        ]),
      ),
    );
  return (
    <>
      <PageHead
        title={words.title}
        sub={words.sub}
        actions={
          <>
            <Button icon="dl" onPress={saveCSV} isDisabled={rows.length === 0}>
              {words.exportCSV}
            </Button>
            <ExportButton since={since} until={until} />
          </>
        }
      />
      <Panel
        title={words.table}
        of={readLast(query)}
        flush
        note={total.kind === 'measured' ? words.total(formatCount(rows.length), formatCount(total.value)) : undefined}
        asOf={query.dataUpdatedAt ? new Date(query.dataUpdatedAt) : undefined}
        footer={
          query.hasNextPage ? (
            <Button isDisabled={query.isFetchingNextPage} onPress={() => void query.fetchNextPage()}>
              {query.isFetchingNextPage ? words.loadingMore : words.more(AUDIT_PAGE)}
            </Button>
          ) : rows.length > 0 ? (
            <span className="faint">{words.end}</span>
          ) : undefined
        }
      >
        <FilterBar>
          <TextFilter label={words.search} value={q ?? ''} onChange={setText} />
          {chip('model')}
          {chip('action')}
          {chip('source')}
          {chip('actor')}
          <InstantField label={words.since} value={since} onChange={(value) => set({ since: value })} />
          <InstantField label={words.until} value={until} onChange={(value) => set({ until: value })} />
        </FilterBar>
        {query.data ? (
          <DataTable
            label={words.table}
            rows={rows}
            columns={columns}
            rowKey={(row) => row.id}
            rowName={(row) => `${row.action} ${row.target}`}
            onOpen={setOpen}
            current={open?.id}
            onEnd={query.hasNextPage && !query.isFetchingNextPage ? () => void query.fetchNextPage() : undefined}
            empty={
              filtered ? (
                <Blank
                  of={total}
                  icon="filter"
                  title={text.common.noMatch}
                  actions={<Button onPress={clear}>{text.common.clearFilters}</Button>}
                >
                  {text.common.noMatchHint}
                </Blank>
              ) : (
                <Blank of={total} icon="list" title={words.none}>
                  {words.noneHint}
                </Blank>
              )
            }
          />
        ) : query.isError ? (
          <ErrorBlank error={query.error} onRetry={() => void query.refetch()} />
        ) : (
          <div className="sk-pad">
            <Skeleton shape="table" rows={10} />
          </div>
        )}
      </Panel>
      {open && <EntryDrawer entry={open} onClose={() => setOpen(undefined)} onFilter={set} />}
    </>
  );
}

/** A date or an instant of ISO 8601, in UTC; the list follows when the field is left or Enter is pressed. */
function InstantField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  const [typed, setTyped] = useState(showInstant(value));
  useEffect(() => setTyped(showInstant(value)), [value]);
  const at = readInstant(typed);
  const apply = (): void => {
    if (at !== null && at !== value) onChange(at);
  };
  return (
    <div className="instant">
      <TextField
        label={label}
        placeholder={words.isoExample}
        value={typed}
        onChange={setTyped}
        onBlur={apply}
        onKeyDown={(event) => event.key === 'Enter' && apply()}
        error={at === null ? words.notISO : undefined}
      />
    </div>
  );
}

function EntryDrawer({
  entry,
  onClose,
  onFilter,
}: {
  entry: Entry;
  onClose: () => void;
  onFilter: (change: AuditFilters) => void;
}) {
  const model = modelOf(entry.target);
  const details = JSON.stringify(entry.details, null, 2);
  return (
    <Dialog
      title={words.entry(entry.seq, entry.action)}
      isOpen
      side
      onClose={onClose}
      footer={
        <>
          <Button
            onPress={() => {
              onFilter({ actor: entry.actor });
              onClose();
            }}
          >
            {words.onlyActor}
          </Button>
          <Button
            onPress={() => {
              onFilter({ action: entry.action });
              onClose();
            }}
          >
            {words.onlyAction}
          </Button>
          <Button kind="primary" onPress={onClose}>
            {text.common.close}
          </Button>
        </>
      }
    >
      <Facts
        facts={[
          [words.columns.outcome, <Outcome outcome={entry.outcome} />],
          [words.columns.at, <code>{entry.at}</code>],
          [words.columns.actor, entry.actor],
          entry.role ? [words.role, entry.role] : undefined,
          [
            words.columns.target,
            <>
              {entry.target}{' '}
              {model && (
                <Link className="link" to="/models/$name" params={{ name: model }}>
                  {words.openModel}
                </Link>
              )}
            </>,
          ],
          entry.key ? [words.key, <code>{entry.key}</code>] : undefined,
          [words.columns.source, entry.source],
          [words.id, <CopyText value={entry.id} />],
          entry.request_id ? [words.requestID, <CopyText value={entry.request_id} />] : undefined,
          [words.columns.hash, <CopyText value={entry.hash} />],
        ]}
      />
      <h3 className="mt">{words.details}</h3>
      {details === '{}' || details === undefined ? (
        <p className="faint small">{words.noDetails}</p>
      ) : (
        <pre className="code-block" tabIndex={0} aria-label={words.details}>
          {details}
        </pre>
      )}
    </Dialog>
  );
}
