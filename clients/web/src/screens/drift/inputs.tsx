import { Link } from '@tanstack/react-router';
import { Problem } from '../../api/problem';
import { inputDriftQuery, type InputDrift } from '../../api/queries';
import { Blank, Message } from '../../components/blank';
import { Panel, QueryPanel } from '../../components/panel';
import { Measured, severityOf, State } from '../../components/state';
import { DataTable, type Column } from '../../components/table';
import { formatCount, formatZ } from '../../format/numbers';
import { text } from '../../text';
import { driftKinds } from './columns';
import { useQuery } from '../../state/query';

const words = text.drift;

/** How far the inputs of each model are from those of its baseline. */
export function InputDriftPanel() {
  const query = useQuery(inputDriftQuery);
  if (query.error instanceof Problem && query.error.status === 404)
    return (
      <Panel title={words.of.inputs} flush>
        <Message icon="unknown" title={words.inputsOff}>
          {words.inputsOffHint}
        </Message>
      </Panel>
    );
  const names = words.columns;
  const columns: Column<InputDrift>[] = [
    {
      key: 'status',
      header: names.status,
      isHealth: true,
      sort: (row) => severityOf[driftKinds[row.overall ?? row.status] ?? 'unknown'],
      cell: (row) => (
        <State kind={driftKinds[row.overall ?? row.status] ?? 'unknown'}>
          {words.statuses[row.overall ?? row.status] ?? row.status}
        </State>
      ),
    },
    {
      key: 'model',
      header: names.model,
      isName: true,
      sort: (row) => row.model,
      cell: (row) => (
        <Link to="/models/$name" params={{ name: row.model }}>
          {row.model}
        </Link>
      ),
    },
    {
      key: 'z',
      header: names.max,
      numeric: true,
      sort: (row) => row.max_z ?? row.z_score,
      cell: (row) => <Measured value={row.max_z ?? row.z_score}>{(z) => formatZ(z)}</Measured>,
    },
    {
      key: 'n',
      header: names.n,
      numeric: true,
      sort: (row) => row.n_snapshots,
      cell: (row) => <Measured value={row.n_snapshots}>{(n) => formatCount(n)}</Measured>,
    },
  ];
  return (
    <QueryPanel
      title={words.of.inputs}
      query={query}
      skeleton="table"
      flush
      empty={(data, of) =>
        data.length === 0 ? (
          <Blank of={of} icon="drift" title={words.empty}>
            {words.emptyHint}
          </Blank>
        ) : undefined
      }
    >
      {(data) => (
        <DataTable
          label={words.of.inputs}
          rows={data}
          columns={columns}
          rowKey={(row) => `${row.model}/${row.alias ?? ''}`}
          rowName={(row) => row.model}
          sort="status"
        />
      )}
    </QueryPanel>
  );
}
