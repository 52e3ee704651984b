import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { llmopsQuery, modelCardsQuery, registryQuery } from '../../api/queries';
import type { components } from '../../api/gen/dashboard';
import { ActDialog } from '../../components/act-dialog';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { Select, TextField } from '../../components/field';
import { ButtonLink } from '../../components/link';
import { QueryPanel } from '../../components/panel';
import { Meter } from '../../components/stat';
import { State } from '../../components/state';
import { DataTable, type Column } from '../../components/table';
import { formatShare } from '../../format/numbers';
import { useMay } from '../../state/auth';
import { text } from '../../text';
import { useQuery, type Reading } from '../../state/query';
import { orElse, read } from '../../state/figure';

type View = components['schemas']['GovernanceView'];
type Row = components['schemas']['ComplianceRow'];

const words = text.governance.compliance;
const riskClasses = ['minimal', 'limited', 'high', 'prohibited'] as const;

const columns: Column<Row>[] = [
  {
    key: 'model',
    header: words.model,
    isName: true,
    sort: (row) => row.model,
    cell: (row) => (
      <Link to="/models/$name" params={{ name: row.model }}>
        {row.model}
      </Link>
    ),
  },
  { key: 'version', header: words.version, numeric: true, sort: (row) => row.version, cell: (row) => row.version },
  {
    key: 'risk',
    header: words.riskClass,
    sort: (row) => -riskClasses.indexOf(row.riskClass as (typeof riskClasses)[number]),
    cell: (row) => words.classes[row.riskClass] ?? row.riskClass,
  },
  {
    key: 'file',
    header: words.technicalFile,
    sort: (row) => Number(row.technicalFile),
    cell: (row) => <Present yes={row.technicalFile} />,
  },
  {
    key: 'provenance',
    header: words.provenance,
    sort: (row) => Number(row.provenance),
    cell: (row) => <Present yes={row.provenance} />,
  },
];

function Present({ yes }: { yes: boolean }) {
  return <State kind={yes ? 'ok' : 'warn'}>{yes ? words.present : words.missing}</State>;
}

/** What risk each version is classed as, and whether its papers are there. */
export function CompliancePanel({ query }: { query: Reading<View> }) {
  const [open, setOpen] = useState(false);
  const mayWrite = useMay('proxy.write');
  const classify = mayWrite && (
    <Button small onPress={() => setOpen(true)}>
      {words.classify}
    </Button>
  );
  return (
    <>
      <QueryPanel
        title={words.title}
        query={query}
        sources={['compliance']}
        flush
        skeleton="table"
        note={(view) => view.compliance && words.note(view.compliance.count)}
        actions={(view) => (view.compliance?.rows.length ? classify : undefined)}
        empty={(view, of) =>
          view.compliance ? (
            view.compliance.rows.length === 0 ? (
              <Blank
                of={of}
                icon="shield"
                title={words.none}
                actions={classify || <ButtonLink to="/models">{words.toRegistry}</ButtonLink>}
              >
                {words.noneHint}
              </Blank>
            ) : undefined
          ) : (
            <Blank of={of} icon="unknown" title={text.common.errors.upstream_unavailable} />
          )
        }
      >
        {(view) => (
          <DataTable
            label={words.title}
            rows={view.compliance?.rows ?? []}
            columns={columns}
            rowKey={(row) => `${row.model} ${row.version}`}
            rowName={(row) => `${row.model} ${row.version}`}
            sort="risk"
          />
        )}
      </QueryPanel>
      <ClassifyDialog isOpen={open} onClose={() => setOpen(false)} />
    </>
  );
}

function ClassifyDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const rows = orElse(
    read(useQuery({ ...registryQuery, enabled: isOpen }), (view) => view.registry.rows, ['tracker']),
    [],
  );
  const [model, setModel] = useState('');
  const [version, setVersion] = useState('');
  const [risk, setRisk] = useState<string>('limited');
  const [file, setFile] = useState('');
  const choose = (name: string): void => {
    setModel(name);
    const row = rows.find((each) => each.name === name);
    setVersion(String(row?.aliases?.Production ?? row?.version ?? ''));
  };
  return (
    <ActDialog
      title={words.dialog(model, version)}
      isOpen={isOpen}
      onClose={onClose}
      blocked={model === '' ? words.missingModel : version.trim() === '' ? words.missingVersion : undefined}
      act={() => ({
        title: words.dialog(model, version),
        method: 'PUT',
        path: `/api/proxy/control_plane/compliance/${encodeURIComponent(model)}/${encodeURIComponent(version.trim())}`,
        body: { riskClass: risk, ...(file.trim() && { technicalFilePath: file.trim() }) },
        confirm: words.confirm,
        done: words.done(model, version),
        topics: ['governance'],
      })}
    >
      <p className="muted">{words.explain}</p>
      <Select
        label={words.model}
        placeholder={words.pick}
        options={rows.map((row) => ({ id: row.name, label: row.name }))}
        value={model || null}
        onChange={choose}
      />
      <TextField label={words.version} value={version} onChange={setVersion} isRequired />
      <Select
        label={words.riskClass}
        options={riskClasses.map((id) => ({ id, label: words.classes[id] ?? id }))}
        value={risk}
        onChange={setRisk}
      />
      <TextField label={words.technicalFile} hint={words.technicalFileHint} value={file} onChange={setFile} />
    </ActDialog>
  );
}

/** How many models state their purpose; the others are named. */
export function CardsPanel({ query }: { query: Reading<View> }) {
  const cards = useQuery(modelCardsQuery).data;
  const rows = useQuery(registryQuery).data?.registry.rows;
  const carded = new Set(cards?.items.map((card) => card.model.toUpperCase()));
  const hosted = useQuery(llmopsQuery).data?.endpoints.rows;
  // Cards are counted over registered and over hosted models; only registered ones have a page.
  const known = [
    ...(rows ?? []).map((row) => ({ name: row.name, id: row.trackerName.toUpperCase(), to: '/models/$name' as const })),
    ...(hosted ?? []).map((row) => ({ name: row.model, id: row.model.toUpperCase(), to: '/llmops' as const })),
  ];
  const without = cards && !cards.next_cursor ? known.filter((model) => !carded.has(model.id)) : [];
  const w = text.governance.cards;
  return (
    <QueryPanel
      title={w.title}
      query={query}
      sources={['cards']}
      note={(view) => view.cards && w.note(view.cards.withCard, view.cards.total)}
      empty={(view, of) =>
        view.cards ? (
          view.cards.total === 0 ? (
            <Blank of={of} icon="book" title={w.none}>
              {w.noneHint}
            </Blank>
          ) : undefined
        ) : (
          <Blank of={of} icon="unknown" title={text.common.errors.upstream_unavailable} />
        )
      }
    >
      {(view) => {
        const { coverage = 0, withoutCard = 0 } = view.cards ?? {};
        return (
          <div className="stack-s">
            <p className="small muted">{w.coverage(formatShare(coverage))}</p>
            <Meter
              value={coverage}
              label={w.coverage(formatShare(coverage))}
              kind={coverage >= 1 ? 'ok' : coverage > 0 ? 'warn' : 'critical'}
            />
            {withoutCard === 0 ? (
              <State kind="ok">{w.all}</State>
            ) : (
              without.length > 0 && (
                <p className="small">
                  <span className="faint">{w.without}: </span>
                  {without.map((model, i) => (
                    <span key={model.id}>
                      {i > 0 && ', '}
                      <Link className="link" to={model.to} params={{ name: model.name }}>
                        {model.name}
                      </Link>
                    </span>
                  ))}
                </p>
              )
            )}
          </div>
        );
      }}
    </QueryPanel>
  );
}
