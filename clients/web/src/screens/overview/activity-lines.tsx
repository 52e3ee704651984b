import type { components } from '../../api/gen/dashboard';
import type { FeedEntry } from '../../components/feed';
import type { IconName } from '../../components/icon';
import { formatCount } from '../../format/numbers';
import { parseTime } from '../../format/time';
import type { PlatformEvent } from '../../live/stream';
import { text } from '../../text';

const words = text.overview.activity;
type LedgerEntry = components['schemas']['LedgerEntry'];

const namespaceIcons: Record<string, IconName> = {
  job: 'runs',
  drift: 'drift',
  alert: 'bell',
  deploy: 'up',
  approval: 'approve',
  event: 'commit',
  auth: 'key',
  model: 'cube',
  config: 'gear',
  proxy: 'link',
  flag: 'flag',
};

function kindOf(name: string): FeedEntry['kind'] {
  if (/(failed|crashed|lost|load_failed|firing)$/.test(name)) return 'critical';
  if (/(denied|blocked|expired|rolled_back)$/.test(name)) return 'warn';
  if (/(completed|promoted|model_loaded|resolved)$/.test(name)) return 'ok';
  return name === 'job.started' ? 'running' : undefined;
}

/** Returns a person as people call them: without the provider; undefined for a part of the platform. */
export function nameOf(principal: string): string | undefined {
  const colon = principal.indexOf(':');
  if (principal === '' || principal.slice(0, colon) === 'system') return undefined;
  return principal.slice(colon + 1) || principal;
}

const uuid = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi;
/** An id says nothing to a reader: as the whole object it is left out, inside a sentence it is shortened. */
const withoutIds = (said: string): string => said.replace(uuid, (id) => `${id.slice(0, 8)}…`);
const objectOf = (target: string): string => {
  const object = target.replace(/^[a-z_]+[:/]/, '');
  return object.replace(uuid, '') === '' ? '' : object;
};

/** Something that happened: an event, or an entry of the ledger. */
interface Happening {
  key: string;
  name: string;
  data: Record<string, unknown>;
  actor: string;
  object: string;
  outcome?: string;
  /** The training run that it is about. */
  run?: string;
  note: string;
  at: Date;
}

const isOfRun = /^(job|run|retrain)\./;
const requestsRun = /^(job\.dispatched|retrain\.dispatched|run\.created)$/;
const runIn = (name: string, id: unknown): string | undefined =>
  isOfRun.test(name) && typeof id === 'string' && id !== '' ? id : undefined;

function ofEvent({ id, name, data, actor, at }: PlatformEvent): Happening {
  const about = data.model ?? data.entity ?? (name.startsWith('alert.') ? data.id : undefined);
  return {
    key: id,
    name,
    data,
    actor,
    object: objectOf(String(about ?? '')),
    run: runIn(name, data.flow_run_id),
    note: '',
    at,
  };
}

function ofLedger(entry: LedgerEntry): Happening[] {
  const at = parseTime(entry.ts);
  const { action: name = '', outcome } = entry;
  // Sign-ins have the audit log; here they would push out the work.
  if (!at || name.startsWith('auth.')) return [];
  return [
    {
      key: `ledger-${entry.seq}`,
      name,
      data: {},
      actor: entry.actor ?? '',
      object: objectOf(entry.target ?? ''),
      outcome,
      run: runIn(name, entry.run),
      note: words.ledger(formatCount(entry.seq)),
      at,
    },
  ];
}

/** A sentence: the person is its subject, or without one the object is. */
function Sentence({ of: { name, data, actor, object, outcome } }: { of: Happening }) {
  const person = nameOf(actor);
  const deed = text.deeds[name];
  const said = text.events[name]?.(data) ?? text.actions[name] ?? name;
  const refused = outcome === 'denied' || outcome === 'failed';
  if (person && deed && !refused)
    return (
      <>
        <b>{person}</b> {withoutIds(deed(object, data))}
      </>
    );
  if (person)
    return (
      <>
        <b>{person}</b>
        {refused ? ` ${words.refused(outcome, said)}` : `: ${withoutIds(said)}`}
        {object && `, ${withoutIds(object)}`}
      </>
    );
  return (
    <>
      {object && <b>{withoutIds(object)}</b>} {withoutIds(said)}
    </>
  );
}

function lineOf(one: Happening, request: Happening | undefined): FeedEntry {
  const failed = one.outcome === 'failed';
  const kind = failed ? 'critical' : one.outcome === 'denied' ? undefined : kindOf(one.name);
  const state = request && request !== one && nameOf(request.actor) ? text.runStates[one.name] : undefined;
  return {
    key: one.key,
    icon: kind ?? (one.outcome === 'denied' ? 'x' : (namespaceIcons[one.name.split('.', 1)[0] ?? ''] ?? 'pulse')),
    kind,
    what: state ? (
      <>
        <Sentence of={request as Happening} />: {withoutIds(state(one.data))}
      </>
    ) : (
      <Sentence of={one} />
    ),
    who: one.note,
    at: one.at,
  };
}

/**
 * Returns what has happened, newest first: the events, then the ledger's entries before the first of them, since what
 * has arrived as an event is not listed twice. A training run has one line, where its newest happening stands.
 */
export function linesOf(events: readonly PlatformEvent[], ledger: readonly LedgerEntry[]): FeedEntry[] {
  const opened = events.at(-1)?.at.getTime() ?? Infinity;
  const all = [
    // A notice is about an event that has a line of its own.
    ...events.filter((event) => event.name !== 'event.notice').map(ofEvent),
    ...ledger.flatMap(ofLedger).filter((entry) => entry.at.getTime() < opened),
  ];
  const requests = new Map<string, Happening>();
  for (const one of all) if (one.run && requestsRun.test(one.name) && nameOf(one.actor)) requests.set(one.run, one);
  const seen = new Set<string>();
  return all.flatMap((one) => {
    if (one.run === undefined) return [lineOf(one, undefined)];
    if (seen.has(one.run)) return [];
    seen.add(one.run);
    return [lineOf(one, requests.get(one.run))];
  });
}
