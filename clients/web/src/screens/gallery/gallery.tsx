import { useMemo, useState } from 'react';
import { Button } from '../../components/button';
import { Chart } from '../../components/chart';
import { Dialog } from '../../components/dialog';
import { DiffView } from '../../components/diff';
import { Feed } from '../../components/feed';
import { NumberField, Select, Switch, TextArea, TextField } from '../../components/field';
import { GateList } from '../../components/gate';
import { MenuButton } from '../../components/menu';
import { PageHead } from '../../components/page';
import { Panel } from '../../components/panel';
import { Segments } from '../../components/seg';
import { Sparkline } from '../../components/sparkline';
import { Figures, Meter } from '../../components/stat';
import { NotMeasured, State, type StateKind } from '../../components/state';
import { DataTable } from '../../components/table';
import { notify } from '../../components/toast';
import { formatAmount, formatRate, formatZ } from '../../format/numbers';
import { DAY, HOUR } from '../../format/time';
import { chosen, Unknown, withhold } from '../../state/figure';
import { text } from '../../text';
import { kinds, PanelStates, wave } from './states';

const words = text.gallery;

/** Every component in every state, for those who build pages and those who check them. */
export function GalleryScreen() {
  return (
    <>
      <PageHead title={words.title} sub={words.sub} />
      <div className="stack">
        <PanelStates />
        <Controls />
        <Charts />
        <Lists />
        <BigTable />
      </div>
    </>
  );
}

function Controls() {
  const [on, setOn] = useState(true);
  const [share, setShare] = useState(95);
  const [version, setVersion] = useState('23');
  const [dialog, setDialog] = useState<'plain' | 'alert'>();
  const close = (): void => setDialog(undefined);
  return (
    <div className="grid cols-3 stretch">
      <Panel title={words.buttons}>
        <div className="row wrap">
          <Button kind="primary">{words.primary}</Button>
          <Button>{words.plain}</Button>
          <Button kind="danger">{words.danger}</Button>
          <Button kind="ghost">{words.ghost}</Button>
          <Button kind="primary" disabledReason={words.disabledWhy}>
            {words.disabled}
          </Button>
          <Button icon="retry" iconOnly label={text.common.retry} />
        </div>
      </Panel>
      <Panel title={words.fields}>
        <div className="stack-s">
          <TextField
            label={words.textField}
            type="password"
            hint={words.hint}
            error={words.fault}
            defaultValue="wrong"
          />
          <div className="grid cols-2">
            <NumberField label={words.number} value={share} onChange={setShare} min={0} max={100} unit="%" />
            <Select
              label={words.select}
              value={version}
              onChange={setVersion}
              options={['23', '24'].map((id) => ({ id, label: `v${id}` }))}
            />
          </div>
          <TextArea label={words.area} rows={2} />
          <Switch label={words.toggle} isSelected={on} onChange={setOn} />
        </div>
      </Panel>
      <Panel title={words.overlays}>
        <div className="row wrap">
          <Button onPress={() => setDialog('plain')}>{words.openDialog}</Button>
          <Button onPress={() => setDialog('alert')}>{words.openAlert}</Button>
          <Button onPress={() => notify(words.toastOkText)}>{words.toastOk}</Button>
          <Button onPress={() => notify(words.toastFailedText, 'critical')}>{words.toastFailed}</Button>
          <MenuButton
            label={words.menu}
            button={{ children: words.menu }}
            entries={kinds.map((id) => ({ id, label: text.common.states[id] }))}
          />
        </div>
        <Dialog
          title={words.dialogTitle}
          isOpen={dialog !== undefined}
          alert={dialog === 'alert'}
          onClose={close}
          footer={
            <>
              <Button onPress={close}>{text.common.back}</Button>
              <Button kind="primary" onPress={close}>
                {words.primary}
              </Button>
            </>
          }
        >
          <p className="muted">{words.dialogBody}</p>
        </Dialog>
      </Panel>
    </div>
  );
}

function Charts() {
  const drift = useMemo(
    () => wave(168, HOUR, (i) => (i > 66 && i < 74 ? null : 0.6 + 0.2 * Math.sin(i / 5) + Math.max(0, i - 90) * 0.023)),
    [],
  );
  const end = drift.at(-1)?.[0] ?? 0;
  return (
    <>
      <Figures
        stats={[
          { label: words.figures, value: chosen('2.41'), unit: 'z', note: <State kind="warn" /> },
          {
            label: text.model.figures.requests,
            value: chosen('148'),
            unit: 'req/s',
            note: <Meter value={0.53} label={words.figures} />,
          },
          {
            label: text.model.figures.latency,
            value: withhold(chosen(0), new Unknown(text.common.figures.noValue)),
            note: <Meter value={undefined} label={text.common.notMeasured} />,
          },
        ]}
      />
      <Panel title={words.charts.drift}>
        <Chart
          label={words.charts.driftLabel}
          points={drift}
          unit="z score"
          format={formatZ}
          fromZero
          legend
          seriesLabel={words.charts.drift}
          band={[0, 1]}
          height={240}
          thresholds={[
            { value: 2, kind: 'warn', label: text.common.chart.warning('2.0') },
            { value: 3, kind: 'critical', label: text.common.chart.critical('3.0') },
          ]}
          events={[{ at: end - 5 * DAY, label: words.charts.event }]}
        />
      </Panel>
      <div className="grid cols-3 stretch">
        <Panel title={words.charts.area}>
          <Chart
            label={words.charts.areaLabel}
            points={wave(96, HOUR / 4, (i) => 250 + 160 * Math.cos(i / 15))}
            unit="req/s"
            format={formatRate}
            kind="area"
            height={150}
          />
        </Panel>
        <Panel title={words.charts.bars}>
          <Chart
            label={words.charts.barsLabel}
            points={wave(5, 7 * DAY, (i) => [38, 52, 41, 47, 73][i] ?? 0)}
            unit="USD"
            format={formatAmount}
            kind="bars"
            height={150}
          />
        </Panel>
        <Panel title={words.charts.none}>
          <Chart
            label={words.charts.none}
            points={wave(5, HOUR, () => null)}
            unit="ms"
            format={formatRate}
            height={150}
          />
        </Panel>
      </div>
    </>
  );
}

function Lists() {
  const [segment, setSegment] = useState<StateKind>('ok');
  return (
    <div className="grid cols-3 stretch">
      <Panel title={words.gate}>
        <GateList
          items={[
            { key: '1', kind: 'ok', title: words.checks[0], value: text.model.gate.passed },
            { key: '2', kind: 'critical', title: words.checks[1], value: '1,588 s', detail: words.checkDetail },
            { key: '3', kind: 'unknown', title: words.checks[2], value: text.model.gate.waiting },
          ]}
        />
      </Panel>
      <Panel
        title={words.feed}
        flush
        actions={
          <Segments
            label={words.states}
            value={segment}
            onChange={setSegment}
            segments={[
              { value: 'ok', label: text.common.states.ok, count: chosen(2) },
              { value: 'warn', label: text.common.states.warn },
            ]}
          />
        }
      >
        <Feed
          label={words.feed}
          entries={(['running', 'ok', 'critical'] as const).map((kind, i) => ({
            key: kind,
            icon: kind,
            kind,
            what: words.feedWhat,
            who: 'idp-a:1001',
            at: new Date(Date.now() - i * HOUR),
            fresh: i === 0,
          }))}
        />
      </Panel>
      <Panel title={words.diff}>
        <DiffView
          file="model.yaml"
          additions={2}
          deletions={1}
          patch={
            '@@ -12,3 +12,4 @@ training:\n   algorithm: gradient_boosted_trees\n-  trees: 300\n+  trees: 400\n+  early_stopping_rounds: 25\n'
          }
        />
      </Panel>
    </div>
  );
}

interface Sample {
  n: number;
  value: number | null;
  kind: StateKind;
}

function BigTable() {
  const rows = useMemo(
    () =>
      Array.from({ length: 1000 }, (_, n): Sample => ({
        n,
        value: n % 7 === 3 ? null : Math.abs(Math.sin(n)) * 100,
        kind: kinds[n % 5] ?? 'ok',
      })),
    [],
  );
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set(['1']));
  return (
    <Panel title={words.table} flush>
      <DataTable
        label={words.table}
        rows={rows}
        rowKey={(row) => String(row.n)}
        rowName={(row) => words.row(row.n)}
        selected={selected}
        onSelect={setSelected}
        sort="name"
        columns={[
          {
            key: 'state',
            header: words.column.state,
            isHealth: true,
            sort: (row) => row.kind,
            cell: (row) => <State kind={row.kind} />,
          },
          {
            key: 'name',
            header: words.column.name,
            isName: true,
            sort: (row) => row.n,
            cell: (row) => words.row(row.n),
          },
          {
            key: 'value',
            header: words.column.value,
            numeric: true,
            sort: (row) => row.value,
            cell: (row) => (row.value === null ? <NotMeasured /> : formatRate(row.value)),
          },
          {
            key: 'trend',
            header: words.column.trend,
            drop: 'phone',
            cell: (row) => (
              <Sparkline
                label={words.column.trend}
                points={row.value === null ? [] : [1, 3, null, 2, 5, row.value / 20]}
                state={row.kind}
              />
            ),
          },
        ]}
      />
    </Panel>
  );
}
