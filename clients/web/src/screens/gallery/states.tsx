import { Problem } from '../../api/problem';
import { CopyText, ErrorBlank, Message } from '../../components/blank';
import { Button } from '../../components/button';
import { Chart, type Point } from '../../components/chart';
import { AliasChip, Chip, GeneratedChip } from '../../components/chip';
import { Keys } from '../../components/kbd';
import { Note } from '../../components/note';
import { Panel } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import { Impossible, NotMeasured, Pill, State, type StateKind } from '../../components/state';
import { formatRate } from '../../format/numbers';
import { HOUR, MINUTE } from '../../format/time';
import { text } from '../../text';

const words = text.gallery;
export const kinds: StateKind[] = ['ok', 'warn', 'critical', 'unknown', 'running'];

/** A made-up series that ends at the last full hour. */
export function wave(n: number, step: number, value: (i: number) => number | null): Point[] {
  const end = Math.floor(Date.now() / HOUR) * HOUR;
  return Array.from({ length: n }, (_, i): Point => [end - (n - 1 - i) * step, value(i)]);
}

/** A panel in each of its states, and the five states of an object. */
export function PanelStates() {
  const now = Date.now();
  return (
    <div className="grid cols-3 stretch">
      <Panel title={words.loading}>
        <Skeleton shape="chart" />
      </Panel>
      <Panel title={words.empty} flush>
        <Message icon="approve" title={words.emptyTitle} actions={<Button>{text.approvals.seeApproved}</Button>}>
          {words.emptyHint}
        </Message>
      </Panel>
      <Panel title={words.error} flush>
        <ErrorBlank
          error={
            new Problem(502, { code: 'upstream_credentials', detail: words.errorDetail, request_id: '0193-7c1e-a2f4' })
          }
          onRetry={() => undefined}
        />
      </Panel>
      <Panel title={words.partial} partial={['serving']} flush footer={words.partialNote}>
        <table className="table">
          <tbody>
            {kinds.slice(1, 4).map((kind) => (
              <tr key={kind}>
                <td>
                  <State kind={kind} />
                </td>
                <td className="num">
                  <NotMeasured />
                </td>
                <td className="num">
                  <Impossible />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Panel>
      <Panel title={words.late} asOf={new Date(now - 14 * MINUTE)}>
        <Chart
          label={words.lateLabel}
          points={wave(48, HOUR / 2, (i) => 6.5 + Math.sin(i / 3))}
          unit="ms, p95"
          format={formatRate}
          fromZero
          height={140}
          thresholds={[{ value: 20, kind: 'warn', label: text.common.chart.objective('20 ms') }]}
        />
      </Panel>
      <Panel title={words.notAllowed} flush>
        <ErrorBlank error={new Problem(403, { code: 'role_required', detail: words.notAllowedDetail })} />
      </Panel>
      <Panel title={words.off} flush>
        <ErrorBlank error={new Problem(403, { code: 'feature_off', detail: words.offDetail })} />
      </Panel>
      <Panel title={words.states} flush>
        <ul className="list">
          {kinds.map((kind) => (
            <li key={kind}>
              <div className="item">
                <span className="pc wide">
                  <Pill kind={kind} />
                </span>
                <span className="small muted">{words.meaning[kind]}</span>
              </div>
            </li>
          ))}
        </ul>
      </Panel>
      <Panel title={words.chips}>
        <div className="stack-s">
          <div className="row wrap">
            <AliasChip alias="Production" version={23} />
            <AliasChip alias="Canary" version={24} note="5 %" />
            <GeneratedChip />
            <Chip kind="mono">8f3a…c210</Chip>
            <Keys keys="g m" />
            <CopyText value="018f3a00-0000-7000-8000-000000000081" shown="018f…0081" />
          </div>
          <Note icon="users">{words.notes.plain}</Note>
          <Note kind="info">{words.notes.info}</Note>
          <Note kind="warn">{words.notes.warn}</Note>
          <Note kind="critical">{words.notes.critical}</Note>
        </div>
      </Panel>
    </div>
  );
}
