// The event stream with its fall-backs: live, reconnecting with jitter, polling, offline.

import { platformFetch } from '../api/client';
import { Problem } from '../api/problem';
import { EventParser, type ServerEvent } from './sse';

export type ConnectionState =
  | { kind: 'connecting' }
  | { kind: 'live'; since: number }
  | { kind: 'reconnecting'; retryAt: number }
  | { kind: 'polling'; retryAt: number }
  | { kind: 'offline' }
  | { kind: 'stopped' };

export interface PlatformEvent {
  id: string;
  name: string;
  data: Record<string, unknown>;
  at: Date;
  actor: string;
}

export interface StreamOptions {
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  random?: () => number;
  /** Called when events may have been missed: everything on screen is fetched again. */
  onGap: () => void;
  onEvent: (event: PlatformEvent) => void;
}

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;
/** Two keep-alives missed: the connection is dead although it was not closed. */
const SILENCE = 40_000;
/** After so many failures in a row the views are polled while the stream is tried on. */
const FAILURES_UNTIL_POLLING = 2;

/** Returns the wait before an attempt, spread so that a restarted service is not met by everyone at once. */
export function reconnectDelay(failures: number, random: () => number): number {
  const ceiling = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** failures);
  return Math.round(FIRST_WAIT + random() * (ceiling - FIRST_WAIT));
}

/** Reads an event's envelope; undefined for hello, bye and what is not JSON. */
export function readEvent(frame: ServerEvent): PlatformEvent | undefined {
  if (!frame.event.includes('.')) return undefined;
  try {
    const data = JSON.parse(frame.data) as Record<string, unknown>;
    const meta = (data._event ?? {}) as { id?: string; time?: string; actor?: string };
    const at = meta.time ? new Date(meta.time) : new Date();
    return { id: meta.id ?? frame.id ?? '', name: frame.event, data, at, actor: meta.actor ?? '' };
  } catch {
    return undefined;
  }
}

export class EventStream {
  private state: ConnectionState = { kind: 'stopped' };
  private readonly listeners = new Set<() => void>();
  private abort: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private watchdog: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private lastId: string | undefined;
  private wasLive = false;

  constructor(private readonly options: StreamOptions) {}

  getState = (): ConnectionState => this.state;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  start(): void {
    if (this.state.kind !== 'stopped') return;
    addEventListener('online', this.reconnect);
    addEventListener('offline', this.goOffline);
    if (navigator.onLine === false) this.goOffline();
    else void this.connect();
  }

  stop(): void {
    removeEventListener('online', this.reconnect);
    removeEventListener('offline', this.goOffline);
    this.cancel();
    this.lastId = undefined;
    this.wasLive = false;
    this.failures = 0;
    this.setState({ kind: 'stopped' });
  }

  /** Tries again at once, as the reader asks or the network returns. */
  reconnect = (): void => {
    if (this.state.kind === 'stopped') return;
    this.cancel();
    void this.connect();
  };

  private goOffline = (): void => {
    this.cancel();
    this.setState({ kind: 'offline' });
  };

  private cancel(): void {
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.abort?.abort();
    this.abort = undefined;
  }

  private setState(state: ConnectionState): void {
    this.state = state;
    for (const listener of this.listeners) listener();
  }

  private async connect(): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    if (this.state.kind === 'stopped' || this.state.kind === 'offline') this.setState({ kind: 'connecting' });
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      if (this.lastId) headers['Last-Event-ID'] = this.lastId;
      const fetcher = this.options.fetch ?? platformFetch;
      const response = await fetcher('/api/v1/stream', { headers, signal: abort.signal, cache: 'no-store' });
      if (!response.body) throw new Problem(0, { code: 'unreachable' });
      await this.read(response.body, abort);
    } catch (error) {
      if (abort.signal.aborted) return;
      if (error instanceof Problem && error.needsLogin) {
        this.cancel();
        this.setState({ kind: 'stopped' });
        return;
      }
      this.fail(error instanceof Problem ? error.retryAfter : undefined);
      return;
    }
    if (!abort.signal.aborted) this.fail();
  }

  private async read(body: ReadableStream<Uint8Array>, abort: AbortController): Promise<void> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const parser = new EventParser();
    const watch = (): void => {
      clearTimeout(this.watchdog);
      this.watchdog = setTimeout(() => {
        void reader.cancel();
      }, SILENCE);
    };
    watch();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || abort.signal.aborted) return;
      watch();
      for (const frame of parser.push(decoder.decode(value, { stream: true }))) if (this.take(frame)) return;
    }
  }

  /** Acts on one frame; true ends the connection. */
  private take(frame: ServerEvent): boolean {
    if (frame.event === 'hello') {
      const resumed = this.lastId !== undefined && !/"gap":\s*true/.test(frame.data);
      this.failures = 0;
      this.setState({ kind: 'live', since: Date.now() });
      // A first connection begins with fresh views; a later one without replay may have missed something.
      if (this.wasLive && !resumed) this.options.onGap();
      this.wasLive = true;
      return false;
    }
    if (frame.event === 'bye') return true;
    if (frame.id) this.lastId = frame.id;
    const event = readEvent(frame);
    if (event) this.options.onEvent(event);
    return false;
  }

  private fail(retryAfter?: number): void {
    clearTimeout(this.watchdog);
    this.failures++;
    const wait = retryAfter
      ? Math.min(retryAfter * 1000, LONGEST_WAIT)
      : reconnectDelay(this.failures, this.options.random ?? Math.random);
    const retryAt = Date.now() + wait;
    const polling = this.failures >= FAILURES_UNTIL_POLLING;
    this.setState(polling ? { kind: 'polling', retryAt } : { kind: 'reconnecting', retryAt });
    this.timer = setTimeout(() => void this.connect(), wait);
  }
}
