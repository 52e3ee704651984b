import { useCallback, useRef, useState } from 'react';

const OPEN_KEY = 'platform.assistant_open';

export interface DrawerState {
  isOpen: boolean;
  toggle: () => void;
  close: () => void;
}

/** Whether the drawer is open, beyond a reload; closing gives the focus back to where it came from. */
export function useDrawer(): DrawerState {
  const [isOpen, setIsOpen] = useState(() => sessionStorage.getItem(OPEN_KEY) === '1');
  const from = useRef<HTMLElement>(undefined);
  const close = useCallback(() => {
    sessionStorage.removeItem(OPEN_KEY);
    setIsOpen(false);
    // Once the drawer is gone: elements that it covered could not take focus before.
    requestAnimationFrame(() => {
      const target = from.current?.isConnected ? from.current : document.getElementById('main');
      target?.focus({ preventScroll: true });
    });
  }, []);
  const open = useCallback(() => {
    const focused = document.activeElement;
    from.current = focused instanceof HTMLElement && focused !== document.body ? focused : undefined;
    sessionStorage.setItem(OPEN_KEY, '1');
    setIsOpen(true);
  }, []);
  const toggle = useCallback(() => {
    if (sessionStorage.getItem(OPEN_KEY) === '1') close();
    else open();
  }, [open, close]);
  return { isOpen, toggle, close };
}
