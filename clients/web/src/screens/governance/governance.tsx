import { useState } from 'react';
import { fetchLedger, governanceQuery, verifyLedgerQuery } from '../../api/queries';
import { explainProblem } from '../../components/blank';
import { Blank } from '../../components/blank';
import { Button } from '../../components/button';
import { downloadBlob } from '../../components/csv';
import { PageHead } from '../../components/page';
import { QueryPanel } from '../../components/panel';
import { State, type StateKind } from '../../components/state';
import { notify } from '../../components/toast';
import { read } from '../../state/figure';
import { useMay } from '../../state/auth';
import { text } from '../../text';
import { ChangesPanel } from './changes';
import { LedgerPanel } from './chain';
import { CardsPanel, CompliancePanel } from './compliance';
import { VerdictBanner } from './verdict';
import { useQuery } from '../../state/query';

const words = text.governance;

const controlStates: Record<string, StateKind> = { gap: 'critical', partial: 'warn', satisfied: 'ok' };
const controlOrder = ['gap', 'partial', 'satisfied'];

export function GovernanceScreen() {
  const query = useQuery(governanceQuery);
  const verdict = useQuery(verifyLedgerQuery);
  const mayRead = useMay('audit.read');
  const view = query.data;
  return (
    <>
      <PageHead
        title={words.title}
        says={[read(query, (data) => data.posture?.statement, ['posture'])]}
        actions={
          <>
            <Button
              icon="retry"
              isDisabled={verdict.isFetching}
              disabledReason={mayRead ? undefined : words.adminsVerify}
              onPress={() => void verdict.refetch()}
            >
              {verdict.isFetching ? words.verifying : words.verifyNow}
            </Button>
            <ExportButton />
          </>
        }
      />
      <div className="stack">
        {(view || query.isError) && <VerdictBanner ledger={read(query, (data) => data.audit, ['audit'])} />}
        <ChangesPanel />
        <div className="grid cols-main r-wide flip">
          <div className="stack">
            <LedgerPanel query={query} />
            <CompliancePanel query={query} />
          </div>
          <div className="stack">
            <QueryPanel
              title={words.controls.title}
              query={query}
              sources={['posture']}
              whole
              flush
              note={(data) => data.posture && words.controls.note(data.posture.satisfied, data.posture.total)}
              empty={(data, of) =>
                data.posture?.controls.length === 0 ? (
                  <Blank of={of} icon="shield" title={words.controls.none}>
                    {words.controls.noneHint}
                  </Blank>
                ) : undefined
              }
            >
              {(data) => (
                <ul className="ctl">
                  {[...(data.posture?.controls ?? [])]
                    .sort((a, b) => controlOrder.indexOf(a.status) - controlOrder.indexOf(b.status))
                    .map((control) => (
                      <li key={control.control}>
                        <details className="evidence">
                          <summary>
                            <span className="grow">
                              <span className="med db">{control.title}</span>
                              <span className="faint">
                                {control.control}, {control.function.toLowerCase()},{' '}
                                {control.evidence.length
                                  ? words.controls.evidence(control.evidence.length)
                                  : words.controls.noEvidence}
                              </span>
                            </span>
                            <State kind={controlStates[control.status] ?? 'unknown'}>
                              {words.controls.states[control.status]}
                            </State>
                          </summary>
                          <ul className="small muted">
                            {control.evidence.map((line) => (
                              <li key={line}>{line}</li>
                            ))}
                          </ul>
                        </details>
                      </li>
                    ))}
                </ul>
              )}
            </QueryPanel>
            <CardsPanel query={query} />
          </div>
        </div>
      </div>
    </>
  );
}

/** Hands over the whole ledger as a file that can be verified without this server. */
export function ExportButton({ since, until }: { since?: string; until?: string }) {
  const [busy, setBusy] = useState(false);
  const mayRead = useMay('audit.read');
  const save = async (): Promise<void> => {
    setBusy(true);
    try {
      downloadBlob(words.exportFile, await fetchLedger(since, until));
      notify(words.exported);
    } catch (error) {
      const { title, hint } = explainProblem(error);
      notify(`${title}. ${hint}`, 'critical');
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button
      icon="dl"
      isDisabled={busy}
      disabledReason={mayRead ? undefined : words.adminsVerify}
      onPress={() => void save()}
    >
      {busy ? words.exporting : words.exportLedger}
    </Button>
  );
}
