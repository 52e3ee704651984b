import { getRouteApi } from '@tanstack/react-router';
import { Problem } from '../../api/problem';
import type { components } from '../../api/gen/dashboard';
import { commentsQuery, driftQuery, modelQuery, registryQuery } from '../../api/queries';
import { Blank, ErrorBlank, Message } from '../../components/blank';
import { Button } from '../../components/button';
import { AliasChip, Chip, GeneratedChip } from '../../components/chip';
import { Count, Show } from '../../components/figure';
import { ButtonLink } from '../../components/link';
import { PageHead } from '../../components/page';
import { Panel, PartialChip } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import { Pill } from '../../components/state';
import { Tabs } from '../../components/tabs';
import { formatPercent } from '../../format/numbers';
import { parseTime } from '../../format/time';
import { modelTabs } from '../../router-params';
import { useMay } from '../../state/auth';
import { mapFigure, orElse, read, silentSources, type Figure, readLast } from '../../state/figure';
import { text } from '../../text';
import { DriftChart, MeanChart } from '../drift/series';
import { DriftFacts } from '../drift/facts';
import { InputReport } from '../drift/report';
import { healthOf, readHealth } from '../registry/health';
import { RetrainDialog } from '../runs/retrain-dialog';
import { ComparePanel, defaultPair, type Version } from './compare';
import { RollbackDialog, TrafficDialog } from './dialogs';
import { Discussion } from './discussion';
import { HistoryPanel, type Move } from './history';
import { CostChart, CostTable } from './cost';
import { ModelFigures, type ModelQuery } from './figures';
import type { Gate } from './gate';
import { GatePanel, GovernancePanels } from './governance';
import { LineagePanel } from './lineage';
import { TrafficPanel, TrafficSeries } from './traffic';
import { VersionsPanel } from './versions';
import { useQuery } from '../../state/query';
import { EvidenceProvider } from '../../components/evidence';

type Detail = components['schemas']['ModelDetail'];

const route = getRouteApi('/shell/models/$name');
const words = text.model;

export function ModelScreen() {
  const { name } = route.useParams();
  const query = useQuery(modelQuery(name));
  if (query.data) return <Model key={query.data.detail.name} query={query} detail={query.data.detail} />;
  const missing = query.error instanceof Problem && query.error.status === 404;
  return (
    <>
      <PageHead title={name} />
      <Panel title={name} flush>
        {missing ? (
          <Message
            icon="cube"
            title={words.notFound(name)}
            actions={<ButtonLink to="/models">{words.toRegistry}</ButtonLink>}
          >
            {words.notFoundHint}
          </Message>
        ) : query.isError ? (
          <ErrorBlank error={query.error} onRetry={() => void query.refetch()} />
        ) : (
          <div className="sk-pad">
            <Skeleton shape="figures" />
          </div>
        )}
      </Panel>
    </>
  );
}

const noVersions: Version[] = [];

interface Parts {
  detail: Detail;
  versions: Figure<readonly Version[]>;
  moves: Figure<readonly Move[]>;
  traffic: Figure<NonNullable<Detail['traffic']>>;
  gate: Figure<Gate>;
}

/** Each source's data of the model; absent without an answer. */
function partsOf(query: ModelQuery, detail: Detail): Parts {
  return {
    detail,
    versions: read(query, (view) => view.detail.versions, ['tracker']),
    moves: read(query, (view) => view.detail.aliasHistory, ['promotion']),
    traffic: read(query, (view) => view.detail.traffic, ['traffic']),
    gate: read(query, (view) => view.detail.promotion, ['promotion']),
  };
}

function Model({ detail, query }: { detail: Detail; query: ModelQuery }) {
  const parts = partsOf(query, detail);
  const partial = silentSources(query.data);
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const listed = readHealth(useQuery(registryQuery), (rows) =>
    rows.find((each) => each.name.toLowerCase() === detail.name.toLowerCase()),
  );
  const row = orElse(listed, undefined);
  const comments = read(useQuery(commentsQuery('model', detail.name)), (data) => data.comments.length);
  const mayTrain = useMay('retrain.trigger');
  const mayMove = useMay('model.promote');
  const maySplit = useMay('traffic.manage');
  const set = (change: Partial<typeof search>): void =>
    void navigate({ search: (prev) => ({ ...prev, ...change }), replace: true, resetScroll: false });
  const { tab = 'summary', act } = search;
  const versions = orElse(parts.versions, noVersions);
  const production = versions.find((version) => version.aliases.includes('Production'));
  const holder = (alias: string) =>
    versions.find((version) => version.aliases.includes(alias) && version !== production);
  const newer = versions.find((version) => version.version > (production?.version ?? -Infinity));
  const newest = holder('Canary') ?? holder('Staging') ?? newer;
  const generated =
    (production ?? versions[0])?.tags?.data_origin === 'generated' ||
    (production ?? versions[0])?.tags?.dummy === 'true';
  const close = (): void => set({ act: undefined });
  const events = orElse(parts.moves, []).flatMap((move) => {
    const at = parseTime(move.from)?.getTime();
    return at && move.version
      ? [{ at, label: move.alias === 'Production' ? `v${move.version}` : `v${move.version} ${move.alias}` }]
      : [];
  });
  return (
    <>
      <PageHead
        title={detail.name}
        heading={
          <>
            <bdi className="trunc" title={detail.name}>
              {detail.name}
            </bdi>{' '}
            <Show figure={mapFigure(listed, healthOf)}>
              {({ kind, reasons }) => (
                <>
                  <Pill kind={kind} /> {reasons.length > 0 && <span className="reason">{reasons.join('; ')}</span>}
                </>
              )}
            </Show>
          </>
        }
        sub={detail.description || undefined}
        chips={
          <>
            {[...versions]
              .sort((a, b) => Number(b.aliases.includes('Production')) - Number(a.aliases.includes('Production')))
              .flatMap((version) =>
                version.aliases.map((alias) => (
                  <AliasChip
                    key={alias}
                    alias={alias}
                    version={version.version}
                    note={
                      detail.traffic?.configured && detail.traffic.rules[alias] !== undefined && alias !== 'Production'
                        ? formatPercent(detail.traffic.rules[alias])
                        : undefined
                    }
                  />
                )),
              )}
            {generated && <GeneratedChip />}
            {row?.governed && <Chip>{words.governed}</Chip>}
            {partial.length > 0 && <PartialChip sources={partial} />}
          </>
        }
        actions={
          <>
            {mayTrain && (
              <Button icon="retry" onPress={() => set({ act: 'retrain' })}>
                {words.acts.retrain}
              </Button>
            )}
            {maySplit && (
              <Button icon="split" onPress={() => set({ act: 'traffic' })}>
                {words.acts.split}
              </Button>
            )}
            {mayMove && production && (
              <Button icon="back" onPress={() => set({ act: 'rollback' })}>
                {words.acts.rollback}
              </Button>
            )}
            {newest && (
              <ButtonLink
                kind="primary"
                icon="up"
                to="/models/$name/promote"
                params={{ name: detail.name }}
                search={{ version: String(newest.version) }}
              >
                {words.acts.review(String(newest.version))}
              </ButtonLink>
            )}
          </>
        }
      />
      <Tabs
        label={words.tabsLabel}
        current={tab}
        tabs={modelTabs.map((id) => ({
          id,
          label: words.tabs[id],
          count:
            id === 'versions'
              ? mapFigure(parts.versions, (all) => all.length)
              : id === 'discussion'
                ? comments
                : undefined,
        }))}
        linkOf={(id) =>
          ({
            to: '/models/$name',
            params: { name: detail.name },
            search: (prev: Record<string, unknown>) => ({ ...prev, tab: id === 'summary' ? undefined : id }),
          }) as never
        }
      />
      <div className="stack tabbody">
        {tab === 'summary' && <Summary query={query} parts={parts} events={events} />}
        {tab === 'versions' && (
          <>
            <Compare parts={parts} />
            <VersionsPanel
              model={detail.name}
              versions={parts.versions}
              onCompare={(version) => set({ right: version, left: search.left ?? defaultPair(versions).left })}
            />
          </>
        )}
        {tab === 'drift' && <DriftTab name={detail.name} events={events} />}
        {tab === 'traffic' && (
          <>
            <TrafficPanel
              traffic={parts.traffic}
              versions={versions}
              onEdit={() => set({ act: 'traffic' })}
              refusal={maySplit ? undefined : words.acts.noRole}
            />
            <div className="grid cols-2 stretch">
              <TrafficSeries model={detail.name} metric="requests" height={220} />
              <TrafficSeries model={detail.name} metric="latency_p95" height={220} />
            </div>
          </>
        )}
        {tab === 'cost' && (
          <>
            <CostChart model={detail.name} height={220} />
            <CostTable model={detail.name} />
          </>
        )}
        {tab === 'governance' && (
          <div className="grid cols-2">
            <div className="stack">
              <GatePanel gate={parts.gate} />
            </div>
            <div className="stack">
              <GovernancePanels model={detail.name} />
            </div>
          </div>
        )}
        {tab === 'discussion' && (
          <Panel title={words.tabs.discussion} note={<Count figure={comments} />}>
            <Discussion type="model" id={detail.name} />
          </Panel>
        )}
      </div>
      <RetrainDialog model={detail.name} isOpen={act === 'retrain' && mayTrain} onClose={close} />
      <TrafficDialog
        model={detail.name}
        rules={detail.traffic?.rules ?? {}}
        versions={versions}
        isOpen={act === 'traffic' && maySplit}
        onClose={close}
      />
      <RollbackDialog model={detail.name} moves={parts.moves} isOpen={act === 'rollback' && mayMove} onClose={close} />
    </>
  );
}

function Compare({ parts }: { parts: Parts }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <ComparePanel
      model={parts.detail.name}
      versions={parts.versions}
      gate={orElse(parts.gate, undefined)}
      left={search.left}
      right={search.right}
      onChange={(pair) =>
        void navigate({ search: (prev) => ({ ...prev, ...pair }), replace: true, resetScroll: false })
      }
    />
  );
}

function Summary({
  query,
  parts,
  events,
}: {
  query: ModelQuery;
  parts: Parts;
  events: readonly { at: number; label: string }[];
}) {
  const { detail } = parts;
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const versions = orElse(parts.versions, noVersions);
  const maySplit = useMay('traffic.manage');
  const candidate =
    versions.find((version) => String(version.version) === (search.right ?? defaultPair(versions).right)) ??
    versions[0];
  return (
    <>
      <ModelFigures view={query} />
      <div className="grid cols-main r-wide">
        <div className="stack">
          <DriftChart model={detail.name} events={events} />
          <Compare parts={parts} />
          <HistoryPanel
            model={detail.name}
            moves={parts.moves}
            at={search.at}
            onPick={(at) => void navigate({ search: (prev) => ({ ...prev, at }), replace: true, resetScroll: false })}
          />
        </div>
        <div className="stack">
          <GatePanel gate={parts.gate} />
          <TrafficPanel
            traffic={parts.traffic}
            versions={versions}
            onEdit={() =>
              void navigate({ search: (prev) => ({ ...prev, act: 'traffic' }), replace: true, resetScroll: false })
            }
            refusal={maySplit ? undefined : words.acts.noRole}
          />
          <LineagePanel model={detail.name} version={mapFigure(parts.versions, () => candidate)} />
          <CostChart model={detail.name} />
        </div>
      </div>
    </>
  );
}

function DriftTab({ name, events }: { name: string; events: readonly { at: number; label: string }[] }) {
  const rows = useQuery(driftQuery(name));
  const row = rows.data?.find((each) => each.alias === 'Production') ?? rows.data?.[0];
  return (
    <div className="grid cols-main r-wide">
      <div className="stack">
        <DriftChart model={name} events={events} />
        <MeanChart model={name} />
        <InputReport model={name} />
      </div>
      {row ? (
        <EvidenceProvider value={readLast(rows)}>
          <DriftFacts row={row} />
        </EvidenceProvider>
      ) : (
        <Panel title={text.drift.facts.title} flush>
          {rows.isError ? (
            <ErrorBlank error={rows.error} onRetry={() => void rows.refetch()} />
          ) : (
            <Blank of={read(rows, (data) => data)} icon="drift" title={text.drift.empty}>
              {text.drift.emptyHint}
            </Blank>
          )}
        </Panel>
      )}
    </div>
  );
}
