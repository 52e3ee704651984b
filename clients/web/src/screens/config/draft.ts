// What an admin typed but has not saved. A secret's field left blank keeps the secret; clearing is
// a separate act.

import type { components } from '../../api/gen/dashboard';

export type ConfigKey = components['schemas']['ConfigKey'];
export type ConfigValues = components['schemas']['Config'];

/** What a secret reads as; it is never sent back. */
export const MASK = '***';

/** By key: a new value, or null to clear it. */
export type Draft = Readonly<Record<string, string | null>>;

/** Returns the draft after typing; what equals the stored value, and a blank secret, are no change. */
export function typeInto(draft: Draft, key: ConfigKey, stored: string | null | undefined, typed: string): Draft {
  const unchanged = key.is_secret ? typed === '' : typed.trim() === (stored ?? '');
  if (unchanged) return forget(draft, key.key);
  // An emptied address or setting is cleared: the empty text is no value.
  return { ...draft, [key.key]: key.is_secret ? typed : typed.trim() === '' ? null : typed.trim() };
}

/** Returns the draft with the key cleared, on purpose. */
export function clearKey(draft: Draft, key: string): Draft {
  return { ...draft, [key]: null };
}

export function forget(draft: Draft, key: string): Draft {
  const { [key]: _, ...rest } = draft;
  return rest;
}

/** Returns what is wrong with a value, before the server rejects it. */
export function faultOf(key: ConfigKey, value: string | null | undefined): 'url' | 'masked' | undefined {
  if (value === null || value === undefined) return undefined;
  if (key.is_secret) return value.trim() === MASK ? 'masked' : undefined;
  if (key.type !== 'url') return undefined;
  try {
    const url = new URL(value);
    return /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' ? undefined : 'url';
  } catch {
    return 'url';
  }
}

/** Whether clearing a key would do something: only what is stored can be cleared. */
export function canClear(key: ConfigKey): boolean {
  return key.source === 'stored' && key.has_value;
}
