export const inbox = {
  title: 'Inbox',
  button: (unread: number) => (unread > 0 ? `Inbox, ${unread} unread` : 'Inbox'),
  readAll: 'Mark all as read',
  read: (title: string) => `Mark as read: ${title}`,
  none: 'Nothing waits for you',
  unread: 'unread',
  kinds: { mention: 'Mention', approval: 'Approval', alert: 'Alert' },
  outcomes: {
    approved: 'approved',
    rejected: 'rejected',
    expired: 'expired',
    resolved: 'resolved',
    removed: 'comment removed',
  } as Record<string, string>,
};
