import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useCallback, useMemo, type ReactNode } from 'react';
import { facilityQuery, jobQuery, queueQuery } from '../../api/queries';
import type { components } from '../../api/gen/dashboard';
import { Blank, CopyText, ErrorBlank, Message } from '../../components/blank';
import { Button } from '../../components/button';
import { Dialog } from '../../components/dialog';
import { FilterBar, FilterChip, TextFilter } from '../../components/filters';
import { ButtonLink } from '../../components/link';
import { PageHead } from '../../components/page';
import { QueryPanel } from '../../components/panel';
import { Segments } from '../../components/seg';
import { Skeleton } from '../../components/skeleton';
import { Facts, Figures, Meter } from '../../components/stat';
import { Impossible, State } from '../../components/state';
import { DataTable, type Column } from '../../components/table';
import { RelativeTime } from '../../components/time';
import { formatCount, formatScore } from '../../format/numbers';
import { formatDuration } from '../../format/time';
import { mapFigure, read, readLast, orElse } from '../../state/figure';
import { useNow } from '../../state/now';
import { text } from '../../text';
import { FreezeButton } from '../snapshot/freeze';
import { isWaiting, jobKind, waitOf, type QueueJob } from './jobs';
import { useQuery } from '../../state/query';
import { Evidence } from '../../components/evidence';

const route = getRouteApi('/shell/facility');
const words = text.facility;
type Partition = components['schemas']['Partition'];
type Facility = components['schemas']['FacilityView']['facility'];

const stateWord = (state: string): string => words.states[state.toUpperCase()] ?? state;

export function FacilityScreen() {
  const { cluster, job } = route.useSearch();
  const navigate = useNavigate({ from: '/facility' });
  const query = useQuery(facilityQuery(cluster));
  const queue = useQuery(queueQuery(cluster));
  const now = useNow();
  const clusters = orElse(
    mapFigure(readLast(query), (view) => view.facility.clusters),
    [],
  );
  const longest = read(
    queue,
    (view) =>
      Math.max(
        ...view.queue.jobs
          .filter((each) => isWaiting(each.state))
          .map((each) => waitOf(each, queue.dataUpdatedAt, now.getTime())),
      ),
    ['jobs'],
  );
  const w = words.figures;
  return (
    <>
      <PageHead
        title={words.title}
        sub={words.sub}
        actions={
          <>
            {clusters.length > 1 && (
              <Segments
                label={words.cluster}
                value={cluster ?? ''}
                onChange={(value) => void navigate({ search: (old) => ({ ...old, cluster: value || undefined }) })}
                segments={[
                  { value: '', label: words.allClusters },
                  ...clusters.map((each) => ({ value: each, label: each })),
                ]}
              />
            )}
            <FreezeButton
              title={words.title}
              path={cluster ? `/facility?cluster=${encodeURIComponent(cluster)}` : '/facility'}
              data={query.data && { ...query.data, queue: queue.data?.queue }}
            />
          </>
        }
      />
      <div className="stack">
        <QueryPanel title={w.title} query={query} skeleton="figures">
          {() => {
            const figure = (of: (facility: Facility) => ReactNode) =>
              read(query, (view) => of(view.facility), ['jobs']);
            const jobsIn = (...state: string[]) => ({ to: '/facility' as const, search: { cluster, state } });
            return (
              <Figures
                stats={[
                  {
                    label: w.nodes,
                    value: figure((all) => formatCount(all.nodesAllocated)),
                    note: w.ofRunning,
                    link: { to: '/runs' },
                  },
                  {
                    label: w.gpus,
                    value: figure((all) => formatCount(all.gpusAllocated)),
                    note: w.ofRunning,
                    link: { to: '/runs' },
                  },
                  { label: w.running, value: figure((all) => formatCount(all.jobsRunning)), link: { to: '/runs' } },
                  {
                    label: w.queue,
                    value: figure((all) => formatCount(all.queueDepth)),
                    link: jobsIn('PENDING', 'SUBMITTED'),
                  },
                  {
                    label: w.pressure,
                    link: jobsIn('PENDING', 'SUBMITTED'),
                    value: figure((all) =>
                      all.jobsRunning === 0 ? <Impossible /> : formatScore(all.queueDepth / all.jobsRunning),
                    ),
                    note: w.pressureNote,
                  },
                  {
                    label: w.longest,
                    link: jobsIn('PENDING', 'SUBMITTED'),
                    value: mapFigure(longest, (wait) => (wait < 0 ? <Impossible /> : formatDuration(wait))),
                    found: mapFigure(longest, (wait) => (wait < 0 ? w.none : '')),
                  },
                ]}
              />
            );
          }}
        </QueryPanel>
        <div className="grid cols-main r-wide">
          <QueuePanel />
          <QueryPanel
            title={words.partitions.title}
            query={query}
            flush
            skeleton="table"
            empty={(view, of) =>
              view.facility.partitions.length === 0 ? (
                <Blank of={of} icon="server" title={words.partitions.none} />
              ) : undefined
            }
          >
            {(view) => (
              <ul className="parts">
                {view.facility.partitions.map((partition) => (
                  <PartitionRow key={partition.name} partition={partition} />
                ))}
              </ul>
            )}
          </QueryPanel>
        </div>
      </div>
      {job && (
        <JobDialog
          id={job}
          cluster={cluster}
          onClose={() => void navigate({ search: (old) => ({ ...old, job: undefined }), resetScroll: false })}
        />
      )}
    </>
  );
}

function PartitionRow({ partition: { name, running, queued, gpusAllocated } }: { partition: Partition }) {
  const w = words.partitions;
  const all = running + queued;
  return (
    <li>
      <span className="row">
        <span className="med grow">{name}</span>
        <span className="small muted num">
          {formatCount(gpusAllocated)} {w.gpus}
        </span>
      </span>
      <Meter value={all ? running / all : undefined} label={w.bar(running, queued)} kind="running" />
      <span className="small faint">{w.bar(running, queued)}</span>
    </li>
  );
}

function useQueueColumns(toldAt: number): Column<QueueJob>[] {
  const now = useNow().getTime();
  const w = words.queue;
  return [
    {
      key: 'state',
      header: w.state,
      isHealth: true,
      sort: (row) => row.state,
      cell: (row) => <State kind={jobKind(row.state)}>{stateWord(row.state)}</State>,
    },
    {
      key: 'job',
      header: w.job,
      isName: true,
      sort: (row) => row.id,
      cell: (row) => (
        <>
          <Link
            to="/facility"
            search={(old) => ({ ...old, job: row.id, cluster: row.cluster }) as never}
            resetScroll={false}
          >
            {row.id}
          </Link>
          <span className="why sub-d">{row.cluster}</span>
        </>
      ),
    },
    {
      key: 'model',
      header: w.model,
      sort: (row) => row.model,
      cell: (row) =>
        row.model ? (
          <Link className="link" to="/models/$name" params={{ name: row.model }}>
            {row.model}
          </Link>
        ) : (
          <span className="faint">{w.noModel}</span>
        ),
    },
    {
      key: 'partition',
      header: w.partition,
      drop: 'medium',
      sort: (row) => row.partition,
      cell: (row) => row.partition ?? <Impossible />,
    },
    { key: 'nodes', header: w.nodes, numeric: true, sort: (row) => row.nodes, cell: (row) => formatCount(row.nodes) },
    { key: 'gpus', header: w.gpus, numeric: true, sort: (row) => row.gpus, cell: (row) => formatCount(row.gpus) },
    {
      key: 'wait',
      header: w.wait,
      numeric: true,
      sort: (row) => row.waitSec,
      cell: (row) => (isWaiting(row.state) ? formatDuration(waitOf(row, toldAt, now)) : <Impossible />),
    },
    {
      key: 'submitted',
      header: w.submitted,
      drop: 'medium',
      sort: (row) => row.submitTime,
      cell: (row) => <RelativeTime at={row.submitTime} />,
    },
  ];
}

function QueuePanel() {
  const { cluster, state, q, sort } = route.useSearch();
  const navigate = useNavigate({ from: '/facility' });
  const query = useQuery(queueQuery(cluster));
  const columns = useQueueColumns(query.dataUpdatedAt);
  const jobs = query.data?.queue.jobs;
  const needle = (q ?? '').trim().toLowerCase();
  const shown = useMemo(
    () =>
      (jobs ?? []).filter(
        (job) =>
          (!state?.length || state.includes(job.state)) &&
          [job.id, job.model, job.partition, job.cluster].some((each) => each?.toLowerCase().includes(needle)),
      ),
    [jobs, state, needle],
  );
  const setQ = useCallback(
    (value: string) =>
      void navigate({ search: (old) => ({ ...old, q: value || undefined }), replace: true, resetScroll: false }),
    [navigate],
  );
  const states = [...new Set((jobs ?? []).map((job) => job.state))].sort();
  const w = words.queue;
  return (
    <QueryPanel
      title={w.title}
      query={query}
      flush
      skeleton="table"
      note={(view) =>
        shown.length === view.queue.count ? w.note(view.queue.count) : text.common.rows(shown.length, view.queue.count)
      }
      empty={(view, of) =>
        view.queue.jobs.length > 0 ? undefined : (
          <Blank
            of={of}
            icon="server"
            title={w.none}
            actions={
              <>
                <ButtonLink to="/runs">{w.toRuns}</ButtonLink>
                <ButtonLink to="/documents" search={{ path: 'docs/costs.md' }} kind="ghost">
                  {w.readGuide}
                </ButtonLink>
              </>
            }
          >
            {w.noneHint}
          </Blank>
        )
      }
    >
      {(_, of) => (
        <>
          <FilterBar>
            <TextFilter label={w.filter} value={q ?? ''} onChange={setQ} />
            <FilterChip
              name={w.state}
              options={states.map((id) => ({
                id,
                label: stateWord(id),
                count: mapFigure(of, (view) => view.queue.jobs.filter((job) => job.state === id).length),
              }))}
              value={state ?? []}
              onChange={(value) =>
                void navigate({
                  search: (old) => ({ ...old, state: value.length ? value : undefined }),
                  replace: true,
                  resetScroll: false,
                })
              }
            />
          </FilterBar>
          <DataTable
            label={w.title}
            rows={shown}
            columns={columns}
            rowKey={(row) => `${row.cluster} ${row.id}`}
            rowName={(row) => row.id}
            sort={sort ?? '-wait'}
            onSort={(value) =>
              void navigate({ search: (old) => ({ ...old, sort: value }), replace: true, resetScroll: false })
            }
            onOpen={(row) =>
              void navigate({ search: (old) => ({ ...old, job: row.id, cluster: row.cluster }), resetScroll: false })
            }
            empty={
              <Blank of={of} icon="filter" title={text.common.noMatch}>
                {text.common.noMatchHint}
              </Blank>
            }
          />
        </>
      )}
    </QueryPanel>
  );
}

function JobDialog({ id, cluster, onClose }: { id: string; cluster: string | undefined; onClose: () => void }) {
  const query = useQuery(jobQuery(id, cluster));
  const job = query.data?.job;
  const w = words.job;
  const time = (at: string | null): ReactNode =>
    at ? <RelativeTime at={at} /> : <span className="faint">{w.notYet}</span>;
  const span = (seconds: number | null): ReactNode =>
    seconds === null ? <Impossible /> : formatDuration(seconds * 1000);
  return (
    <Dialog
      title={w.title(id)}
      isOpen
      onClose={onClose}
      footer={
        <>
          {job?.model && (
            <ButtonLink to="/models/$name" params={{ name: job.model }}>
              {w.toModel}
            </ButtonLink>
          )}
          <Button kind="primary" onPress={onClose}>
            {text.common.close}
          </Button>
        </>
      }
    >
      {job ? (
        <Evidence of={readLast(query)} as="div">
          <Facts
            facts={[
              [w.state, <State kind={jobKind(job.state)}>{stateWord(job.state)}</State>],
              [w.cluster, job.cluster],
              [w.model, job.model ?? <Impossible />],
              [w.dataset, job.dataset ?? <Impossible />],
              [w.resources, w.of(job.resources.nodes, job.resources.gpus, job.resources.cpus)],
              [w.submitted, time(job.timing.submit)],
              [w.started, time(job.timing.start)],
              [w.ended, time(job.timing.end)],
              [w.waited, span(job.timing.queueSeconds)],
              [w.ran, span(job.timing.runSeconds)],
              [w.exit, job.exitCode ?? <Impossible />],
              [
                w.flow,
                job.flowRunId ? (
                  <Link className="link" to="/runs/$id" params={{ id: job.flowRunId }}>
                    {w.openRun}
                  </Link>
                ) : (
                  <Impossible />
                ),
              ],
              [w.tracker, job.trackerRunId ? <CopyText value={job.trackerRunId} /> : <Impossible />],
            ]}
          />
        </Evidence>
      ) : query.isError ? (
        <ErrorBlank error={query.error} onRetry={() => void query.refetch()} />
      ) : query.data ? (
        <Message icon="unknown" title={text.common.errors.upstream_unavailable} />
      ) : (
        <Skeleton shape="text" />
      )}
    </Dialog>
  );
}
