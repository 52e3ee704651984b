// Instants of the address and of the form, and what a target names.

/** Returns an RFC 3339 instant as the form shows it, in UTC; empty for anything else. */
export function showInstant(value: string | undefined): string {
  const at = value === undefined ? NaN : Date.parse(value);
  return Number.isNaN(at) ? '' : new Date(at).toISOString().slice(0, 19);
}

/** Returns what the form holds as an instant in UTC. */
export function readInstant(local: string): string | undefined {
  const at = Date.parse(`${local}Z`);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString().replace('.000Z', 'Z');
}

/** Returns the model that a target such as `model:JPCP` or `model:JPCP/v3` names. */
export function modelOf(target: string): string | undefined {
  return /^model:([A-Za-z0-9._-]+)/.exec(target)?.[1];
}
