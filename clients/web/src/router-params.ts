// The values that parameters of addresses may have.

export const alertStates = ['open', 'resolved'] as const;
export const approvalTabs = ['pending', 'approved', 'rejected', 'expired'] as const;
export const runTabs = ['all', 'active', 'completed', 'failed', 'cancelled'] as const;
export const runViews = ['table', 'timeline'] as const;
export const runCauses = ['change', 'drift', 'manual', 'dummy', 'other'] as const;
export const modelTabs = ['summary', 'versions', 'drift', 'traffic', 'cost', 'governance', 'discussion'] as const;
export const registryViews = ['all', 'attention', 'unmeasured'] as const;
