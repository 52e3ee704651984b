import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import type { components } from '../../api/gen/dashboard';
import { fetchRegistry, registryPagesQuery, seriesQuery, servedQuery, type RegistryFilters } from '../../api/queries';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { AliasChip, GeneratedChip } from '../../components/chip';
import { downloadText, formatCSV } from '../../components/csv';
import { FilterBar, FilterChip, TextFilter } from '../../components/filters';
import { KeyHints } from '../../components/kbd';
import { ButtonLink } from '../../components/link';
import { PageHead } from '../../components/page';
import { QueryPanel } from '../../components/panel';
import { Segments } from '../../components/seg';
import { Sparkline } from '../../components/sparkline';
import { Impossible, NotMeasured, severityOf, State } from '../../components/state';
import { BulkBar, DataTable, type Column } from '../../components/table';
import { RelativeTime } from '../../components/time';
import { formatCount, formatZ } from '../../format/numbers';
import { parseTime } from '../../format/time';
import { readPreference, storePreference, subscribeToPreferences, type Preferences } from '../../state/preferences';
import { useRange } from '../../state/range';
import { read, readLast, orElse, mapFigure, type Figure, Unknown } from '../../state/figure';
import { text } from '../../text';
import { healthOf, readHealth, type RegistryRow } from './health';
import { useInfiniteQuery, useQuery } from '../../state/query';
import { useEvidence } from '../../components/evidence';
import { Show } from '../../components/figure';

const route = getRouteApi('/shell/models');
const words = text.registry;
type Registry = components['schemas']['Registry'];
const noRegistry: { registry: Registry } = {
  registry: { count: 0, rows: [], matching: 0, served: 0, severities: {}, next_cursor: null },
};
const noChoice: never[] = [];
const aliasOrder = ['Production', 'Canary', 'Staging'];

/** How many models a view has; none needs attention only if the health of each is known. */
function countIn({ count, severities: of }: Registry, view: string): number | Unknown {
  const unknown = of.unknown ?? 0;
  if (view === 'all') return count;
  if (view === 'unmeasured') return unknown;
  const n = (of.critical ?? 0) + (of.warn ?? 0);
  return n === 0 && unknown > 0 ? new Unknown(text.overview.unknown(unknown, count)) : n;
}

/** The server's names of the columns that it sorts by. */
const sortNames: Record<string, string> = { versions: 'version', fresh: 'freshness' };

function sortName(sort: string): string {
  const key = sort.replace(/^-/, '');
  return sort.slice(0, sort.length - key.length) + (sortNames[key] ?? key);
}

/** Names of models whose Production copy was trained on generated data. */
export function useGeneratedModels(): ReadonlySet<string> {
  const served = useQuery(servedQuery).data;
  return useMemo(
    () =>
      new Set(
        (served ?? [])
          .filter((m) => m.dummy || /generated|synthetic/.test(m.data_origin ?? ''))
          .map((m) => m.model_name.toUpperCase()),
      ),
    [served],
  );
}

/** Row height, as in Preferences: compact rows show more of a long list. */
function DensityToggle() {
  const density = useSyncExternalStore(subscribeToPreferences, () => readPreference('density'));
  return (
    <Segments<Preferences['density']>
      className="end hide-s"
      label={text.preferences.density}
      value={density}
      onChange={(value) => storePreference('density', value)}
      segments={(['compact', 'normal'] as const).map((value) => ({ value, label: text.shell.densities[value] }))}
    />
  );
}

/** Each row's requests are a request of their own: more rows than this go without. */
const MOST_REQUESTS = 40;

/** Predictions answered by a model in the chosen range; nothing is known of models without Production. */
function Requests({ row }: { row: RegistryRow }) {
  const isServed = row.aliases?.Production !== undefined;
  const query = useQuery({ ...seriesQuery(row.name, 'requests', useRange(), 96), enabled: isServed });
  if (!isServed) return <Impossible />;
  // The version under the alias now has no recorded answers yet.
  if (row.earlier) return <NotMeasured why={words.earlierRequests(row.earlier.version)} />;
  const total = read(query, ({ points }) => {
    const counts = points.map(([, value]) => value).filter((value) => typeof value === 'number');
    return counts.length > 0 ? counts.reduce((a, b) => a + b, 0) : undefined;
  });
  return (
    <Show figure={total}>
      {(requests) => (
        <Link className="quiet" to="/models/$name" params={{ name: row.name }} search={{ tab: 'traffic' }}>
          {formatCount(requests)}
        </Link>
      )}
    </Show>
  );
}

/** Drift of a version that has left the alias: not a figure of its current version. */
function Earlier({ row: { version, earlier } }: { row: RegistryRow }) {
  const z = earlier?.zScore;
  return (
    <NotMeasured>
      {words.earlier(String(version), String(earlier?.version), typeof z === 'number' ? formatZ(z) : undefined)}
    </NotMeasured>
  );
}

function NoAlias() {
  const of = useEvidence();
  return (
    <span className="faint">
      <Show figure={of}>{() => words.noAlias}</Show>
    </span>
  );
}

/** What each source said of the rows. */
interface Parts {
  health: Figure<unknown>;
  drift: Figure<unknown>;
  policies: Figure<unknown>;
}

function columnsOf(generated: ReadonlySet<string>, withRequests: boolean, of: Parts): Column<RegistryRow>[] {
  const names = words.columns;
  return [
    {
      key: 'health',
      header: names.health,
      isHealth: true,
      sort: (row) => severityOf[healthOf(row).kind] * 1e6 - (row.zScore ?? 0),
      cell: (row) => {
        const { kind, reasons } = healthOf(row);
        const why = reasons.join('; ');
        return (
          <Show figure={of.health}>
            {() => (
              <>
                <State kind={kind} />
                {kind !== 'ok' && (
                  <span className="why" title={why}>
                    {why || words.noReason}
                  </span>
                )}
              </>
            )}
          </Show>
        );
      },
    },
    {
      key: 'name',
      header: names.model,
      isName: true,
      sort: (row) => row.name,
      cell: (row) => (
        <>
          <Link className="trunc cell-w" title={row.name} to="/models/$name" params={{ name: row.name }}>
            {row.name}
          </Link>{' '}
          {generated.has(row.trackerName.toUpperCase()) && <GeneratedChip />}
          {row.description && (
            <span className="why sub-d" dir="auto" title={row.description}>
              {row.description}
            </span>
          )}
        </>
      ),
    },
    {
      key: 'versions',
      header: names.versions,
      sort: (row) => row.version,
      cell: (row) => {
        const aliases = Object.entries(row.aliases ?? {}).sort(
          ([a], [b]) => aliasOrder.indexOf(a) - aliasOrder.indexOf(b),
        );
        return (
          <span className="row">
            {aliases.length === 0 && <NoAlias />}
            {aliases.map(([alias, version]) => (
              <AliasChip key={alias} alias={alias} version={version} />
            ))}
          </span>
        );
      },
    },
    {
      key: 'z',
      header: names.drift,
      hint: words.hints.drift,
      numeric: true,
      sort: (row) => row.zScore,
      cell: (row) => {
        const { kind } = healthOf(row);
        if (row.earlier) return <Earlier row={row} />;
        return (
          <Show figure={mapFigure(of.drift, () => row.zScore)}>
            {(z) => (
              <Link
                className={z >= 2 ? `st-${kind} strong` : 'quiet'}
                to="/models/$name"
                params={{ name: row.name }}
                search={{ tab: 'drift' }}
              >
                {formatZ(z)}
              </Link>
            )}
          </Show>
        );
      },
    },
    {
      key: 'trend',
      header: names.trend,
      hint: words.hints.trend,
      drop: 'phone',
      className: 'drop-m',
      cell: (row) => (
        <Show figure={mapFigure(of.drift, () => row.trend)}>
          {(points) => <Sparkline points={points} label={words.trend(row.name)} state={healthOf(row).kind} />}
        </Show>
      ),
    },
    ...(withRequests
      ? [
          {
            key: 'requests',
            header: names.requests,
            hint: words.hints.requests,
            numeric: true,
            className: 'drop-m',
            cell: (row: RegistryRow) => <Requests row={row} />,
          },
        ]
      : []),
    {
      key: 'fresh',
      header: names.fresh,
      hint: words.hints.fresh,
      sort: (row) => parseTime(row.freshness)?.getTime(),
      cell: (row) => (
        <span className={row.freshnessStatus === 'stale' ? 'st-warn' : 'muted'}>
          <RelativeTime at={row.freshness} rough />
          {row.freshnessStatus === 'stale' && `, ${words.stale}`}
        </span>
      ),
    },
    {
      key: 'governed',
      header: names.governed,
      hint: words.hints.governed,
      className: 'drop-m',
      sort: (row) => (row.governed === undefined ? undefined : Number(!row.governed)),
      cell: (row) => (
        <Show figure={mapFigure(of.policies, () => row.governed)}>
          {(governed) => (
            <Link
              className={governed ? 'muted quiet' : 'faint quiet'}
              to="/models/$name"
              params={{ name: row.name }}
              search={{ tab: 'governance' }}
            >
              {governed ? words.governed : words.ungoverned}
            </Link>
          )}
        </Show>
      ),
    },
  ];
}

function exportRows(rows: readonly RegistryRow[]): void {
  const header = [
    'name',
    'tracker_name',
    'version',
    'stage',
    'health',
    'reasons',
    'z_score',
    'freshness',
    'freshness_status',
    'governed',
    'aliases',
  ];
  const body = rows.map((row) => [
    row.name,
    row.trackerName,
    row.version,
    row.stage,
    row.health,
    (row.healthReasons ?? []).join('; '),
    row.zScore,
    row.freshness,
    row.freshnessStatus,
    row.governed,
    JSON.stringify(row.aliases ?? {}),
  ]);
  downloadText('registry.csv', 'text/csv;charset=utf-8', formatCSV(header, body));
}

export function RegistryScreen() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const generated = useGeneratedModels();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const set = (change: Partial<typeof search>): void =>
    void navigate({ to: '/models', search: (prev) => ({ ...prev, ...change }), replace: true });
  const { q = '', view = 'all', stage = noChoice, fresh = noChoice, sort = 'health' } = search;
  // What is typed filters at once; the address follows.
  const [typed, setTyped] = useState(q);
  useEffect(() => setTyped(q), [q]);
  const filters: RegistryFilters = {
    q: typed.trim() || undefined,
    view,
    stage: stage.join(',') || undefined,
    freshness: fresh.join(',') || undefined,
    sort: sortName(sort),
  };
  const query = useInfiniteQuery(registryPagesQuery(filters));
  const registry = orElse(readLast(query, ['tracker']), noRegistry).registry;
  const rows = registry.rows;
  const withRequests = registry.count <= MOST_REQUESTS;
  const columns = useMemo(
    () =>
      columnsOf(generated, withRequests, {
        health: readHealth(query, (list) => list),
        drift: read(query, (view) => view, ['drift']),
        policies: read(query, (view) => view, ['promotion']),
      }),
    // The figures are new objects at each render; what they are made of is not.
    [generated, withRequests, query.data, query.isError],
  );
  const unknown = registry.severities.unknown ?? 0;
  const saveAll = async (): Promise<void> => exportRows(await fetchRegistry(filters));
  const kinds = readHealth(query, (list) => list);
  const chosen = rows.filter((row) => selected.has(row.name));
  return (
    <>
      <PageHead
        title={words.title}
        says={[
          read(query, () => words.sub(registry.count, registry.served), ['tracker']),
          read(
            query,
            () => words.verdict((registry.severities.critical ?? 0) + (registry.severities.warn ?? 0), unknown > 0),
            ['tracker'],
          ),
          read(query, () => (unknown > 0 ? new Unknown(text.overview.unknown(unknown, registry.count)) : ''), [
            'tracker',
          ]),
        ]}
        actions={
          <Button icon="dl" isDisabled={rows.length === 0} onPress={() => void saveAll()}>
            {words.exportCSV}
          </Button>
        }
      />
      <QueryPanel
        title={words.table}
        query={query}
        skeleton="table"
        flush
        untitled
        rowsOf={['tracker']}
        note={() => text.common.rows(registry.matching, registry.count)}
        footer={() => (
          <KeyHints
            hints={[
              ['j k', text.common.hints.move],
              ['x', text.common.hints.select],
              ['Enter', text.common.hints.open],
              ['/', text.common.hints.filter],
            ]}
          />
        )}
        empty={(data, of) =>
          data.registry.count > 0 ? undefined : (
            <Blank
              of={of}
              icon="cube"
              title={words.empty}
              actions={<ButtonLink to="/documents">{words.readGuide}</ButtonLink>}
            >
              {words.emptyHint}
            </Blank>
          )
        }
      >
        {(_, of) => (
          <>
            {chosen.length > 0 ? (
              <BulkBar count={chosen.length} onClear={() => setSelected(new Set())}>
                <Button icon="dl" onPress={() => exportRows(chosen)}>
                  {words.exportCSV}
                </Button>
                <Button
                  icon="copy"
                  onPress={() => void navigator.clipboard?.writeText(chosen.map((row) => row.name).join('\n'))}
                >
                  {words.compare}
                </Button>
              </BulkBar>
            ) : (
              <FilterBar>
                <TextFilter
                  label={words.filter}
                  value={q}
                  onChange={(value) => set({ q: value || undefined })}
                  onDraft={setTyped}
                />
                <Segments
                  label={words.views.label}
                  value={view}
                  onChange={(value) => set({ view: value === 'all' ? undefined : value })}
                  segments={(['all', 'attention', 'unmeasured'] as const).map((value) => ({
                    value,
                    label: words.views[value],
                    count: mapFigure(kinds, () => countIn(registry, value)),
                  }))}
                />
                <FilterChip
                  name={words.stage}
                  value={stage}
                  onChange={(value) => set({ stage: value.length ? value : undefined })}
                  options={[...aliasOrder, 'none'].map((id) => ({ id, label: id === 'none' ? words.noAlias : id }))}
                />
                <FilterChip
                  name={words.freshness}
                  value={fresh}
                  onChange={(value) => set({ fresh: value.length ? value : undefined })}
                  options={(['current', 'stale', 'unknown'] as const).map((id) => ({
                    id,
                    label: words.freshnessOf[id],
                  }))}
                />
                <DensityToggle />
              </FilterBar>
            )}
            <DataTable
              label={words.table}
              rows={rows}
              columns={columns}
              rowKey={(row) => row.name}
              rowName={(row) => row.name}
              isSorted
              sort={sort}
              onSort={(value) => set({ sort: value })}
              selected={selected}
              onSelect={setSelected}
              onEnd={query.hasNextPage && !query.isFetchingNextPage ? () => void query.fetchNextPage() : undefined}
              onOpen={(row) => void navigate({ to: '/models/$name', params: { name: row.name } })}
              empty={
                <Blank
                  of={of}
                  icon="filter"
                  title={text.common.noMatch}
                  actions={
                    <Button onPress={() => set({ q: undefined, view: undefined, stage: undefined, fresh: undefined })}>
                      {text.common.clearFilters}
                    </Button>
                  }
                >
                  {text.common.noMatchHint}
                </Blank>
              }
            />
          </>
        )}
      </QueryPanel>
    </>
  );
}
