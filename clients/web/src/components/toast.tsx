import { useSyncExternalStore } from 'react';
import { text } from '../text';
import { Button } from './button';
import { Icon } from './icon';

interface Toast {
  id: number;
  kind: 'ok' | 'critical' | 'warn' | 'unknown';
  message: string;
}

const LIFE = 8000;
let toasts: readonly Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();

function setToasts(value: readonly Toast[]): void {
  toasts = value;
  for (const listener of listeners) listener();
}

function dismiss(id: number): void {
  setToasts(toasts.filter((toast) => toast.id !== id));
}

/** Shows a message. Failures of the reader's own act stay until dismissed and interrupt a screen reader. */
export function notify(message: string, kind: Toast['kind'] = 'ok'): void {
  const id = next++;
  setToasts([...toasts.slice(-3), { id, kind, message }]);
  if (kind !== 'critical') setTimeout(() => dismiss(id), LIFE);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The live regions, always mounted: a region that appears with its text is not announced. */
export function Toasts() {
  const current = useSyncExternalStore(subscribe, () => toasts);
  const list = (assertive: boolean) =>
    current
      .filter((toast) => (toast.kind === 'critical') === assertive)
      .map((toast) => (
        <div key={toast.id} className={`toast st-${toast.kind}`}>
          <Icon name={toast.kind} />
          <span className="grow">{toast.message}</span>
          <Button kind="ghost" icon="x" iconOnly small label={text.common.dismiss} onPress={() => dismiss(toast.id)} />
        </div>
      ));
  return (
    <section className="toasts" aria-label={text.common.notifications}>
      <div role="alert">{list(true)}</div>
      <div role="status">{list(false)}</div>
    </section>
  );
}
