// What the wizard knows, as plain functions: which version, which step, how far a promotion has come.

import type { components as ControlPlane } from '../../api/gen/controlplane';
import type { components as Dashboard } from '../../api/gen/dashboard';
import type { components as Serving } from '../../api/gen/inference';
import type { PlatformEvent } from '../../live/stream';

export type Version = Dashboard['schemas']['ModelVersion'];
export type Promotion = ControlPlane['schemas']['Promotion'];
export type Policy = ControlPlane['schemas']['Policy'];
export type LoadedModel = Serving['schemas']['LoadedModel'];

export const stepNames = ['candidate', 'metrics', 'gate', 'approve', 'watch'] as const;
export type StepName = (typeof stepNames)[number];

export const isStep = (value: unknown): value is StepName => stepNames.includes(value as StepName);

export function holderOf(versions: readonly Version[], alias: string): Version | undefined {
  return versions.find((version) => version.aliases.includes(alias));
}

/** Returns the version that a policy would promote: the one under `from`, unless it is in place already. */
export function defaultCandidate(versions: readonly Version[], from: string, to: string): Version | undefined {
  const current = holderOf(versions, to);
  const next = holderOf(versions, from);
  if (next && next.version !== current?.version) return next;
  const newest = [...versions].sort((a, b) => b.version - a.version)[0];
  return newest && newest.version !== current?.version ? newest : undefined;
}

/** A move is shown for this long although the version is no longer in place. */
const RECENT = 2 * 60_000;

/**
 * Returns the promotion that the steps are about: one that waits, else the newest. One of long ago does not count
 * once its version was replaced: the version may be promoted again.
 */
export function promotionOf(
  promotions: readonly Promotion[],
  candidate: Version | undefined,
  to: string,
  now: number,
): Promotion | undefined {
  const mine = promotions.filter((each) => each.version === String(candidate?.version) && each.to === to);
  const newest = mine.find((each) => each.state === 'pending') ?? mine[0];
  if (!newest || newest.state === 'pending' || newest.state === 'approved') return newest;
  const inPlace = candidate?.aliases.includes(to) ?? false;
  const recent = now - new Date(newest.updated_at).getTime() < RECENT;
  return inPlace || recent ? newest : undefined;
}

/** Reports whether a promotion has been decided and is being, or was, carried out. */
export function isUnderWay(promotion: Promotion | undefined): boolean {
  return promotion?.state === 'approved' || promotion?.state === 'promoted' || promotion?.state === 'failed';
}

export interface Reload {
  /** Serving reports that it answers with this version. */
  served?: LoadedModel;
  /** The replicas' reports on the stream while the page was open. */
  replicas: { name: string; at: Date }[];
  failures: { name: string; reason: string; at: Date }[];
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Finds out who serves the version, from serving's list and from what replicas announced. */
export function readReload(
  names: readonly string[],
  version: number,
  alias: string,
  loaded: readonly LoadedModel[] | undefined,
  events: readonly PlatformEvent[],
): Reload {
  const known = names.map((name) => name.toLowerCase());
  const isOurs = (name: string, of: string, under: string): boolean =>
    known.includes(name.toLowerCase()) && of === String(version) && under.toLowerCase() === alias.toLowerCase();
  const ours = events.filter((event) =>
    isOurs(text(event.data.model), text(event.data.version), text(event.data.alias)),
  );
  const replicas = new Map<string, Date>();
  for (const event of ours) {
    const name = text(event.data.replica);
    if (event.name === 'deploy.model_loaded' && !replicas.has(name)) replicas.set(name, event.at);
  }
  return {
    served: loaded?.find((each) => isOurs(each.model_name, each.model_version, each.alias)),
    replicas: [...replicas].map(([name, at]) => ({ name, at })),
    failures: ours
      .filter((event) => event.name === 'deploy.load_failed')
      .map((event) => ({ name: text(event.data.replica), reason: text(event.data.reason), at: event.at })),
  };
}

/** Orders metrics as they matter: the policy's first, then those of the test jobs, then the validation's. */
export function metricNames(candidate: Version, current: Version | undefined, policyMetric?: string): string[] {
  const names = new Set([...Object.keys(candidate.metrics ?? {}), ...Object.keys(current?.metrics ?? {})]);
  const rank = (name: string): number => (name === policyMetric ? 0 : name.startsWith('val_') ? 2 : 1);
  return [...names]
    .filter((name) => !name.startsWith('baseline_'))
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b, 'en'));
}

/** Reports whether a value meets a rule. */
export function meets(value: number, operator: string, threshold: number): boolean | undefined {
  switch (operator) {
    case 'lt':
      return value < threshold;
    case 'lte':
      return value <= threshold;
    case 'gt':
      return value > threshold;
    case 'gte':
      return value >= threshold;
    default:
      return undefined;
  }
}
