import { modelCostsQuery, seriesQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { Chip } from '../../components/chip';
import { Chart, type Point } from '../../components/chart';
import { QueryPanel } from '../../components/panel';
import { DataTable } from '../../components/table';
import { RelativeTime } from '../../components/time';
import { formatAmount, formatMoney, formatRate, formatScore } from '../../format/numbers';
import { parseTime } from '../../format/time';
import { rangeOf } from '../../state/range';
import { text } from '../../text';
import { useQuery } from '../../state/query';

const words = text.model;

/** What training cost over time: the current period in colour. */
export function CostChart({ model, height = 160 }: { model: string; height?: number }) {
  const query = useQuery(seriesQuery(model, 'cost_usd', rangeOf('90d'), 12));
  return (
    <QueryPanel
      title={words.cost.title}
      query={query}
      skeleton="chart"
      whole
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
      empty={(data, of) =>
        data.items.length === 0 ? (
          <Blank of={of} icon="cost" title={words.cost.none}>
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
