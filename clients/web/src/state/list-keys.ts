import { useEffect } from 'react';
import { keysAreOn } from './keys';

/** Lets j and k move through an inbox; items carry data-item with their id. */
export function useListKeys(ids: readonly string[], current: string | undefined, select: (id: string) => void): void {
  useEffect(() => {
    const move = (event: KeyboardEvent): void => {
      if ((event.key !== 'j' && event.key !== 'k') || ids.length === 0 || !keysAreOn(event)) return;
      event.preventDefault();
      const at = current === undefined ? -1 : ids.indexOf(current);
      const next = ids[Math.max(0, Math.min(ids.length - 1, at + (event.key === 'j' ? 1 : -1)))];
      if (next === undefined) return;
      select(next);
      [...document.querySelectorAll<HTMLElement>('[data-item]')].find((item) => item.dataset.item === next)?.focus();
    };
    addEventListener('keydown', move);
    return () => removeEventListener('keydown', move);
  });
}
