// The shape of a frozen view: its name, its address, its time, and its figures.

export interface FrozenView {
  kind: 'page';
  title: string;
  path: string;
  taken_at: string;
  data: Record<string, unknown>;
}

export function frozenOf(title: string, path: string, data: object, at: Date): FrozenView {
  return { kind: 'page', title, path, taken_at: at.toISOString(), data: data as Record<string, unknown> };
}

/** Parses a snapshot; it may contain anything, so nothing is taken for granted. */
export function readFrozen(view: unknown): {
  title?: string;
  path?: string;
  takenAt?: string;
  data: Record<string, unknown>;
} {
  const given = isRecord(view) ? view : {};
  const word = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
  const path = word(given.path);
  const known = given.kind === 'page' && isRecord(given.data);
  return {
    title: word(given.title),
    path: path && /^\/(?![/\\])/.test(path) ? path : undefined,
    takenAt: word(given.taken_at),
    data: known ? (given.data as Record<string, unknown>) : given,
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a key as people read it: total_cost_usd and totalCostUsd become "total cost usd". */
export function spellKey(key: string): string {
  return key
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[_-]+/g, ' ')
    .trim()
    .toLowerCase();
}
