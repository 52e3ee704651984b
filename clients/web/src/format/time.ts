// Times: how long ago for the last seven days, the UTC date otherwise. Views show "UTC" once.

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** Below this a time is shown as a span, above it as a date. */
export const shortAge = 7 * DAY;

const pad = (n: number): string => String(n).padStart(2, '0');

/** Returns 14:32:04. */
export function formatClock(at: Date): string {
  return `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())}`;
}

/** Returns 14:32. */
export function formatHour(at: Date): string {
  return `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}`;
}

/** Returns 31 Oct. */
export function formatDay(at: Date): string {
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
}

/** Returns 31 Oct 2026, 09:00 UTC. */
export function formatDateTime(at: Date): string {
  return `${formatDay(at)} ${at.getUTCFullYear()}, ${formatHour(at)} UTC`;
}

/** Returns 31 Oct 2026, 09:00:07 UTC, for tooltips and ledgers. */
export function formatExact(at: Date): string {
  return `${formatDay(at)} ${at.getUTCFullYear()}, ${formatClock(at)} UTC`;
}

/** Returns 5 h 12 min: at most two units, the second only while it matters. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (milliseconds > 0 && milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes < 10 && seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return hours < 10 && minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return days < 10 && hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** Returns one unit: 58 min, 3 h, 12 d. */
export function formatRough(milliseconds: number): string {
  const size = Math.max(0, milliseconds);
  if (size < MINUTE) return `${Math.round(size / 1000)} s`;
  if (size < HOUR) return `${Math.floor(size / MINUTE)} min`;
  if (size < 48 * HOUR) return `${Math.floor(size / HOUR)} h`;
  return `${Math.floor(size / DAY)} d`;
}

export type RelativeTime = { kind: 'now' } | { kind: 'past' | 'future'; text: string } | { kind: 'date'; text: string };

/** Places a time against now; the catalogue has the words around it. */
export function relateTime(at: Date, now: Date, longest = shortAge): RelativeTime {
  const age = now.getTime() - at.getTime();
  if (Math.abs(age) < 5000) return { kind: 'now' };
  if (Math.abs(age) >= longest) return { kind: 'date', text: formatDateTime(at) };
  return { kind: age > 0 ? 'past' : 'future', text: formatRough(Math.abs(age)) };
}

/** Parses a server's time; undefined for what is absent or no time. */
export function parseTime(text: string | null | undefined): Date | undefined {
  if (!text) return undefined;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
