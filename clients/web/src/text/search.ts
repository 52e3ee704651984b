export const search = {
  title: 'Search',
  label: 'Search models, jobs, approvals, alerts and documents',
  start: 'Type what you look for',
  startHint: 'Names, ids, and words of titles. Admins also find entries of the audit log.',
  none: (q: string) => `Nothing matches “${q}”`,
  noneHint: 'Try fewer letters, or another word.',
  found: (n: number, q: string) => `${n} ${n === 1 ? 'result' : 'results'} for “${q}”`,
  sources: {
    tracker: 'Models',
    scheduler: 'Jobs',
    approvals: 'Approvals',
    alerts: 'Alerts',
    audit: 'Audit log',
    docs: 'Documents',
  } as Record<string, string>,
  results: 'Results',
  off: 'Search is switched off',
};
