import type { components } from '../../api/gen/controlplane';

type Budget = components['schemas']['Budget'];

/** From here on a budget is nearly used up. */
const NEARLY = 0.8;

/** Returns a project's budget state: over, nearly used up, within, or without a limit to judge by. */
export function standingOf(budget: Budget): 'critical' | 'warn' | 'ok' | 'unknown' {
  // Spending against a budget of 0 is over although it has no ratio.
  if (budget.overBudget) return 'critical';
  if (budget.costBudget === null && budget.gpuHoursBudget === null) return 'unknown';
  return Math.max(budget.costRatio ?? 0, budget.gpuHoursRatio ?? 0) >= NEARLY ? 'warn' : 'ok';
}

/** Parses a budget's form into its body; empty is no limit, undefined if a text is no amount. */
export function budgetBody(
  cost: string,
  hours: string,
): { cost_budget: number | null; gpu_hours_budget: number | null } | undefined {
  const read = (typed: string): number | null | undefined => {
    const trimmed = typed.trim();
    if (trimmed === '') return null;
    const value = Number(trimmed);
    return Number.isFinite(value) && value >= 0 ? value : undefined;
  };
  const cost_budget = read(cost);
  const gpu_hours_budget = read(hours);
  return cost_budget === undefined || gpu_hours_budget === undefined ? undefined : { cost_budget, gpu_hours_budget };
}
