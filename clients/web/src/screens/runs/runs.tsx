import { getRouteApi, Navigate } from '@tanstack/react-router';
import { useEffect, useMemo, useState } from 'react';
import { approvalsQuery, runRowsQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { FilterBar, FilterChip, TextFilter } from '../../components/filters';
import { KeyHints } from '../../components/kbd';
import { MenuButton } from '../../components/menu';
import { PageHead } from '../../components/page';
import { QueryPanel } from '../../components/panel';
import { Segments } from '../../components/seg';
import { BulkBar, DataTable } from '../../components/table';
import { formatCount } from '../../format/numbers';
import { formatDay, MINUTE, parseTime } from '../../format/time';
import { runCauses, runTabs, runViews } from '../../router-params';
import { useMay } from '../../state/auth';
import { mapFigure, orElse, read, readLast } from '../../state/figure';
import { useNow } from '../../state/now';
import { readColumns, storeColumns } from '../../state/preferences';
import { boundsOf, useRange } from '../../state/range';
import { text } from '../../text';
import { columnChoice, columnsOf, defaultColumns } from './columns';
import { RetrainDialog } from './retrain-dialog';
import { countValues, filterRuns, inTab, isActive, stateOf, type RunRow } from './rows';
import { lanesOf, Timeline, TimelineLegend, type Approval } from './timeline';
import { useQuery } from '../../state/query';
import { useEvidence } from '../../components/evidence';

const route = getRouteApi('/shell/runs');
const words = text.runs;
const noRows: RunRow[] = [];
const noRuns: { runs?: { items: RunRow[] } } = {};
const noApprovals: Approval[] = [];
const noChoice: never[] = [];
/** More than this beside each other are compared with nothing any more. */
const MOST_COMPARED = 6;
/** A timeline is read from the top: more lanes would only make the page slow. */
const MOST_LANES = 200;

export function RunsScreen() {
  const { id } = route.useSearch();
  // Links from before a run had a page of its own.
  return id === undefined ? <RunList /> : <Navigate to="/runs/$id" params={{ id }} replace />;
}

function RunList() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(runRowsQuery);
  const pending = read(useQuery(approvalsQuery('pending')), (list) => list);
  const mayStart = useMay('retrain.trigger');
  const [starting, setStarting] = useState(false);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [columns, setColumns] = useState(() => readColumns('runs') ?? defaultColumns);
  const { state = 'all', as: view = 'table', q = '', sort = '-started' } = search;
  const { model = noChoice, cause = noChoice, requester = noChoice } = search;
  const set = (change: Partial<typeof search>): void =>
    void navigate({ search: (prev) => ({ ...prev, ...change }), replace: true, resetScroll: false });
  // What is typed filters at once; the address follows.
  const [typed, setTyped] = useState(q);
  useEffect(() => setTyped(q), [q]);

  const known = read(query, (data) => data.runs, ['runs']);
  const all = orElse(readLast(query, ['runs']), noRuns).runs?.items ?? noRows;
  const matching = useMemo(
    () => filterRuns(all, { state, q: typed, model, cause, requester }),
    [all, state, typed, model, cause, requester],
  );
  const runs = useMemo(() => matching.filter((run) => inTab(run, state)), [matching, state]);
  const shownColumns = useMemo(() => columnsOf(columns), [columns]);
  const chosen = all.filter((run) => selected.has(run.flow_run_id));
  const whyNot =
    chosen.length < 2
      ? words.compare.few
      : chosen.length > MOST_COMPARED
        ? words.compare.many(MOST_COMPARED)
        : undefined;
  const options = (of: (run: RunRow) => string | undefined, set: readonly string[], label = (id: string) => id) =>
    countValues(all, of, set).map(({ id, count }) => ({ id, label: label(id), count: mapFigure(known, () => count) }));
  const hasFilter = q !== '' || state !== 'all' || [model, cause, requester].some((each) => each.length > 0);
  const clear = (): void =>
    set({ q: undefined, state: undefined, model: undefined, cause: undefined, requester: undefined });

  const noMatch = (
    <Blank
      of={known}
      icon="filter"
      title={text.common.noMatch}
      actions={<Button onPress={clear}>{text.common.clearFilters}</Button>}
    >
      {text.common.noMatchHint}
    </Blank>
  );
  return (
    <>
      <PageHead
        title={words.title}
        says={[
          read(query, () => {
            const running = all.filter((run) => stateOf(run) === 'RUNNING').length;
            return words.sub(running, all.filter(isActive).length - running);
          }, ['runs']),
          mapFigure(pending, (list) => words.waiting(list.filter((each) => each.kind === 'retrain').length)),
        ]}
        actions={
          <>
            <Segments
              label={words.views.label}
              value={view}
              onChange={(value) => set({ as: value === 'table' ? undefined : value })}
              segments={runViews.map((value) => ({ value, label: words.views[value] }))}
            />
            {mayStart && (
              <Button icon="plus" onPress={() => setStarting(true)}>
                {words.start}
              </Button>
            )}
          </>
        }
      />
      <QueryPanel
        title={view === 'table' ? words.table : words.timeline}
        query={query}
        skeleton="table"
        flush
        untitled
        rowsOf={['runs']}
        note={(data) =>
          view === 'table' ? (
            <>
              {text.common.rows(runs.length, all.length)},{' '}
              {data.runs?.truncated ? words.newest(formatCount(all.length)) : words.allTimes}
            </>
          ) : (
            <span className="hide-s">{words.timesIn(formatDay(new Date()))}</span>
          )
        }
        footer={() =>
          view === 'timeline' ? (
            <TimelineLegend />
          ) : (
            <KeyHints
              hints={[
                ['j k', text.common.hints.move],
                ['x', text.common.hints.select],
                ['Enter', text.common.hints.open],
                ['/', text.common.hints.filter],
              ]}
            />
          )
        }
        empty={(_, of) =>
          all.length > 0 || (view === 'timeline' && orElse(pending, noApprovals).length > 0) ? undefined : (
            <Blank
              of={of}
              icon="runs"
              title={words.none}
              actions={mayStart && <Button onPress={() => setStarting(true)}>{words.start}</Button>}
            >
              {words.noneHint}
            </Blank>
          )
        }
      >
        {() => (
          <>
            {view === 'table' && chosen.length > 0 ? (
              <BulkBar count={chosen.length} onClear={() => setSelected(new Set())}>
                <Button
                  icon="split"
                  disabledReason={whyNot}
                  onPress={() =>
                    void navigate({ to: '/runs/compare', search: { run: chosen.map((run) => run.flow_run_id) } })
                  }
                >
                  {words.compare.do}
                </Button>
                {whyNot && <span className="muted">{whyNot}</span>}
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
                  label={words.tabs.label}
                  value={state}
                  onChange={(value) => set({ state: value === 'all' ? undefined : value })}
                  segments={runTabs.map((value) => ({
                    value,
                    label: words.tabs[value],
                    count: read(query, () => matching.filter((run) => inTab(run, value)).length, ['runs']),
                  }))}
                />
                <FilterChip
                  name={words.columns.model}
                  value={model}
                  onChange={(value) => set({ model: value.length ? value : undefined })}
                  options={options((run) => run.model_id, model)}
                />
                <FilterChip
                  name={words.columns.cause}
                  value={cause}
                  onChange={(value) => set({ cause: value.length ? value : undefined })}
                  options={options(
                    (run) => run.cause,
                    cause,
                    (id) => words.causes[runCauses.find((each) => each === id) ?? 'other'],
                  )}
                />
                <FilterChip
                  name={words.columns.requester}
                  value={requester}
                  onChange={(value) => set({ requester: value.length ? value : undefined })}
                  options={options((run) => run.requester, requester)}
                />
                {view === 'table' && (
                  <span className="end hide-s">
                    <MenuButton
                      label={text.common.chooseColumns}
                      multiple
                      entries={columnChoice.map(({ key }) => ({ id: key, label: words.columns[key] }))}
                      selected={columns}
                      onSelect={(keys) => {
                        setColumns(keys);
                        storeColumns('runs', keys);
                      }}
                      button={{ kind: 'ghost', icon: 'table', children: text.common.columns }}
                    />
                  </span>
                )}
              </FilterBar>
            )}
            {view === 'table' ? (
              <DataTable
                label={words.table}
                rows={runs}
                columns={shownColumns}
                rowKey={(run) => run.flow_run_id}
                rowName={(run) => words.name(run.model_id, run.model_version)}
                sort={sort}
                onSort={(value) => set({ sort: value === '-started' ? undefined : value })}
                selected={selected}
                onSelect={setSelected}
                onOpen={(run) => void navigate({ to: '/runs/$id', params: { id: run.flow_run_id } })}
                empty={noMatch}
              />
            ) : (
              <RunTimeline
                runs={runs}
                waiting={state === 'all' || state === 'active' ? orElse(pending, noApprovals) : noApprovals}
                noMatch={hasFilter ? noMatch : undefined}
                needle={typed.trim().toLowerCase()}
              />
            )}
          </>
        )}
      </QueryPanel>
      <RetrainDialog isOpen={starting} onClose={() => setStarting(false)} />
    </>
  );
}

/** The runs of the time range on one axis, with the approvals whose run has yet to start. */
function RunTimeline({
  runs,
  waiting,
  noMatch,
  needle,
}: {
  runs: readonly RunRow[];
  waiting: readonly Approval[];
  noMatch: React.ReactNode;
  needle: string;
}) {
  const of = useEvidence();
  const minute = Math.floor(useNow().getTime() / 15_000) * 15_000;
  const start = boundsOf(useRange(), minute).from.getTime();
  const approvals = useQuery(approvalsQuery()).data;
  const byId = useMemo(() => new Map((approvals ?? []).map((approval) => [approval.id, approval])), [approvals]);
  const within = runs.filter(
    (run) => isActive(run) || (parseTime(run.ended_at ?? run.started_at)?.getTime() ?? Infinity) >= start,
  );
  const lanes = lanesOf(
    within.slice(0, MOST_LANES),
    waiting.filter((approval) => needle === '' || approval.model_id.toLowerCase().includes(needle)),
    byId,
    minute,
  );
  if (lanes.length === 0)
    return noMatch && runs.length === 0 ? (
      noMatch
    ) : (
      <Blank of={of} icon="runs" title={words.empty}>
        {words.emptyHint}
      </Blank>
    );
  // Room to the right of now, so that what runs has an end in sight, and its duration beside it; never wider than what
  // there is to see.
  const earliest = Math.min(...lanes.flatMap((lane) => lane.bars.map((bar) => bar.from)), minute - 10 * MINUTE);
  const left = Math.max(start, earliest - (minute - earliest) * 0.04);
  const right = minute + (minute - left) * 0.14;
  return (
    <>
      <Timeline lanes={lanes} from={left} to={right} now={minute} />
      {within.length > MOST_LANES && <p className="pad-s small muted">{words.lanes(MOST_LANES, within.length)}</p>}
    </>
  );
}
