import { useState } from 'react';
import type { components } from '../../api/gen/dashboard';
import { sendJSON } from '../../api/client';
import { channelsQuery } from '../../api/queries';
import { ActDialog } from '../../components/act-dialog';
import { Blank, CopyText, Message, explainProblem } from '../../components/blank';
import { Button } from '../../components/button';
import { Dialog } from '../../components/dialog';
import { Select, Switch, TextArea, TextField } from '../../components/field';
import { ButtonLink } from '../../components/link';
import { MenuButton } from '../../components/menu';
import { Note } from '../../components/note';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { State } from '../../components/state';
import { DataTable, type Column } from '../../components/table';
import { RelativeTime } from '../../components/time';
import { notify } from '../../components/toast';
import type { Act } from '../../state/acts';
import { useMe } from '../../state/auth';
import { read } from '../../state/figure';
import { invalidateTopics } from '../../state/live';
import { useQuery } from '../../state/query';
import { text } from '../../text';

const words = text.notifications;
type Channel = components['schemas']['Channel'];
type Channels = components['schemas']['Channels'];
type Event = components['schemas']['NotificationEvent'];
type Kind = components['schemas']['ChannelKind'];
const root = '/api/v1/notifications/channels';
const topics = ['notifications', 'audit', 'governance'] as const;
const allEvents = Object.keys(words.events) as Event[];
const kinds = Object.keys(words.kinds) as Kind[];

/** A channel fails if its last attempt did. */
function isFailing({ last_error_at, last_success_at }: Channel): boolean {
  return last_error_at !== undefined && (last_success_at === undefined || last_success_at < last_error_at);
}

function describeTarget(channel: Channel): string {
  return `${words.kinds[channel.kind]}, ${channel.host ?? channel.recipients?.join(', ') ?? ''}`;
}

const columns: Column<Channel>[] = [
  {
    key: 'state',
    header: words.columns.state,
    isHealth: true,
    sort: (row) => Number(isFailing(row)),
    cell: (row) => (
      <>
        <State kind={isFailing(row) ? 'critical' : row.enabled && row.last_success_at ? 'ok' : 'unknown'}>
          {!row.enabled ? words.off : isFailing(row) ? words.failing : row.last_success_at ? words.on : words.untried}
        </State>
        {row.waiting > 0 && <span className="small muted db">{words.waiting(row.waiting)}</span>}
        {row.abandoned > 0 && <span className="small muted db">{words.abandoned(row.abandoned)}</span>}
      </>
    ),
  },
  {
    key: 'name',
    header: words.columns.name,
    isName: true,
    sort: (row) => row.name,
    cell: (row) => (
      <>
        <span className="med">{row.name}</span>
        <span className="why sub-d">{describeTarget(row)}</span>
      </>
    ),
  },
  {
    key: 'events',
    header: words.columns.events,
    drop: 'medium',
    cell: (row) => <span className="muted">{row.events.map((event) => words.events[event]).join(', ')}</span>,
  },
  {
    key: 'success',
    header: words.columns.success,
    sort: (row) => row.last_success_at,
    cell: (row) =>
      row.last_success_at ? <RelativeTime at={row.last_success_at} /> : <span className="faint">{words.never}</span>,
  },
  {
    key: 'error',
    header: words.columns.error,
    sort: (row) => row.last_error_at,
    cell: (row) =>
      row.last_error_at ? (
        <>
          <RelativeTime at={row.last_error_at} />
          <span className="small muted db">{row.last_error}</span>
        </>
      ) : (
        <span className="faint">{words.never}</span>
      ),
  },
];

async function sendTest(channel: Channel): Promise<void> {
  try {
    const outcome = await sendJSON<components['schemas']['ChannelTest']>('POST', `${root}/${channel.id}/test`);
    if (outcome.delivered) notify(words.tested(channel.name));
    else notify(words.testFailed(channel.name, outcome.error ?? ''), 'critical');
  } catch (error) {
    const { title, hint } = explainProblem(error);
    notify(text.shell.failed(`${title}. ${hint}`), 'critical');
  }
  invalidateTopics(['notifications']);
}

/** Where notices go besides the inbox, and whether they arrive there. */
export function NotificationsScreen() {
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
          />
        </Panel>
      </>
    );
  return <ChannelTable />;
}

type Open = { act: 'add' } | { act: 'change' | 'remove'; channel: Channel };

function ChannelTable() {
  const query = useQuery(channelsQuery);
  const [open, setOpen] = useState<Open>();
  const [secret, setSecret] = useState<string>();
  const close = (): void => setOpen(undefined);
  const acts: Column<Channel> = {
    key: 'acts',
    header: words.columns.acts,
    quietHeader: true,
    className: 'acts-cell',
    cell: (channel) => (
      <MenuButton
        button={{ icon: 'more', iconOnly: true, kind: 'ghost', small: true, label: words.actsOf(channel.name) }}
        label={words.actsOf(channel.name)}
        entries={[
          { id: 'test', label: words.test },
          { id: 'change', label: words.edit },
          { id: 'remove', label: words.remove, danger: true },
        ]}
        onAction={(id) =>
          id === 'test' ? void sendTest(channel) : setOpen({ act: id as 'change' | 'remove', channel })
        }
      />
    ),
  };
  return (
    <>
      <PageHead
        title={words.title}
        sub={words.sub}
        actions={
          <Button kind="primary" icon="plus" onPress={() => setOpen({ act: 'add' })}>
            {words.add}
          </Button>
        }
      />
      <QueryPanel
        title={words.table}
        query={query}
        flush
        skeleton="table"
        note={(data) => data.channels.length}
        empty={(data) =>
          data.channels.length === 0 ? (
            <Blank of={read(query, (answer) => answer.channels)} icon="send" title={words.none}>
              {words.noneHint}
            </Blank>
          ) : undefined
        }
      >
        {(data) => (
          <DataTable
            label={words.table}
            rows={data.channels}
            columns={[...columns, acts]}
            rowKey={(row) => row.id}
            rowName={(row) => row.name}
          />
        )}
      </QueryPanel>
      {query.data && open && open.act !== 'remove' && (
        <ChannelDialog
          settings={query.data}
          channel={open.act === 'change' ? open.channel : undefined}
          onClose={close}
          onSecret={setSecret}
        />
      )}
      {open?.act === 'remove' && <RemoveDialog channel={open.channel} onClose={close} />}
      <Dialog
        title={words.secret.title}
        isOpen={secret !== undefined}
        onClose={() => setSecret(undefined)}
        alert
        footer={
          <Button kind="primary" onPress={() => setSecret(undefined)}>
            {words.secret.close}
          </Button>
        }
      >
        <Note kind="warn">{words.secret.hint}</Note>
        <CopyText value={secret ?? ''} />
      </Dialog>
    </>
  );
}

interface ChannelDialogProps {
  settings: Channels;
  /** Absent: a new one. */
  channel?: Channel;
  onClose: () => void;
  onSecret: (secret: string) => void;
}

function ChannelDialog({ settings, channel, onClose, onSecret }: ChannelDialogProps) {
  const w = words.dialog;
  const [kind, setKind] = useState<Kind>(channel?.kind ?? 'webhook');
  const [name, setName] = useState(channel?.name ?? '');
  const [url, setUrl] = useState('');
  const [recipients, setRecipients] = useState(channel?.recipients?.join('\n') ?? '');
  const [events, setEvents] = useState<readonly Event[]>(channel?.events ?? allEvents);
  const [enabled, setEnabled] = useState(channel?.enabled ?? true);
  const addresses = recipients.split(/[\s,]+/).filter(Boolean);
  const target = kind === 'email' ? { recipients: addresses } : url.trim() !== '' ? { url: url.trim() } : {};
  const hasTarget = kind === 'email' ? addresses.length > 0 : url.trim() !== '' || channel !== undefined;
  const act = (): Act => ({
    title: channel ? w.change(channel.name) : w.add,
    method: channel ? 'PUT' : 'POST',
    path: channel ? `${root}/${channel.id}` : root,
    body: { kind, name: name.trim(), events, enabled, ...target },
    secrets: kind === 'email' || url.trim() === '' ? [] : ['url'],
    confirm: channel ? w.confirmChange : w.confirmAdd,
    done: channel ? w.changed(name.trim()) : w.added(name.trim()),
    topics,
  });
  return (
    <ActDialog<components['schemas']['ChannelCreated']>
      title={channel ? w.change(channel.name) : w.add}
      isOpen
      onClose={onClose}
      act={act}
      onDone={(made) => made.secret && onSecret(made.secret)}
      blocked={name.trim() === '' || events.length === 0 || !hasTarget ? w.incomplete : undefined}
    >
      {!channel && (
        <Select
          label={w.kind}
          options={kinds.map((id) => ({ id, label: words.kinds[id] }))}
          value={kind}
          onChange={(id) => setKind(id as Kind)}
        />
      )}
      <p className="small muted">{words.kindHints[kind]}</p>
      {kind === 'email' && !settings.mail_configured && <Note kind="warn">{w.noMail}</Note>}
      {kind !== 'email' && settings.allowed_hosts.length === 0 && <Note kind="warn">{w.noHosts}</Note>}
      <TextField label={w.name} value={name} onChange={setName} maxLength={80} isRequired />
      {kind === 'email' ? (
        <TextArea label={w.recipients} hint={w.recipientsHint} value={recipients} onChange={setRecipients} isRequired />
      ) : (
        <TextField
          label={w.url}
          hint={channel ? w.keepUrl : w.urlHint(settings.allowed_hosts.join(', '))}
          value={url}
          onChange={setUrl}
          autoComplete="off"
          isRequired={!channel}
        />
      )}
      <fieldset className="choices">
        <legend>{w.events}</legend>
        {allEvents.map((event) => (
          <Switch
            key={event}
            label={words.events[event]}
            isSelected={events.includes(event)}
            onChange={(on) => setEvents(allEvents.filter((each) => (each === event ? on : events.includes(each))))}
          />
        ))}
      </fieldset>
      <Switch label={w.enabled} isSelected={enabled} onChange={setEnabled} />
    </ActDialog>
  );
}

function RemoveDialog({ channel, onClose }: { channel: Channel; onClose: () => void }) {
  const w = words.dialog;
  return (
    <ActDialog
      title={w.remove(channel.name)}
      isOpen
      onClose={onClose}
      danger
      act={() => ({
        title: w.remove(channel.name),
        method: 'DELETE',
        path: `${root}/${channel.id}`,
        confirm: w.confirmRemove,
        done: w.removed(channel.name),
        topics,
      })}
    >
      <p>{w.removeHint(channel.waiting)}</p>
    </ActDialog>
  );
}
