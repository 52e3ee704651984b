import { useEffect, useState } from 'react';
import { Icon } from '../components/icon';
import type { ConnectionState } from '../live/stream';
import { stream, useConnection } from '../state/live';
import { text } from '../text';

const words = text.shell.connection;

function describe(state: ConnectionState, now: number): { dot: string; label: string; title: string } {
  switch (state.kind) {
    case 'live':
      return { dot: 'ok', label: words.live, title: words.liveTitle };
    case 'reconnecting':
      return { dot: 'warn', label: words.reconnecting(secondsUntil(state.retryAt, now)), title: words.streamDown };
    case 'polling':
      return { dot: 'warn', label: words.polling, title: words.pollingTitle };
    case 'offline':
      return { dot: 'critical', label: words.offline, title: words.offlineHint };
    case 'connecting':
      return { dot: '', label: words.connecting, title: words.connecting };
    case 'stopped':
      return { dot: '', label: words.stopped, title: words.stopped };
  }
}

function secondsUntil(at: number, now: number): number {
  return Math.max(0, Math.ceil((at - now) / 1000));
}

/** Returns the time each second while something counts down. */
function useSeconds(active: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!active) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

/** Live, reconnecting with seconds, polling or offline: always at the top. */
export function ConnectionBadge() {
  const state = useConnection();
  const now = useSeconds(state.kind === 'reconnecting');
  const { dot, label, title } = describe(state, now);
  return (
    <span className="conn" title={title} data-connection={state.kind}>
      <i className={`dot ${dot}`} aria-hidden="true" />
      <span>{label}</span>
      {/* The seconds would be read out one by one. */}
      <span className="vh" role="status">
        {state.kind === 'reconnecting' ? words.streamDown : label}
      </span>
    </span>
  );
}

/** Explains what a lost stream means for the figures, once it has been away for longer. */
export function ConnectionBanner() {
  const state = useConnection();
  const now = useSeconds(state.kind === 'polling');
  if (state.kind !== 'polling' && state.kind !== 'offline') return null;
  const polling = state.kind === 'polling';
  return (
    <div className="note warn banner">
      <Icon name="warn" small />
      <span className="grow">
        <b>{polling ? words.streamDown : words.offlineNow}</b>{' '}
        {polling ? words.streamDownHint(secondsUntil(state.retryAt, now)) : words.offlineHint}{' '}
        {polling && (
          <button type="button" className="link" onClick={stream.reconnect}>
            {words.reconnect}
          </button>
        )}
      </span>
    </div>
  );
}
