// What a person chose for this browser: theme, density, language, single-key shortcuts,
// and the cluster to ask the assistant about.

export interface Preferences {
  theme: 'system' | 'light' | 'dark';
  density: 'compact' | 'normal' | 'roomy';
  language: 'en' | 'pseudo';
  keys: 'on' | 'off';
}

const choices: { [K in keyof Preferences]: readonly Preferences[K][] } = {
  theme: ['system', 'light', 'dark'],
  density: ['normal', 'compact', 'roomy'],
  language: ['en', 'pseudo'],
  keys: ['on', 'off'],
};
const listeners = new Set<() => void>();

/** Returns a preference; the first choice if none was made or the stored one is unknown. */
export function readPreference<K extends keyof Preferences>(name: K): Preferences[K] {
  const options = choices[name];
  try {
    const stored = localStorage.getItem(`platform.${name}`) as Preferences[K] | null;
    return stored !== null && options.includes(stored) ? stored : (options[0] as Preferences[K]);
  } catch {
    return options[0] as Preferences[K]; // storage is blocked
  }
}

export function choicesOf<K extends keyof Preferences>(name: K): readonly Preferences[K][] {
  return choices[name];
}

export function storePreference<K extends keyof Preferences>(name: K, value: Preferences[K]): void {
  try {
    localStorage.setItem(`platform.${name}`, value);
  } catch {
    // Storage is blocked: the choice lasts until the page is left.
  }
  applyPreferences({ [name]: value });
  for (const listener of listeners) listener();
}

const CLUSTER_KEY = 'platform.assistant_cluster';

/** Returns the cluster that the person chose for new conversations. The assistant may not have it any more. */
export function readCluster(): string | undefined {
  try {
    return localStorage.getItem(CLUSTER_KEY) ?? undefined;
  } catch {
    return undefined; // storage is blocked
  }
}

export function storeCluster(name: string): void {
  try {
    localStorage.setItem(CLUSTER_KEY, name);
  } catch {
    // Storage is blocked: the choice lasts until the drawer is closed.
  }
}

/** Returns the columns that the person chose for a table, or undefined while none were chosen. */
export function readColumns(table: string): readonly string[] | undefined {
  try {
    return localStorage.getItem(`platform.columns.${table}`)?.split(',');
  } catch {
    return undefined; // storage is blocked
  }
}

export function storeColumns(table: string, columns: readonly string[]): void {
  try {
    localStorage.setItem(`platform.columns.${table}`, columns.join(','));
  } catch {
    // Storage is blocked: the choice lasts until the page is left.
  }
}

export function subscribeToPreferences(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Puts theme and density on the root element, where the tokens look. */
export function applyPreferences(given: Partial<Preferences> = {}): void {
  const root = document.documentElement;
  const theme = given.theme ?? readPreference('theme');
  const density = given.density ?? readPreference('density');
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
  if (density === 'normal') delete root.dataset.density;
  else root.dataset.density = density;
}
