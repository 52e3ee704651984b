import type { components } from '../../api/gen/dashboard';
import { aliasAtQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { useEvidence } from '../../components/evidence';
import { FigureParts } from '../../components/figure';
import { Panel } from '../../components/panel';
import { RelativeTime } from '../../components/time';
import { DAY, formatDateTime, formatDay, parseTime } from '../../format/time';
import { type Figure } from '../../state/figure';
import { useNow } from '../../state/now';
import { text } from '../../text';
import { useQuery } from '../../state/query';

export type Move = components['schemas']['AliasMove'];

const words = text.model.history;
const named = (version: number | null | undefined): string =>
  version === null || version === undefined ? words.nobody : `v${version}`;

/** Returns the text that a datetime-local field takes for an instant, in UTC. */
function toField(at: Date): string {
  return at.toISOString().slice(0, 16);
}

interface HistoryProps<Moves> {
  model: string;
  moves: Moves;
  at: string | undefined;
  onPick: (at: string | undefined) => void;
}

/** Which version held Production when: as a bar, by picking an instant, and as a list. */
export function HistoryPanel(props: HistoryProps<Figure<readonly Move[]>>) {
  return (
    <FigureParts figure={props.moves} title={words.title}>
      {(moves) => <History {...props} moves={moves} />}
    </FigureParts>
  );
}

function History({ model, moves, at, onPick }: HistoryProps<readonly Move[]>) {
  const of = useEvidence();
  const now = useNow();
  const held = moves.filter((move) => move.alias === 'Production' && parseTime(move.from));
  const picked = parseTime(at);
  const answer = useQuery({
    ...aliasAtQuery(model, 'Production', picked?.toISOString() ?? ''),
    enabled: picked !== undefined,
  });
  const oldest = held.at(-1);
  const from = parseTime(oldest?.from)?.getTime();
  if (held.length === 0 || from === undefined)
    return (
      <Panel title={words.title} note={words.note} flush>
        <Blank of={of} icon="up" title={words.none}>
          {words.noneHint}
        </Blank>
      </Panel>
    );
  const end = now.getTime();
  const span = Math.max(DAY / 24, end - from);
  const place = (time: number): number => Math.min(100, Math.max(0, ((time - from) / span) * 100));
  const holder = answer.data?.items[0];
  const segments = [...held].reverse().map((move) => {
    const start = parseTime(move.from)?.getTime() ?? from;
    const stop = parseTime(move.to)?.getTime() ?? end;
    // A version that was rolled back from: the next move went back.
    const next = held.find((each) => each.from === move.to);
    return {
      move,
      left: place(start),
      width: place(stop) - place(start),
      bad: next?.via === 'rollback',
      current: !move.to,
    };
  });
  return (
    <Panel
      title={words.title}
      note={words.note}
      actions={
        <label className="input when">
          <span className="vh">{words.pick}</span>
          <input
            type="datetime-local"
            max={toField(now)}
            value={picked ? toField(picked) : ''}
            onChange={(event) => onPick(event.target.value ? `${event.target.value}:00Z` : undefined)}
          />
          <span className="small">UTC</span>
        </label>
      }
    >
      <div
        className="hist"
        role="img"
        aria-label={words.label(
          segments.map(({ move }) => `${named(move.version)} ${formatDay(parseTime(move.from) ?? now)}`).join(', '),
        )}
      >
        {segments.map(({ move, left, width, bad, current }) => (
          <div
            key={move.from}
            className={`seg-b${bad ? ' bad' : ''}${current ? ' cur' : ''}`}
            style={{ left: `${left}%`, width: `${width}%` }}
            title={`${named(move.version)}, ${formatDateTime(parseTime(move.from) ?? now)}`}
          >
            {width > 4 && named(move.version)}
          </div>
        ))}
        {segments
          .filter(({ left, width }) => left + width / 2 < 97 && width > 6)
          .map(({ move, left }) => (
            <span key={move.from} className={left < 3 ? 'tk e0' : 'tk'} style={{ left: `${left}%` }}>
              {formatDay(parseTime(move.from) ?? now)}
            </span>
          ))}
        {picked && (
          <div
            className={place(picked.getTime()) > 70 ? 'pick left' : 'pick'}
            style={{ left: `${place(picked.getTime())}%` }}
          >
            <span>
              {words.at(
                formatDateTime(picked),
                answer.isPending
                  ? '…'
                  : answer.isError
                    ? text.common.notMeasured
                    : holder
                      ? named(Number(holder.version))
                      : words.nobody,
              )}
            </span>
          </div>
        )}
      </div>
      {picked && (
        <p className="small muted mb-s" role="status">
          {words.answer}{' '}
          {holder ? (
            <>
              <b className="med">v{holder.version}</b>, {words.since} {formatDateTime(parseTime(holder.from) ?? now)},{' '}
              {holder.actor}
            </>
          ) : (
            !answer.isPending && (answer.isError ? text.common.notMeasured : words.nobody)
          )}
        </p>
      )}
      <ul className="list inset">
        {held.slice(0, 6).map((move) => (
          <li key={move.from}>
            <div className="item small">
              <b className="med nowrap">
                {move.version === null || move.version === undefined
                  ? words.removed
                  : move.previousVersion
                    ? words.to(`v${move.previousVersion}`, `v${move.version}`)
                    : words.first(`v${move.version}`)}
              </b>
              <span className="grow muted">{words.via[move.via] ?? move.via}</span>
              <span className="faint hide-s">{move.actor}</span>
              <span className="faint nowrap">
                <RelativeTime at={move.from} />
              </span>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
