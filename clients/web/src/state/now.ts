import { useSyncExternalStore } from 'react';

// One clock for all relative times, so that a page with 200 of them has one timer.
const TICK = 5000;
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (!timer) {
    now = Date.now();
    timer = setInterval(() => {
      now = Date.now();
      for (const each of listeners) each();
    }, TICK);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Returns the time of day, at most 5 s old. */
export function useNow(): Date {
  return new Date(useSyncExternalStore(subscribe, () => now));
}
