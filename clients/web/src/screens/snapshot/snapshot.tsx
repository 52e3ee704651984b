import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { snapshotQuery } from '../../api/queries';
import { Message } from '../../components/blank';
import { Button } from '../../components/button';
import { Chip } from '../../components/chip';
import { ButtonLink } from '../../components/link';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { Facts } from '../../components/stat';
import { NotMeasured } from '../../components/state';
import { formatExact, parseTime } from '../../format/time';
import { text } from '../../text';
import { isRecord, readFrozen, spellKey } from './frozen';
import { useQuery } from '../../state/query';

const route = getRouteApi('/shell/snapshot/$token');
const words = text.snapshot;
/** A frozen table shows at most this many rows; the view is at most 64 KiB anyway. */
const MOST_ROWS = 500;

export function SnapshotScreen() {
  const { token } = route.useParams();
  const query = useQuery(snapshotQuery(token));
  const navigate = useNavigate();
  const found = query.data?.found ? query.data : undefined;
  const frozen = found && readFrozen(found.view);
  if (!found || !frozen)
    return (
      <>
        <PageHead title={words.title} />
        <QueryPanel title={words.title} query={query} skeleton="text" hideAsOf flush>
          {() => (
            <Message icon="clock" title={words.gone} actions={<ButtonLink to="/">{text.shell.toOverview}</ButtonLink>}>
              {words.goneHint}
            </Message>
          )}
        </QueryPanel>
      </>
    );
  const parts = Object.entries(frozen.data).filter(([key]) => !key.startsWith('_'));
  const plain = parts.filter(([, value]) => !isRecord(value) && !Array.isArray(value));
  const taken = parseTime(frozen.takenAt);
  const path = frozen.path;
  return (
    <>
      <PageHead
        title={frozen.title ?? words.title}
        sub={`${taken ? words.taken(formatExact(taken)) : words.frozen}${
          found.created_by ? ` ${words.by(found.created_by)}` : ''
        }. ${words.expires} ${formatExact(parseTime(found.expires_at) ?? new Date(NaN))}.`}
        chips={<Chip kind="partial">{words.readOnly}</Chip>}
        actions={path && <Button onPress={() => void navigate({ to: path as '/' })}>{words.openLive}</Button>}
      />
      <div className="stack">
        {plain.length > 0 && (
          <Panel title={words.values}>
            <Facts facts={plain.map(([key, value]) => [spellKey(key), <Value value={value} />] as const)} />
          </Panel>
        )}
        {parts
          .filter(([, value]) => isRecord(value) || Array.isArray(value))
          .map(([key, value]) => (
            <Panel key={key} title={sentence(spellKey(key))} flush={Array.isArray(value)}>
              <Part value={value} label={spellKey(key)} />
            </Panel>
          ))}
        {parts.length === 0 && (
          <Panel title={words.values} flush>
            <Message icon="unknown" title={words.empty} />
          </Panel>
        )}
      </div>
    </>
  );
}

const sentence = (key: string): string => key.charAt(0).toUpperCase() + key.slice(1);

/** An object as facts, with its lists below. */
function Part({ value, label }: { value: unknown; label: string }): ReactNode {
  if (Array.isArray(value)) return <Rows rows={value} label={label} />;
  if (!isRecord(value)) return <Value value={value} />;
  const entries = Object.entries(value);
  const facts = entries.filter(([, each]) => !Array.isArray(each) && !isRecord(each));
  const lists = entries.filter(([, each]) => Array.isArray(each) || isRecord(each));
  return (
    <div className="stack-s">
      {facts.length > 0 && (
        <Facts facts={facts.map(([key, each]) => [spellKey(key), <Value value={each} />] as const)} />
      )}
      {lists.map(([key, each]) => (
        <section key={key} aria-label={spellKey(key)} className="frozen-part">
          <h3>{sentence(spellKey(key))}</h3>
          <Part value={each} label={spellKey(key)} />
        </section>
      ))}
    </div>
  );
}

function Rows({ rows, label }: { rows: readonly unknown[]; label: string }) {
  if (rows.length === 0) return <p className="faint small pad">{text.common.none}</p>;
  const records = rows.filter(isRecord);
  if (records.length !== rows.length)
    return (
      <ul className="plain-list pad">
        {rows.slice(0, MOST_ROWS).map((row, i) => (
          <li key={i}>
            <Value value={row} />
          </li>
        ))}
      </ul>
    );
  const columns = [...new Set(records.flatMap((row) => Object.keys(row)))];
  return (
    <div className="scroll-x" tabIndex={0} role="group" aria-label={label}>
      <table className="table">
        <caption className="vh">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column}
                scope="col"
                className={records.some((row) => typeof row[column] === 'number') ? 'num' : undefined}
              >
                {sentence(spellKey(column))}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {records.slice(0, MOST_ROWS).map((row, i) => (
            <tr key={i}>
              {columns.map((column) => (
                <td key={column} className={typeof row[column] === 'number' ? 'num' : undefined}>
                  <Value value={row[column]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A frozen value as it was: figures are not rounded, since their unit is not known. */
function Value({ value }: { value: unknown }): ReactNode {
  if (value === null || value === undefined) return <NotMeasured />;
  if (typeof value === 'boolean') return value ? words.yes : words.no;
  if (typeof value === 'number') return String(value).replace('-', '\u2212');
  if (typeof value === 'string') {
    const at = /^\d{4}-\d\d-\d\dT/.test(value) ? parseTime(value) : undefined;
    return at ? formatExact(at) : <span className="wrap-any">{value}</span>;
  }
  return <code className="small wrap-any">{JSON.stringify(value)}</code>;
}
