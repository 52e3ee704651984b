import { useNavigate } from '@tanstack/react-router';
import { Dialog, DialogTrigger, GridList, GridListItem, Heading, Popover } from 'react-aria-components';
import type { components } from '../api/gen/dashboard';
import { sendJSON } from '../api/client';
import { inboxQuery } from '../api/queries';
import { Blank, ErrorBlank, explainProblem } from '../components/blank';
import { Button } from '../components/button';
import { Icon, type IconName } from '../components/icon';
import { Skeleton } from '../components/skeleton';
import { RelativeTime } from '../components/time';
import { notify } from '../components/toast';
import { orElse, read } from '../state/figure';
import { invalidateTopics } from '../state/live';
import { useQuery } from '../state/query';
import { text } from '../text';

const words = text.inbox;
type Notice = components['schemas']['Notice'];

const noNotices: readonly Notice[] = [];

const icons: Record<Notice['kind'], IconName> = { mention: 'user', approval: 'approve', alert: 'bell' };

async function mark(path: string, body?: unknown): Promise<void> {
  try {
    await sendJSON('POST', path, body);
  } catch (error) {
    const { title, hint } = explainProblem(error);
    notify(text.shell.failed(`${title}. ${hint}`), 'critical');
  }
  invalidateTopics(['inbox']);
}

const markRead = (id: string): Promise<void> => mark(`/api/v1/inbox/${id}/read`);

/** What waits for the reader. In the list arrows move, Enter opens the page and marks its notice as read. */
export function InboxButton({ isOpen, onOpenChange }: { isOpen: boolean; onOpenChange: (open: boolean) => void }) {
  const inbox = useQuery(inboxQuery);
  const navigate = useNavigate();
  const count = read(inbox, (data) => data.unread);
  const listed = read(inbox, (data) => data.items);
  const unread = orElse(count, undefined);
  const items = orElse(listed, noNotices);
  const open = (id: string): void => {
    const notice = items.find((item) => item.id === id);
    if (!notice) return;
    if (notice.unread) void markRead(id);
    onOpenChange(false);
    void navigate({ href: notice.path } as never);
  };
  return (
    <DialogTrigger isOpen={isOpen} onOpenChange={onOpenChange}>
      <span className="inbox-button">
        <Button kind="ghost" icon="bell" iconOnly label={words.button(unread ?? 0)} aria-keyshortcuts="i" />
        {unread !== undefined && unread > 0 && (
          <span className="inbox-count" aria-hidden="true">
            {unread > 99 ? '99+' : unread}
          </span>
        )}
      </span>
      <Popover className="popover inbox-popover" placement="bottom end">
        <Dialog className="inbox-dialog">
          <header>
            <Heading slot="title" level={2}>
              {words.title}
            </Heading>
            <Button
              kind="ghost"
              small
              isDisabled={!unread}
              onPress={() => void mark('/api/v1/inbox/read-all', { until: items[0]?.at })}
            >
              {words.readAll}
            </Button>
          </header>
          {inbox.isPending ? (
            <Skeleton shape="list" rows={3} />
          ) : inbox.isError ? (
            <ErrorBlank error={inbox.error} onRetry={() => void inbox.refetch()} />
          ) : (
            <GridList
              className="notices"
              aria-label={words.title}
              autoFocus="first"
              items={items}
              onAction={(key) => open(String(key))}
              renderEmptyState={() => <Blank of={listed} level={2} icon="ok" title={words.none} />}
            >
              {(notice) => <NoticeRow notice={notice} />}
            </GridList>
          )}
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}

function NoticeRow({ notice }: { notice: Notice }) {
  const state = notice.outcome ? (words.outcomes[notice.outcome] ?? notice.outcome) : notice.unread ? words.unread : '';
  return (
    <GridListItem id={notice.id} textValue={notice.title} className={notice.unread ? 'notice unread' : 'notice'}>
      <Icon name={icons[notice.kind]} small />
      <span className="grow" dir="auto">
        {notice.title}
        <span className="small faint db">
          {words.kinds[notice.kind]}, <RelativeTime at={notice.at} />
          {state && `, ${state}`}
        </span>
      </span>
      {notice.unread && (
        <Button
          kind="ghost"
          icon="check"
          iconOnly
          small
          label={words.read(notice.title)}
          onPress={() => void markRead(notice.id)}
        />
      )}
    </GridListItem>
  );
}
