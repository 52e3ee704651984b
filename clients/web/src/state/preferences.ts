// What a person chose for this browser: theme, density, language, single-key shortcuts.

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
