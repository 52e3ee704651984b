import { useState } from 'react';
import type { components } from '../../api/gen/controlplane';
import { budgetsQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { TextField } from '../../components/field';
import { MenuButton } from '../../components/menu';
import { QueryPanel } from '../../components/panel';
import { Meter } from '../../components/stat';
import { Impossible, State } from '../../components/state';
import { DataTable, type Column } from '../../components/table';
import { formatAmount, formatRate, formatShare } from '../../format/numbers';
import { useMay } from '../../state/auth';
import { text } from '../../text';
import { budgetBody, standingOf } from './standing';
import { useQuery } from '../../state/query';

const words = text.finops.budgets;
type Budget = components['schemas']['Budget'];

const standingWords = { critical: words.over, warn: words.near, ok: words.within, unknown: words.noLimit } as const;

const columns: Column<Budget>[] = [
  {
    key: 'state',
    header: words.state,
    isHealth: true,
    sort: (row) => -(row.costRatio ?? (row.overBudget ? Infinity : -1)),
    cell: (row) => {
      const standing = standingOf(row);
      return standing === 'unknown' ? (
        <span className="faint">{words.noLimit}</span>
      ) : (
        <State kind={standing}>{standingWords[standing]}</State>
      );
    },
  },
  { key: 'project', header: words.project, isName: true, sort: (row) => row.project, cell: (row) => row.project },
  {
    key: 'used',
    header: words.used,
    className: 'meter-cell hide-s',
    drop: 'medium',
    cell: (row) =>
      row.costRatio === null ? (
        <Impossible />
      ) : (
        <Meter
          value={row.costRatio}
          label={formatShare(row.costRatio)}
          kind={(() => {
            const standing = standingOf(row);
            return standing === 'unknown' ? 'plain' : standing;
          })()}
        />
      ),
  },
  {
    key: 'spent',
    header: words.spent,
    numeric: true,
    sort: (row) => row.consumedCostUsd,
    cell: (row) => formatAmount(row.consumedCostUsd),
  },
  {
    key: 'budget',
    header: words.budget,
    numeric: true,
    sort: (row) => row.costBudget,
    cell: (row) =>
      row.costBudget === null ? <span className="faint">{words.noBudget}</span> : formatAmount(row.costBudget),
  },
  {
    key: 'gpu',
    header: words.gpu,
    numeric: true,
    drop: 'medium',
    sort: (row) => row.consumedGpuHours,
    cell: (row) =>
      row.gpuHoursBudget === null
        ? formatRate(row.consumedGpuHours)
        : words.of(formatRate(row.consumedGpuHours), formatRate(row.gpuHoursBudget)),
  },
];

/** What each project may spend this month, and what it has spent. */
export function BudgetPanel() {
  const query = useQuery(budgetsQuery);
  const mayWrite = useMay('proxy.write');
  const [editing, setEditing] = useState<Budget | 'new'>();
  const [removing, setRemoving] = useState<Budget>();
  const setOne = (
    <Button small onPress={() => setEditing('new')}>
      {words.set}
    </Button>
  );
  const acts: Column<Budget> = {
    key: 'acts',
    header: words.actions,
    quietHeader: true,
    className: 'acts-cell',
    cell: (row) => (
      <MenuButton
        button={{ icon: 'more', iconOnly: true, kind: 'ghost', small: true, label: `${words.actions}: ${row.project}` }}
        label={words.actions}
        entries={[
          { id: 'change', label: words.change },
          { id: 'remove', label: words.remove, danger: true },
        ]}
        onAction={(id) => (id === 'change' ? setEditing(row) : setRemoving(row))}
      />
    ),
  };
  return (
    <>
      <QueryPanel
        id="budgets"
        title={words.title}
        query={query}
        flush
        skeleton="table"
        note={words.note}
        actions={(data) => (mayWrite && data.items.length ? setOne : undefined)}
        empty={(data, of) =>
          data.items.length === 0 ? (
            <Blank of={of} icon="cost" title={words.none} actions={mayWrite ? setOne : undefined}>
              {words.noneHint} {!mayWrite && words.noneViewer}
            </Blank>
          ) : undefined
        }
      >
        {(data) => (
          <DataTable
            label={words.title}
            rows={data.items}
            columns={mayWrite ? [...columns, acts] : columns}
            rowKey={(row) => row.project}
            rowName={(row) => row.project}
            sort="state"
          />
        )}
      </QueryPanel>
      {editing && (
        <BudgetDialog budget={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />
      )}
      {removing && (
        <ActDialog
          title={words.removeTitle(removing.project)}
          isOpen
          danger
          onClose={() => setRemoving(undefined)}
          act={() => ({
            title: words.removeTitle(removing.project),
            method: 'DELETE',
            path: `/api/proxy/control_plane/budgets/${encodeURIComponent(removing.project)}`,
            confirm: words.removeConfirm,
            done: words.removeDone(removing.project),
            topics: ['finops', 'alerts', 'governance'],
          })}
        >
          <p className="muted">{words.removeExplain}</p>
        </ActDialog>
      )}
    </>
  );
}

function BudgetDialog({ budget, onClose }: { budget: Budget | undefined; onClose: () => void }) {
  const [project, setProject] = useState(budget?.project ?? '');
  const [cost, setCost] = useState(budget?.costBudget?.toString() ?? '');
  const [hours, setHours] = useState(budget?.gpuHoursBudget?.toString() ?? '');
  const body = budgetBody(cost, hours);
  const name = project.trim();
  return (
    <ActDialog
      title={words.setTitle(name)}
      isOpen
      onClose={onClose}
      blocked={name === '' ? words.needProject : body === undefined ? words.needNumber : undefined}
      act={() => ({
        title: words.setTitle(name),
        method: 'PUT',
        path: `/api/proxy/control_plane/budgets/${encodeURIComponent(name)}`,
        body,
        confirm: words.setConfirm,
        done: words.setDone(name),
        topics: ['finops', 'alerts', 'governance'],
      })}
    >
      <p className="muted">{words.explain}</p>
      {!budget && (
        <TextField
          label={words.project}
          hint={words.projectHint}
          value={project}
          onChange={setProject}
          maxLength={128}
          isRequired
          autoFocus
        />
      )}
      <TextField label={words.costLimit} hint={words.costHint} inputMode="decimal" value={cost} onChange={setCost} />
      <TextField label={words.gpuLimit} hint={words.costHint} inputMode="decimal" value={hours} onChange={setHours} />
    </ActDialog>
  );
}
