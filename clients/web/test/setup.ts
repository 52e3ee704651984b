import { cleanup } from '@testing-library/react';
import { afterEach } from 'vitest';

// jsdom has no CSS object; React Aria escapes its selectors with it.
globalThis.CSS ??= { escape: (text: string) => text.replace(/[^\w-]/g, '\\$&') } as typeof CSS;

afterEach(() => {
  cleanup();
  localStorage.clear();
  sessionStorage.clear();
});

// jsdom has no CSS.escape, which React Aria's dialogs use.
globalThis.CSS ??= {} as typeof CSS;
globalThis.CSS.escape ??= (value: string) => value.replace(/[^\w-]/g, (letter) => `\\${letter}`);
