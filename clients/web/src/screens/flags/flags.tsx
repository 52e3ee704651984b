import { useState } from 'react';
import type { components } from '../../api/gen/dashboard';
import { flagDefinitionsQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { Blank, Message } from '../../components/blank';
import { Chip } from '../../components/chip';
import { ButtonLink } from '../../components/link';
import { MenuButton } from '../../components/menu';
import { Note } from '../../components/note';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { DataTable, type Column } from '../../components/table';
import { RelativeTime } from '../../components/time';
import { formatPercent } from '../../format/numbers';
import { useMay, useMe } from '../../state/auth';
import type { Act } from '../../state/acts';
import { text } from '../../text';
import { useQuery } from '../../state/query';

const words = text.flags;
type Flag = components['schemas']['AdminFlag'];
type Change = 'on' | 'off' | 'clear';

/** Describes who gets a flag; without targeting that is everyone. */
function describeTargeting({ tenants, roles, percentage }: Flag['targeting']): string {
  const parts = [
    roles.length > 0 && words.roles(roles.join(', ')),
    tenants.length > 0 && words.tenants(tenants.join(', ')),
    percentage < 100 && words.share(formatPercent(percentage)),
  ].filter(Boolean);
  return parts.length ? parts.join(', ') : words.everyone;
}

const onOff = (on: boolean) => (on ? words.on : words.off);

const columns: Column<Flag>[] = [
  {
    key: 'state',
    header: words.columns.state,
    isHealth: true,
    sort: (row) => Number(row.effective),
    cell: (row) => (
      <span className={row.effective ? 'flag-state on' : 'flag-state'}>
        <i aria-hidden="true" />
        {onOff(row.effective)}
      </span>
    ),
  },
  {
    key: 'name',
    header: words.columns.name,
    isName: true,
    sort: (row) => row.name,
    cell: (row) => (
      <>
        <span className="row">
          <code className="med">{row.name}</code>
          {row.tags.map((tag) => (
            <Chip key={tag}>{words.tags[tag] ?? tag}</Chip>
          ))}
        </span>
        <span className="why sub-d">{row.description}</span>
      </>
    ),
  },
  {
    key: 'default',
    header: words.columns.standard,
    sort: (row) => Number(row.default),
    cell: (row) => onOff(row.default),
  },
  {
    key: 'override',
    header: words.columns.override,
    sort: (row) => (row.override === null ? undefined : Number(row.override)),
    cell: (row) =>
      row.override === null ? (
        <span className="faint">{words.noOverride}</span>
      ) : (
        <b className="med">{onOff(row.override)}</b>
      ),
  },
  {
    key: 'targeting',
    header: words.columns.targeting,
    drop: 'medium',
    cell: (row) => <span className="muted">{describeTargeting(row.targeting)}</span>,
  },
  {
    key: 'changed',
    header: words.columns.changed,
    sort: (row) => row.updated_at,
    cell: (row) =>
      row.updated_at ? (
        <span className="muted">
          <RelativeTime at={row.updated_at} /> {row.updated_by && words.by(row.updated_by)}
        </span>
      ) : (
        <span className="faint">{text.common.never}</span>
      ),
  },
];

export function FlagsScreen() {
  const me = useMe();
  if (me && me.role !== 'admin')
    return (
      <>
        <PageHead title={words.title} />
        <Panel title={words.title} flush>
          <Message
            icon="lock"
            title={words.adminsOnly}
            actions={<ButtonLink to="/">{text.shell.toOverview}</ButtonLink>}
          >
            {words.adminsOnlyHint}
          </Message>
        </Panel>
      </>
    );
  return <FlagTable />;
}

function FlagTable() {
  const query = useQuery(flagDefinitionsQuery);
  const mayWrite = useMay('flag.write');
  const [act, setAct] = useState<{ flag: Flag; change: Change }>();
  const acts: Column<Flag> = {
    key: 'acts',
    header: words.columns.acts,
    quietHeader: true,
    className: 'acts-cell',
    cell: (flag) => {
      const now = flag.override ?? flag.default;
      return (
        <MenuButton
          button={{ icon: 'more', iconOnly: true, kind: 'ghost', small: true, label: words.actsOf(flag.name) }}
          label={words.actsOf(flag.name)}
          entries={[
            ...(now ? [] : [{ id: 'on', label: words.switchOn }]),
            ...(now ? [{ id: 'off', label: words.switchOff, danger: flag.tags.includes('kill-switch') }] : []),
            ...(flag.override === null ? [] : [{ id: 'clear', label: words.useDefault }]),
          ]}
          onAction={(id) => setAct({ flag, change: id as Change })}
        />
      );
    },
  };
  return (
    <>
      <PageHead title={words.title} sub={words.sub} />
      <QueryPanel
        title={words.table}
        query={query}
        flush
        skeleton="table"
        note={(data) => data.count}
        empty={(data, of) => (data.flags.length === 0 ? <Blank of={of} icon="flag" title={words.none} /> : undefined)}
      >
        {(data) => (
          <DataTable
            label={words.table}
            rows={data.flags}
            columns={mayWrite ? [...columns, acts] : columns}
            rowKey={(row) => row.name}
            rowName={(row) => row.name}
          />
        )}
      </QueryPanel>
      {act && <FlagDialog {...act} onClose={() => setAct(undefined)} />}
    </>
  );
}

function FlagDialog({ flag, change, onClose }: { flag: Flag; change: Change; onClose: () => void }) {
  const w = words.dialog;
  const path = `/api/v1/flags/${encodeURIComponent(flag.name)}`;
  const topics = ['flags', 'audit', 'governance'] as const;
  const plans: Record<Change, Act> = {
    on: {
      title: w.on(flag.name),
      method: 'POST',
      path,
      body: { enabled: true },
      confirm: w.confirmOn,
      done: w.doneOn(flag.name),
      topics,
    },
    off: {
      title: w.off(flag.name),
      method: 'POST',
      path,
      body: { enabled: false },
      confirm: w.confirmOff,
      done: w.doneOff(flag.name),
      topics,
    },
    clear: {
      title: w.clear(flag.name),
      method: 'DELETE',
      path,
      confirm: w.confirmClear,
      done: w.doneClear(flag.name),
      topics,
    },
  };
  const goesOff = change === 'off' || (change === 'clear' && !flag.default);
  return (
    <ActDialog
      title={plans[change].title}
      isOpen
      onClose={onClose}
      danger={change === 'off' && flag.tags.includes('kill-switch')}
      act={() => plans[change]}
    >
      <p>{w.explain(flag.description)}</p>
      <p className="muted">
        {change === 'on'
          ? w.effectOn
          : change === 'off'
            ? w.effectOff
            : w.effectClear(onOff(flag.default).toLowerCase())}
      </p>
      {goesOff && flag.tags.includes('kill-switch') && <Note kind="warn">{w.kill}</Note>}
    </ActDialog>
  );
}
