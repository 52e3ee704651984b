import { useWatched } from '../../state/watch';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { components } from '../../api/gen/dashboard';
import { alertsQuery } from '../../api/queries';
import { Blank, CopyText, ErrorBlank, Message } from '../../components/blank';
import { Button } from '../../components/button';
import { FilterBar, FilterChip, TextFilter } from '../../components/filters';
import { KeyHints } from '../../components/kbd';
import { ButtonLink } from '../../components/link';
import { Note } from '../../components/note';
import { PageHead } from '../../components/page';
import { Segments } from '../../components/seg';
import { Skeleton } from '../../components/skeleton';
import { Facts } from '../../components/stat';
import { Pill, State } from '../../components/state';
import { Age, RelativeTime } from '../../components/time';
import { formatDuration, parseTime } from '../../format/time';
import { useListKeys } from '../../state/list-keys';
import { useMay } from '../../state/auth';
import { read, readLast, mapFigure, orElse } from '../../state/figure';
import { text } from '../../text';
import { Discussion } from '../model/discussion';
import { acknowledge, kindOfAlert, labelLine, sortAlerts, type Alert } from './alert-row';
import { useQuery, type Reading } from '../../state/query';
import { useEvidence, EvidenceProvider, evidenceOf } from '../../components/evidence';

const route = getRouteApi('/shell/alerts');
const words = text.alerts;
type Inbox = components['schemas']['AlertInbox'];

/** Names what raised an alert; a source that is new here shows as the service calls it. */
function sourceName(source: string): string {
  return (words.sources as Record<string, string>)[source] ?? source;
}

const alertsOf = (query: Reading<{ inbox: Inbox }>): Inbox['alerts'] =>
  orElse(
    mapFigure(readLast(query, ['alerts']), ({ inbox }) => inbox.alerts),
    [],
  );

/** The alert inbox: worst first, with what to do about each. */
export function AlertsScreen() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const open = useQuery(alertsQuery());
  const resolved = useQuery(alertsQuery('resolved'));
  const { state = 'open', severity = [], source = [], id, q = '' } = search;
  const query = state === 'open' ? open : resolved;
  const set = (change: Partial<typeof search>): void =>
    void navigate({ search: (prev) => ({ ...prev, ...change }), replace: true, resetScroll: false });
  const needle = q.trim().toLowerCase();
  const shown = sortAlerts(alertsOf(query)).filter(
    (alert) =>
      (severity.length === 0 || severity.includes(alert.severity)) &&
      (source.length === 0 || source.includes(alert.source)) &&
      (needle === '' || `${alert.title} ${labelLine(alert)}`.toLowerCase().includes(needle)),
  );
  const everywhere = [...alertsOf(open), ...alertsOf(resolved)];
  const current = id === undefined ? shown[0] : everywhere.find((alert) => alert.id === id);
  useListKeys(
    shown.map((alert) => alert.id),
    current?.id,
    (next) => set({ id: next }),
  );
  const count = (list: typeof open, of: (inbox: Inbox) => number) => read(list, (data) => of(data.inbox), ['alerts']);
  const watched = useWatched();
  const quiet = read(open, (data) => data.inbox.alerts, ['alerts']);
  const isQuiet = orElse(
    mapFigure(quiet, (list) => list.every((alert) => alert.state === 'resolved')),
    false,
  );
  const known = read(query, (data) => data.inbox.alerts, ['alerts']);
  const filtered = needle !== '' || severity.length > 0 || source.length > 0;
  return (
    <>
      <PageHead
        title={words.title}
        says={[
          isQuiet
            ? mapFigure(watched(quiet), () => words.quiet)
            : read(
                open,
                ({ inbox }) => {
                  const firing = inbox.alerts.filter((alert) => alert.state === 'firing').length;
                  const acked = inbox.alerts.filter((alert) => alert.state === 'acknowledged').length;
                  return firing + acked ? words.sub(firing, acked) : undefined;
                },
                ['alerts'],
              ),
        ]}
        actions={
          <Segments
            label={words.tabs.label}
            value={state}
            onChange={(value) => set({ state: value === 'open' ? undefined : value, id: undefined })}
            segments={[
              { value: 'open', label: words.tabs.open, count: count(open, (inbox) => inbox.count) },
              { value: 'resolved', label: words.tabs.resolved, count: count(resolved, (inbox) => inbox.count) },
            ]}
          />
        }
      />
      {query.data?.inbox.stale && (
        <div className="banner">
          <Note kind="warn" title={words.stale}>
            {words.staleHint}
          </Note>
        </div>
      )}
      <div className={id === undefined ? 'split' : 'split open'}>
        <div className="l">
          <FilterBar>
            <TextFilter label={words.filter} value={q} onChange={(value) => set({ q: value || undefined })} />
            <FilterChip
              name={words.severity}
              value={severity}
              onChange={(value) => set({ severity: value.length ? value : undefined })}
              options={(['critical', 'error', 'warn'] as const).map((each) => ({
                id: each,
                label: words.severities[each],
                count: count(query, (inbox) => inbox.counts[each]),
              }))}
            />
            <FilterChip
              name={words.source}
              value={source}
              onChange={(value) => set({ source: value.length ? value : undefined })}
              options={(['drift', 'budget', 'eval', 'deploy'] as const).map((each) => ({
                id: each,
                label: words.sources[each],
              }))}
            />
          </FilterBar>
          {query.isPending ? (
            <div className="sk-pad">
              <Skeleton shape="list" rows={5} />
            </div>
          ) : query.isError ? (
            <ErrorBlank error={query.error} onRetry={() => void query.refetch()} />
          ) : shown.length === 0 ? (
            <div className="pad-s">
              {filtered ? (
                <Blank
                  of={known}
                  level={2}
                  icon="filter"
                  title={text.common.noMatch}
                  actions={
                    <Button onPress={() => set({ q: undefined, severity: undefined, source: undefined })}>
                      {text.common.clearFilters}
                    </Button>
                  }
                />
              ) : (
                <Blank
                  of={state === 'open' ? watched(known) : known}
                  level={2}
                  icon="ok"
                  title={state === 'resolved' ? words.noneResolved : text.overview.alerts.none}
                >
                  {text.overview.alerts.noneHint}
                </Blank>
              )}
            </div>
          ) : (
            <>
              <EvidenceProvider value={known}>
                <ul className="inbox" aria-label={words.list} {...evidenceOf(known)}>
                  {shown.map((alert) => (
                    <InboxItem key={alert.id} alert={alert} current={alert.id === current?.id} />
                  ))}
                </ul>
              </EvidenceProvider>
              <div className="pad-s">
                <KeyHints
                  hints={[
                    ['j k', text.common.hints.move],
                    ['/', text.common.hints.filter],
                  ]}
                />
              </div>
            </>
          )}
        </div>
        {current ? (
          <EvidenceProvider value={known}>
            <AlertDetail key={current.id} alert={current} total={shown.length} />
          </EvidenceProvider>
        ) : (
          <article className="detail" aria-label={words.pick}>
            <div className="pad-s">{shown.length > 0 && <Message level={2} icon="bell" title={words.pick} />}</div>
          </article>
        )}
      </div>
    </>
  );
}

function InboxItem({ alert, current }: { alert: Alert; current: boolean }) {
  return (
    <li>
      <Link
        from="/alerts"
        to="/alerts"
        search={(prev) => ({ ...prev, id: alert.id })}
        aria-current={current ? 'true' : undefined}
        activeProps={{}}
        data-item={alert.id}
        resetScroll={false}
        replace
      >
        <b className="strong wrap-2">{alert.title}</b>
        <RelativeTime at={alert.since} short />
        <span className="meta">
          <State kind={kindOfAlert(alert)}>{words.severities[alert.severity]}</State>
          <span>{sourceName(alert.source)}</span>
          <span className="end">{words.states[alert.state]}</span>
        </span>
      </Link>
    </li>
  );
}

function AlertDetail({ alert, total }: { alert: Alert; total: number }) {
  const mayAck = useMay('alert.ack');
  const since = parseTime(alert.since);
  const ended = parseTime(alert.resolved_at);
  const model = alert.labels.model;
  const of = useEvidence();
  return (
    <article className="detail" aria-label={alert.title} {...evidenceOf(of)}>
      <header>
        <Link className="link small only-s" from="/alerts" to="/alerts" search={(prev) => ({ ...prev, id: undefined })}>
          {words.all(total)}
        </Link>
        <div className="row wrap">
          <h2 className="grow">{alert.title}</h2>
          <Pill kind={kindOfAlert(alert)}>
            {alert.state === 'resolved' ? words.states.resolved : words.severities[alert.severity]}
          </Pill>
        </div>
        <p className="muted">{(words.advice as Record<string, string>)[alert.source]}</p>
      </header>
      <div className="sec">
        <Facts
          two
          facts={[
            [words.since, <RelativeTime at={alert.since} />],
            [words.state, words.states[alert.state]],
            since
              ? [words.lasts, ended ? formatDuration(ended.getTime() - since.getTime()) : <Age since={since} />]
              : undefined,
            [words.source, sourceName(alert.source)],
            alert.acked_by
              ? [
                  words.ackedBy,
                  <>
                    {alert.acked_by}, <RelativeTime at={alert.acked_at} />
                  </>,
                ]
              : undefined,
            ended ? [words.resolvedAt, <RelativeTime at={ended} />] : undefined,
            [words.id, <CopyText value={alert.id} />],
          ]}
        />
      </div>
      <div className="sec">
        <h3>{words.labels}</h3>
        <Facts facts={Object.entries(alert.labels).map(([key, value]) => [key, <code>{value}</code>] as const)} />
      </div>
      <div className="sec">
        <h3>{words.next}</h3>
        <div className="row wrap">
          {model && (
            <ButtonLink
              to="/models/$name"
              params={{ name: model }}
              search={alert.source === 'drift' ? { tab: 'drift' } : {}}
              icon="cube"
            >
              {words.openModel(model)}
            </ButtonLink>
          )}
          {alert.source === 'budget' && (
            <ButtonLink to="/finops" icon="cost">
              {words.openBudget}
            </ButtonLink>
          )}
          {alert.source === 'eval' && (
            <ButtonLink to="/llmops" icon="list">
              {words.openEvals}
            </ButtonLink>
          )}
        </div>
      </div>
      <div className="sec note-sec">
        <h3>{words.history}</h3>
        <Discussion type="alert" id={alert.id} />
      </div>
      {alert.state === 'firing' && mayAck && (
        <div className="decide">
          <span className="grow" />
          <Button kind="primary" icon="check" onPress={() => void acknowledge(alert)}>
            {words.acknowledge}
          </Button>
        </div>
      )}
    </article>
  );
}
