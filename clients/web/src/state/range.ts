import { useSearch } from '@tanstack/react-router';
import { DAY, HOUR } from '../format/time';

// The time range is global and in the address, so that a link shows a colleague the same thing.

export const rangeKeys = ['1h', '5h', '24h', '7d', '30d', '90d'] as const;
export type RangeKey = (typeof rangeKeys)[number];

const spans: Record<RangeKey, number> = {
  '1h': HOUR,
  '5h': 5 * HOUR,
  '24h': DAY,
  '7d': 7 * DAY,
  '30d': 30 * DAY,
  '90d': 90 * DAY,
};
export const defaultRange: RangeKey = '24h';

export function isRangeKey(value: unknown): value is RangeKey {
  return rangeKeys.includes(value as RangeKey);
}

export interface TimeRange {
  key: RangeKey;
  span: number;
}

export function rangeOf(key: RangeKey): TimeRange {
  return { key, span: spans[key] };
}

/** Returns the bounds of a range that ends now. */
export function boundsOf(range: TimeRange, now = Date.now()): { from: Date; to: Date } {
  return { from: new Date(now - range.span), to: new Date(now) };
}

/** Returns the range that the address names. */
export function useRange(): TimeRange {
  const search: { range?: RangeKey } = useSearch({ strict: false });
  return rangeOf(search.range ?? defaultRange);
}
