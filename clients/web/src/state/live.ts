// The one query client and the one event stream, and how events make queries old.

import { QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { Problem } from '../api/problem';
import { EventStream, type ConnectionState, type PlatformEvent } from '../live/stream';
import { topics, topicsOf, type Topic } from '../live/topics';

const POLL = 10_000;
const KEPT_EVENTS = 100;
/** Events come in bursts; one refetch serves all of a burst. */
const BURST = 150;
/** The server shares an answer for 2 s. */
const SHARED = 2500;
/** Figures that no event announces, such as ages and counts of requests, are read again this often. */
const REFRESH = 60_000;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5000,
      retry: (failures, error) => failures < 1 && error instanceof Problem && error.status === 0,
      refetchOnWindowFocus: false,
    },
  },
});

let recent: readonly PlatformEvent[] = [];
const eventListeners = new Set<(event: PlatformEvent) => void>();
const recentListeners = new Set<() => void>();
const dirty = new Set<Topic>();
const unsettled = new Set<Topic>();
let burst: ReturnType<typeof setTimeout> | undefined;
let settling: ReturnType<typeof setTimeout> | undefined;

const refetch = (changed: Iterable<Topic>): void => {
  for (const topic of changed) void queryClient.invalidateQueries({ queryKey: [topic] });
};

/**
 * Refetches what the topics cover, once the burst is over, and once more when the answers that the server shares
 * have run out: the first refetch may get what was true just before the event.
 */
export function invalidateTopics(changed: readonly Topic[]): void {
  for (const topic of changed) {
    dirty.add(topic);
    unsettled.add(topic);
  }
  burst ??= setTimeout(() => {
    burst = undefined;
    const now = [...dirty];
    dirty.clear();
    refetch(now);
  }, BURST);
  clearTimeout(settling);
  settling = setTimeout(() => {
    const now = [...unsettled];
    unsettled.clear();
    refetch(now);
  }, SHARED);
}

function take(event: PlatformEvent): void {
  if (event.id && recent.some((known) => known.id === event.id)) return;
  recent = [event, ...recent].slice(0, KEPT_EVENTS);
  for (const listener of recentListeners) listener();
  for (const listener of eventListeners) listener(event);
  invalidateTopics(topicsOf(event.name));
}

export const stream: EventStream = new EventStream({ onEvent: take, onGap: () => invalidateTopics(topics) });

// A query looks at its own interval only when it gets an answer, so that a quiet page would never begin to poll.
let poll: ReturnType<typeof setInterval> | undefined;
let wasLive = false;
stream.subscribe(() => {
  // Data read before the stream was open may have changed unnoticed.
  const live = stream.getState().kind === 'live';
  if (live && !wasLive) invalidateTopics(topics);
  wasLive = live;
  const polling = stream.getState().kind === 'polling';
  if (polling && poll === undefined) poll = setInterval(() => invalidateTopics(topics), POLL);
  if (!polling && poll !== undefined) {
    clearInterval(poll);
    poll = undefined;
  }
});

setInterval(() => {
  if (stream.getState().kind === 'live') refetch(topics);
}, REFRESH);

/** Forgets what another session saw. */
export function forgetEvents(): void {
  recent = [];
  for (const listener of recentListeners) listener();
}

export function onPlatformEvent(listener: (event: PlatformEvent) => void): () => void {
  eventListeners.add(listener);
  return () => eventListeners.delete(listener);
}

/** Returns the events since the page was opened, newest first. */
export function useRecentEvents(): readonly PlatformEvent[] {
  return useSyncExternalStore(
    (listener) => {
      recentListeners.add(listener);
      return () => recentListeners.delete(listener);
    },
    () => recent,
  );
}

export function useConnection(): ConnectionState {
  return useSyncExternalStore(stream.subscribe, stream.getState);
}
