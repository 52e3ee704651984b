// Whether what raises alerts is watched: with a service down, that there is no alert of it is not known.

import { healthQuery } from '../api/queries';
import { text } from '../text';
import { alsoFrom, join, read, Unknown, type Figure } from './figure';
import { useQuery, type Source } from './query';

const sources = new Set<string>(['tracker', 'serving', 'orchestrator']);

/** Adds the service itself to the figure of its health: only its own answer makes it well. */
export function healthFrom<T>(view: Figure<T>, service: string, status: string): Figure<T> {
  return status === 'ok' && sources.has(service) ? alsoFrom(view, service as Source) : view;
}

/** Returns a figure that states the absence of alerts, as unmeasured while a watched service is down. */
export function useWatched(): <T>(figure: Figure<T>) => Figure<T> {
  const watch = read(useQuery(healthQuery), ({ services }) => {
    const down = Object.keys(services).filter((key) => services[key]?.status === 'down');
    const names = down.map((key) => text.overview.serviceNames[key] ?? key);
    return down.length > 0 ? new Unknown(text.overview.alerts.unwatched(names.join(', '))) : services;
  });
  return (figure) => join(figure, watch, (value) => value);
}
