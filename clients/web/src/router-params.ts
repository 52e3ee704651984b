// The values that parameters of addresses may have.

export const alertStates = ['open', 'resolved'] as const;
export const approvalTabs = ['pending', 'approved', 'rejected', 'expired'] as const;
export const runTabs = ['all', 'active', 'failed'] as const;
export const modelTabs = ['summary', 'versions', 'drift', 'traffic', 'cost', 'governance', 'discussion'] as const;
export const registryViews = ['all', 'attention', 'unmeasured'] as const;
