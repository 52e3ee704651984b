import { Link } from '@tanstack/react-router';
import { Blank, CopyText } from '../../components/blank';
import { AliasChip, Chip } from '../../components/chip';
import { FigurePanel } from '../../components/figure';
import { NotMeasured } from '../../components/state';
import { DataTable } from '../../components/table';
import { RelativeTime } from '../../components/time';
import { formatScore, shortenHash } from '../../format/numbers';
import { parseTime } from '../../format/time';
import type { Version } from './compare';
import { orElse, type Figure } from '../../state/figure';
import { text } from '../../text';
import { nameMetric } from '../../text/metrics';

const words = text.model;

export function VersionsPanel({
  model,
  versions,
  onCompare,
}: {
  model: string;
  versions: Figure<readonly Version[]>;
  onCompare: (version: string) => void;
}) {
  const names = words.versions;
  const metric = Object.keys(orElse(versions, [])[0]?.metrics ?? {})
    .filter((name) => !/^(baseline|val)_/.test(name))
    .sort()
    .slice(0, 3);
  return (
    <FigurePanel figure={versions} title={names.title} note={(rows) => rows.length} flush>
      {(rows) => (
        <DataTable
          label={names.title}
          rows={rows}
          rowKey={(row) => String(row.version)}
          rowName={(row) => `v${row.version}`}
          sort="-version"
          onOpen={(row) => onCompare(String(row.version))}
          empty={<Blank of={versions} icon="cube" title={names.none} />}
          columns={[
            {
              key: 'version',
              header: names.version,
              isName: true,
              sort: (row) => row.version,
              cell: (row) => <b className="med">v{row.version}</b>,
            },
            {
              key: 'aliases',
              header: names.aliases,
              className: 'full',
              cell: (row) => (
                <span className="row">
                  {row.aliases.map((alias) => (
                    <AliasChip key={alias} alias={alias} version={row.version} />
                  ))}
                </span>
              ),
            },
            ...metric.map((name, index) => ({
              key: name,
              drop: index === 2 ? ('medium' as const) : undefined,
              header: nameMetric(name),
              hint: name,
              numeric: true,
              sort: (row: Version) => row.metrics?.[name],
              cell: (row: Version) =>
                row.metrics?.[name] === undefined ? <NotMeasured /> : formatScore(row.metrics[name]),
            })),
            {
              key: 'data',
              header: names.data,
              className: 'drop-m',
              cell: (row) =>
                row.tags?.data_origin ? (
                  <Chip kind={row.tags.data_origin === 'generated' ? 'synth' : undefined}>
                    {names.origin[row.tags.data_origin] ?? row.tags.data_origin}
                  </Chip>
                ) : (
                  <span className="faint">–</span>
                ),
            },
            {
              key: 'run',
              header: names.run,
              drop: 'phone',
              cell: (row) => <CopyText value={row.runId} shown={shortenHash(row.runId)} />,
            },
            {
              key: 'created',
              header: names.created,
              sort: (row) => parseTime(row.createdAt)?.getTime(),
              cell: (row) => <RelativeTime at={row.createdAt} />,
            },
            {
              key: 'act',
              header: names.review,
              quietHeader: true,
              drop: 'phone',
              cell: (row) =>
                row.aliases.includes('Production') ? null : (
                  <Link
                    className="link small"
                    to="/models/$name/promote"
                    params={{ name: model }}
                    search={{ version: String(row.version) }}
                  >
                    {names.review}
                  </Link>
                ),
            },
          ]}
        />
      )}
    </FigurePanel>
  );
}
