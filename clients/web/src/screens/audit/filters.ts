// Instants of the address and of the form, and what a target names.

const ISO = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2}(?:\.\d{1,9})?))?\s*(Z|[+-]\d{2}:\d{2})?)?$/i;

/**
 * Reads a date or an instant of ISO 8601, in UTC unless it names an offset, as RFC 3339; undefined for an empty text,
 * null for anything else. Fractions of a second stay: a link to one entry has microseconds.
 */
export function readInstant(typed: string): string | null | undefined {
  if (typed.trim() === '') return undefined;
  const [, day, clock = '00:00', second = '00', zone = 'Z'] = ISO.exec(typed.trim()) ?? [];
  const instant = `${day}T${clock}:${second}${zone.toUpperCase()}`;
  // Date.parse takes the 31st of a short month for the 1st of the next.
  const isDay = day !== undefined && new Date(`${day}T00:00Z`).toJSON()?.startsWith(day);
  return isDay && !Number.isNaN(Date.parse(instant)) ? instant : null;
}

/** Returns an instant as the form shows it: a date alone if it is midnight in UTC. */
export function showInstant(value: string | undefined): string {
  return value?.replace(/T00:00:00Z$/, '') ?? '';
}

/** Returns the model that a target such as `model:JPCP` or `model:JPCP/v3` names. */
export function modelOf(target: string): string | undefined {
  return /^model:([A-Za-z0-9._-]+)/.exec(target)?.[1];
}
