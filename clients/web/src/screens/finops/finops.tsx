import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { components as ControlPlane } from '../../api/gen/controlplane';
import type { components as Dashboard } from '../../api/gen/dashboard';
import { carbonQuery, costSummaryQuery, finopsQuery } from '../../api/queries';
import { Blank, CopyText } from '../../components/blank';
import { PageHead } from '../../components/page';
import { QueryPanel } from '../../components/panel';
import { Segments } from '../../components/seg';
import { Figures, Meter } from '../../components/stat';
import { DataTable, type Column } from '../../components/table';
import { formatAmount, formatCount, formatRate, formatShare } from '../../format/numbers';
import { join, mapFigure, orElse, read } from '../../state/figure';
import { text } from '../../text';
import { FreezeButton } from '../snapshot/freeze';
import { BudgetPanel } from './budgets';
import { useQuery } from '../../state/query';

const words = text.finops;
type View = Dashboard['schemas']['FinOpsView'];
type CostRow = ControlPlane['schemas']['CostRow'];
type CarbonRow = ControlPlane['schemas']['CarbonRow'];

export function FinopsScreen() {
  const query = useQuery(finopsQuery);
  const w = words.figures;
  return (
    <>
      <PageHead
        title={words.title}
        sub={words.sub}
        actions={<FreezeButton title={words.title} path="/finops" data={query.data} />}
      />
      <div className="stack">
        <QueryPanel title={w.title} query={query} skeleton="figures">
          {() => {
            // Without a recorded job nothing was measured: that is not a cost of 0.
            const recorded = <V,>(of: (view: View) => V | null | undefined) =>
              read(query, (view) => (view.cost?.rows.length ? of(view) : undefined), ['cost']);
            const cost = recorded((view) => view.cost);
            const carbon = join(
              cost,
              read(query, (view) => view.carbon, ['carbon']),
              (_, each) => each,
            );
            return (
              <Figures
                stats={[
                  {
                    label: w.cost,
                    link: { to: '/finops', hash: 'costs' },
                    value: mapFigure(cost, (each) => formatAmount(each.total_cost_usd)),
                    unit: w.usd,
                    note: w.costNote,
                  },
                  {
                    label: w.gpuHours,
                    link: { to: '/finops', hash: 'costs' },
                    value: mapFigure(cost, (each) => formatRate(each.total_gpu_hours)),
                    unit: w.gpuUnit,
                    note: w.costNote,
                  },
                  {
                    label: w.month,
                    link: { to: '/finops', hash: 'budgets' },
                    value: mapFigure(
                      read(query, (view) => view.budget?.consumed_cost_usd, ['budget']),
                      formatAmount,
                    ),
                    unit: w.usd,
                    note: w.monthNote,
                  },
                  {
                    label: w.perRun,
                    link: { to: '/runs' },
                    value: mapFigure(
                      recorded((view) => view.unitEconomics?.costPerTrainingRun),
                      formatAmount,
                    ),
                    unit: w.usd,
                    note: w.perRunNote,
                  },
                  {
                    label: w.energy,
                    link: { to: '/finops', hash: 'carbon' },
                    value: mapFigure(carbon, (each) => formatRate(each.totals.kwh)),
                    unit: w.energyUnit,
                    note: <a href="#method">{w.energyNote}</a>,
                  },
                  {
                    label: w.carbon,
                    link: { to: '/finops', hash: 'carbon' },
                    value: mapFigure(carbon, (each) => formatRate(each.co2e_kg)),
                    unit: carbon.kind === 'measured' ? w.carbonUnit(formatShare(carbon.value.uncertainty)) : undefined,
                    note: <a href="#method">{w.carbonNote}</a>,
                  },
                ]}
              />
            );
          }}
        </QueryPanel>
        <BudgetPanel />
        <div className="grid cols-2">
          <CostPanel />
          <CarbonPanel />
        </div>
      </div>
    </>
  );
}

function CostPanel() {
  const [by, setBy] = useState<'model' | 'project'>('model');
  const query = useQuery(costSummaryQuery(by));
  const w = words.cost;
  const total = orElse(
    read(query, (data) => data.cost.total_cost_usd),
    NaN,
  );
  const columns: Column<CostRow>[] = [
    {
      key: 'key',
      header: w.key[by],
      isName: true,
      sort: (row) => row.key,
      cell: (row) =>
        by === 'model' ? (
          <Link to="/models/$name" params={{ name: row.key }} search={{ tab: 'cost' }}>
            {row.key}
          </Link>
        ) : (
          row.key || <span className="faint">{w.noProject}</span>
        ),
    },
    {
      key: 'share',
      header: w.share,
      drop: 'medium',
      className: 'meter-cell hide-s',
      cell: (row) => (
        <Meter
          value={total > 0 ? row.costUsd / total : undefined}
          label={total > 0 ? formatShare(row.costUsd / total) : text.common.notMeasured}
          kind="plain"
        />
      ),
    },
    { key: 'runs', header: w.runs, numeric: true, sort: (row) => row.runs, cell: (row) => formatCount(row.runs) },
    {
      key: 'gpu',
      header: w.gpuHours,
      numeric: true,
      sort: (row) => row.gpuHours,
      cell: (row) => formatAmount(row.gpuHours),
    },
    { key: 'usd', header: w.usd, numeric: true, sort: (row) => row.costUsd, cell: (row) => formatAmount(row.costUsd) },
  ];
  return (
    <QueryPanel
      id="costs"
      title={w.title}
      query={query}
      flush
      skeleton="table"
      actions={
        <Segments
          label={w.by}
          value={by}
          onChange={setBy}
          segments={[
            { value: 'model', label: w.model },
            { value: 'project', label: w.project },
          ]}
        />
      }
      empty={(data, of) =>
        data.cost.rows.length === 0 ? (
          <Blank
            of={of}
            icon="cost"
            title={w.none}
            actions={
              <Link className="btn" to="/documents" search={{ path: 'docs/costs.md' }}>
                {w.docs}
              </Link>
            }
          >
            {w.noneHint}
            <span className="db mt-s">
              <CopyText value={w.command} />
            </span>
          </Blank>
        ) : undefined
      }
    >
      {(data) => (
        <DataTable
          label={w.title}
          rows={data.cost.rows}
          columns={columns}
          rowKey={(row) => row.key}
          rowName={(row) => row.key}
          sort="-usd"
        />
      )}
    </QueryPanel>
  );
}

const carbonColumns: Column<CarbonRow>[] = [
  {
    key: 'model',
    header: words.carbon.model,
    isName: true,
    sort: (row) => row.model,
    cell: (row) => (
      <Link to="/models/$name" params={{ name: row.model }}>
        {row.model}
      </Link>
    ),
  },
  { key: 'kwh', header: words.carbon.kwh, numeric: true, sort: (row) => row.kwh, cell: (row) => formatAmount(row.kwh) },
  {
    key: 'co2',
    header: words.carbon.co2,
    numeric: true,
    sort: (row) => row.co2e_g,
    cell: (row) => formatAmount(row.co2e_g / 1000),
  },
];

function CarbonPanel() {
  const query = useQuery(carbonQuery);
  const w = words.carbon;
  return (
    <div id="method">
      <QueryPanel
        id="carbon"
        title={w.title}
        query={query}
        flush
        note={(data) => w.uncertain(formatShare(data.uncertainty))}
        footer={(data) => (
          <details className="method">
            <summary className="link">{w.method}</summary>
            <p className="small muted">
              {data.methodology} {w.scope}
            </p>
          </details>
        )}
      >
        {(data, of) =>
          data.byModel.length === 0 ? (
            <Blank of={of} icon="leaf" title={w.none}>
              {w.noneHint}
            </Blank>
          ) : (
            <DataTable
              label={w.title}
              rows={data.byModel}
              columns={carbonColumns}
              rowKey={(row) => row.model}
              rowName={(row) => row.model}
              sort="-co2"
            />
          )
        }
      </QueryPanel>
    </div>
  );
}
