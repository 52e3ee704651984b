import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { activityQuery, modelCostsQuery, policiesQuery, seriesQuery, servedQuery } from '../../api/queries';
import { Blank, CopyText } from '../../components/blank';
import { Button } from '../../components/button';
import { AliasChip, Chip } from '../../components/chip';
import { Chart, type Point } from '../../components/chart';
import { Feed } from '../../components/feed';
import { GateList } from '../../components/gate';
import { Icon } from '../../components/icon';
import { ButtonLink } from '../../components/link';
import { Panel, QueryPanel } from '../../components/panel';
import { Facts } from '../../components/stat';
import { NotMeasured, Pill } from '../../components/state';
import { DataTable } from '../../components/table';
import { RelativeTime } from '../../components/time';
import {
  formatAmount,
  formatCount,
  formatMoney,
  formatPercent,
  formatRate,
  formatScore,
  shortenCommit,
  shortenHash,
} from '../../format/numbers';
import { parseTime } from '../../format/time';
import { rangeOf, useRange } from '../../state/range';
import { text } from '../../text';
import type { Version } from './compare';
import { gateItems, type Gate } from './gate';

const words = text.model;

/** The gate's verdict on the candidate, with each reason. */
export function GatePanel({ gate }: { gate: Gate | undefined }) {
  if (!gate || gate.version === null || gate.version === undefined)
    return (
      <Panel title={words.gate.title} flush>
        <Blank icon="up" title={words.gate.none}>
          {gate?.policy.reasons.join('; ') || words.gate.noneHint}
        </Blank>
      </Panel>
    );
  return (
    <Panel
      title={words.gate.title}
      note={words.gate.version(String(gate.version))}
      actions={<Pill kind={gate.allowed ? 'ok' : 'critical'}>{gate.allowed ? words.gate.open : words.gate.held}</Pill>}
    >
      <GateList items={gateItems(gate)} />
    </Panel>
  );
}

/** Where a version came from and where it is now. */
export function LineagePanel({ model, version }: { model: string; version: Version | undefined }) {
  const served = useQuery(servedQuery).data;
  const lineage = words.lineage;
  if (!version)
    return (
      <Panel title={words.versions.title} flush>
        <Blank icon="cube" title={lineage.none} />
      </Panel>
    );
  const tags = version.tags ?? {};
  const commit = tags.modelrepo_commit ?? tags.commit_sha;
  const dataset = version.params?.dataset ?? tags.dataset ?? tags.dataset_name;
  const copies =
    served?.filter(
      (copy) => copy.model_name.toLowerCase() === model.toLowerCase() && copy.model_version === String(version.version),
    ) ?? [];
  const copy = copies[0];
  return (
    <Panel title={lineage.title(String(version.version))}>
      <ol className="vlin">
        {commit && (
          <li>
            <Icon name="commit" small />
            <span>
              <b>{shortenCommit(commit)}</b> {lineage.commit}
            </span>
          </li>
        )}
        {(dataset ?? tags.dataset_version) && (
          <li>
            <Icon name="table" small />
            <span>
              <b>{dataset ?? lineage.dataset}</b>{' '}
              {tags.training_rows && lineage.rows(formatCount(Number(tags.training_rows)))}
              {tags.dataset_version && <small>{shortenHash(tags.dataset_version)}</small>}
            </span>
          </li>
        )}
        <li>
          <Icon name="runs" small />
          <span>
            <b>
              {lineage.run} {shortenHash(version.runId)}
            </b>
            <small>
              {[tags.gpu_hours && `${tags.gpu_hours} GPU h`, tags.cost_usd && formatMoney(Number(tags.cost_usd))]
                .filter(Boolean)
                .join(', ')}
            </small>
          </span>
        </li>
        <li className="on">
          <Icon name="cube" small />
          <span>
            <b>
              {lineage.version} {version.version}
            </b>{' '}
            <RelativeTime at={version.createdAt} />
            {copy?.digest && (
              <small>
                sha256 {shortenHash(copy.digest)}, {copy.verified ? lineage.verified : lineage.unverified}
              </small>
            )}
          </span>
        </li>
        {version.aliases.map((alias) => {
          const loaded = copies.find((each) => each.alias === alias);
          return (
            <li key={alias}>
              <Icon name="server" small />
              <span>
                <b>{lineage.served(alias)}</b>
                <small>
                  {loaded ? (
                    <>
                      {lineage.loaded} <RelativeTime at={loaded.loaded_at} />
                    </>
                  ) : served ? (
                    lineage.notLoaded
                  ) : (
                    text.common.notMeasured
                  )}
                </small>
              </span>
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}

/** What training cost over time: the current period in colour. */
export function CostChart({ model, height = 160 }: { model: string; height?: number }) {
  const query = useQuery(seriesQuery(model, 'cost_usd', rangeOf('90d'), 12));
  return (
    <QueryPanel
      title={words.cost.title}
      query={query}
      skeleton="chart"
      note={text.shell.ranges['90d'].toLowerCase()}
      hideAsOf
    >
      {(data) => {
        const points = data.points.map(([at, value]): Point => [at ?? 0, value ?? null]);
        const last = points.findLast(([, value]) => value !== null)?.[1];
        return (
          <Chart
            label={words.cost.label(last === undefined || last === null ? text.common.notMeasured : formatMoney(last))}
            points={points}
            unit={data.unit}
            format={formatRate}
            kind="bars"
            fromZero
            height={height}
          />
        );
      }}
    </QueryPanel>
  );
}

export function CostTable({ model }: { model: string }) {
  const query = useQuery(modelCostsQuery(model));
  const columns = words.cost.columns;
  return (
    <QueryPanel
      title={words.cost.table}
      query={query}
      skeleton="table"
      flush
      empty={(data) =>
        data.items.length === 0 ? (
          <Blank icon="cost" title={words.cost.none}>
            <code>{words.cost.noneHint}</code>
          </Blank>
        ) : undefined
      }
    >
      {(data) => (
        <DataTable
          label={words.cost.table}
          rows={data.items}
          rowKey={(row) => row.id}
          rowName={(row) => row.job_id}
          sort="-at"
          columns={[
            {
              key: 'version',
              header: columns.version,
              isName: true,
              sort: (row) => Number(row.version),
              cell: (row) => (
                <>
                  v{row.version}{' '}
                  {row.synthetic && (
                    <Chip kind="synth" title={words.cost.syntheticTitle}>
                      {words.cost.synthetic}
                    </Chip>
                  )}
                </>
              ),
            },
            { key: 'job', header: columns.job, cell: (row) => `${row.scheduler} ${row.job_id}` },
            {
              key: 'gpu',
              header: columns.gpu,
              numeric: true,
              sort: (row) => row.gpu_hours,
              cell: (row) => formatScore(row.gpu_hours),
            },
            {
              key: 'cpu',
              header: columns.cpu,
              numeric: true,
              className: 'drop-m',
              sort: (row) => row.cpu_hours,
              cell: (row) => formatScore(row.cpu_hours),
            },
            {
              key: 'usd',
              header: columns.usd,
              numeric: true,
              sort: (row) => row.cost_usd,
              cell: (row) => formatAmount(row.cost_usd),
            },
            {
              key: 'co2',
              header: columns.co2,
              numeric: true,
              sort: (row) => row.co2e_g,
              cell: (row) => formatRate(row.co2e_g / 1000),
            },
            {
              key: 'at',
              header: columns.at,
              sort: (row) => parseTime(row.recorded_at)?.getTime(),
              cell: (row) => <RelativeTime at={row.recorded_at} />,
            },
          ]}
        />
      )}
    </QueryPanel>
  );
}

export function VersionsPanel({
  model,
  versions,
  onCompare,
}: {
  model: string;
  versions: readonly Version[];
  onCompare: (version: string) => void;
}) {
  const names = words.versions;
  const metric = Object.keys(versions[0]?.metrics ?? {})
    .sort()
    .slice(0, 3);
  return (
    <Panel title={names.title} note={versions.length} flush>
      <DataTable
        label={names.title}
        rows={versions}
        rowKey={(row) => String(row.version)}
        rowName={(row) => `v${row.version}`}
        sort="-version"
        onOpen={(row) => onCompare(String(row.version))}
        empty={<Blank icon="cube" title={names.none} />}
        columns={[
          {
            key: 'version',
            header: names.version,
            isName: true,
            sort: (row) => row.version,
            cell: (row) => <b className="med">v{row.version}</b>,
          },
          {
            key: 'aliases',
            header: names.aliases,
            cell: (row) => (
              <span className="row">
                {row.aliases.map((alias) => (
                  <AliasChip key={alias} alias={alias} version={row.version} />
                ))}
              </span>
            ),
          },
          ...metric.map((name) => ({
            key: name,
            header: name,
            numeric: true,
            sort: (row: Version) => row.metrics?.[name],
            cell: (row: Version) =>
              row.metrics?.[name] === undefined ? <NotMeasured /> : formatScore(row.metrics[name]),
          })),
          {
            key: 'data',
            header: names.data,
            className: 'drop-m',
            cell: (row) =>
              row.tags?.data_origin ? (
                <Chip kind={row.tags.data_origin === 'generated' ? 'synth' : undefined}>
                  {names.origin[row.tags.data_origin] ?? row.tags.data_origin}
                </Chip>
              ) : (
                <span className="faint">–</span>
              ),
          },
          {
            key: 'run',
            header: names.run,
            drop: 'phone',
            cell: (row) => <CopyText value={row.runId} shown={shortenHash(row.runId)} />,
          },
          {
            key: 'created',
            header: names.created,
            sort: (row) => parseTime(row.createdAt)?.getTime(),
            cell: (row) => <RelativeTime at={row.createdAt} />,
          },
          {
            key: 'act',
            header: names.review,
            quietHeader: true,
            drop: 'phone',
            cell: (row) =>
              row.aliases.includes('Production') ? null : (
                <Link
                  className="link small"
                  to="/models/$name/promote"
                  params={{ name: model }}
                  search={{ version: String(row.version) }}
                >
                  {names.review}
                </Link>
              ),
          },
        ]}
      />
    </Panel>
  );
}

interface Traffic {
  configured: boolean;
  rules: Record<string, number>;
  updated_at?: string | null;
}

export function TrafficPanel({
  traffic,
  versions,
  onEdit,
  refusal,
}: {
  traffic: Traffic | undefined;
  versions: readonly Version[];
  onEdit: () => void;
  refusal?: string;
}) {
  const names = words.traffic;
  return (
    <Panel
      title={names.title}
      note={names.note}
      partial={traffic ? undefined : ['traffic']}
      actions={
        <Button disabledReason={refusal} onPress={onEdit}>
          {names.edit}
        </Button>
      }
    >
      {!traffic ? (
        <NotMeasured />
      ) : !traffic.configured || Object.keys(traffic.rules).length === 0 ? (
        <p className="muted">{names.none}</p>
      ) : (
        <>
          <ul className="split-bars">
            {Object.entries(traffic.rules).map(([alias, share]) => (
              <li key={alias}>
                <span className="med">{alias}</span>
                <span className="faint">
                  {versions.find((version) => version.aliases.includes(alias))
                    ? `v${versions.find((version) => version.aliases.includes(alias))?.version}`
                    : '–'}
                </span>
                <span className="meter">
                  <i className={alias === 'Production' ? 'plain' : 'running'} style={{ width: `${share}%` }} />
                </span>
                <span className="num">{formatPercent(share)}</span>
              </li>
            ))}
          </ul>
          {traffic.updated_at && (
            <p className="small faint mt">
              {names.updated} <RelativeTime at={traffic.updated_at} />
            </p>
          )}
        </>
      )}
    </Panel>
  );
}

export function TrafficSeries({
  model,
  metric,
  height = 180,
}: {
  model: string;
  metric: 'requests' | 'latency_p95';
  height?: number;
}) {
  const query = useQuery(seriesQuery(model, metric, useRange()));
  const title = metric === 'requests' ? words.traffic.requests : words.traffic.latency;
  return (
    <QueryPanel title={title} query={query} skeleton="chart">
      {(data) => (
        <Chart
          label={metric === 'requests' ? words.traffic.label(model) : words.traffic.latencyLabel(model)}
          points={data.points.map(([at, value]): Point => [at ?? 0, value ?? null])}
          unit={data.unit}
          format={formatRate}
          kind={metric === 'requests' ? 'area' : 'line'}
          fromZero
          height={height}
        />
      )}
    </QueryPanel>
  );
}

/** The model's promotion policy and what the ledger says about it. */
export function GovernancePanels({ model }: { model: string }) {
  const policies = useQuery(policiesQuery);
  const activity = useQuery(activityQuery('model', model));
  const names = words.governance;
  return (
    <>
      <QueryPanel
        title={names.policy}
        query={policies}
        empty={(data) =>
          data.items.some((each) => each.model.toLowerCase() === model.toLowerCase()) ? undefined : (
            <Blank
              icon="shield"
              title={names.noPolicy}
              actions={<ButtonLink to="/governance">{text.shell.nav.governance}</ButtonLink>}
            >
              {names.noPolicyHint}
            </Blank>
          )
        }
      >
        {(data) => {
          const policy = data.items.find((each) => each.model.toLowerCase() === model.toLowerCase());
          return (
            policy && (
              <Facts
                two
                facts={[
                  [
                    names.rule,
                    <b className="med">{`${policy.metric} ${names.ops[policy.operator] ?? policy.operator} ${formatScore(policy.threshold)}`}</b>,
                  ],
                  [names.moves, `${policy.from_alias} → ${policy.to_alias}`],
                  [names.enabled, policy.enabled ? names.yes : names.no],
                  [names.needsEval, policy.require_eval ? names.yes : names.no],
                  [names.approval, names.modes[policy.approval_mode] ?? policy.approval_mode],
                  [
                    names.changed,
                    <>
                      {policy.updated_by}, <RelativeTime at={policy.updated_at} />
                    </>,
                  ],
                ]}
              />
            )
          );
        }}
      </QueryPanel>
      <QueryPanel
        title={names.activity}
        query={activity}
        flush
        empty={(data) => (data.activity.length === 0 ? <Blank icon="list" title={names.activityNone} /> : undefined)}
      >
        {(data) => (
          <Feed
            label={names.activity}
            entries={[...data.activity]
              .reverse()
              .slice(0, 30)
              .map((entry, i) => ({
                key: `${entry.ts}${i}`,
                icon: entry.kind === 'comment' ? 'chat' : 'lock',
                what: entry.detail,
                who: entry.actor,
                at: parseTime(entry.ts) ?? new Date(0),
              }))}
          />
        )}
      </QueryPanel>
    </>
  );
}
