import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { Problem } from '../../api/problem';
import { modelPromotionsQuery, modelQuery, policyQuery, versionGateQuery } from '../../api/queries';
import { Blank, ErrorBlank, Message, UnmeasuredBlank } from '../../components/blank';
import { Button } from '../../components/button';
import { Icon, type StateKind } from '../../components/icon';
import { ButtonLink } from '../../components/link';
import { PageHead } from '../../components/page';
import { Panel } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import { read, orElse } from '../../state/figure';
import { useNow } from '../../state/now';
import { text } from '../../text';
import { ApproveStep } from './approve';
import { CandidateStep, GateStep, isOpen, MetricsStep } from './judge';
import {
  defaultCandidate,
  holderOf,
  isStep,
  isUnderWay,
  promotionOf,
  stepNames,
  type Policy,
  type Promotion,
  type StepName,
  type Version,
} from './steps';
import { WatchStep } from './watch';
import { useQuery } from '../../state/query';
import { useEvidence, EvidenceProvider } from '../../components/evidence';

const route = getRouteApi('/shell/models/$name/promote');
const words = text.promote;

/** What every step works on. */
export interface Wizard {
  model: string;
  trackerName: string;
  versions: readonly Version[];
  candidate: Version;
  /** The version under the target, which the candidate would replace. */
  current?: Version;
  from: string;
  to: string;
  policy?: Policy;
  promotion?: Promotion;
}

export function PromoteScreen() {
  const { name } = route.useParams();
  const model = useQuery(modelQuery(name));
  const policy = useQuery(policyQuery(name));
  const missing = model.error instanceof Problem && model.error.status === 404;
  const versions = read(model, (view) => view.detail.versions, ['tracker']);
  if (!model.data || policy.isPending || versions.kind !== 'measured') {
    return (
      <>
        <PageHead title={words.title(name)} />
        <Panel title={words.steps.candidate} flush>
          {missing ? (
            <Message icon="cube" title={text.model.notFound(name)}>
              {text.model.notFoundHint}
            </Message>
          ) : model.isError ? (
            <ErrorBlank error={model.error} onRetry={() => void model.refetch()} />
          ) : versions.kind === 'failed' || versions.kind === 'unmeasured' ? (
            <UnmeasuredBlank why={versions.why} />
          ) : (
            <div className="sk-pad">
              <Skeleton shape="list" />
            </div>
          )}
        </Panel>
      </>
    );
  }
  const { detail } = model.data;
  return (
    <EvidenceProvider value={versions}>
      <PromoteWizard
        key={detail.name}
        model={detail.name}
        trackerName={detail.trackerName}
        versions={versions.value}
        policy={policy.data}
      />
    </EvidenceProvider>
  );
}

type WizardProps = Pick<Wizard, 'model' | 'trackerName' | 'versions' | 'policy'>;

function PromoteWizard({ model, trackerName, versions, policy }: WizardProps) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const of = useEvidence();
  const now = useNow();
  const promotions = orElse(
    read(useQuery(modelPromotionsQuery(model)), (page) => page.items),
    [],
  );
  const from = policy?.from_alias ?? 'Staging';
  const to = policy?.to_alias ?? 'Production';
  // Once the alias has moved, the address still names what was promoted.
  const candidate =
    versions.find((version) => String(version.version) === search.version) ?? defaultCandidate(versions, from, to);
  const version = candidate ? String(candidate.version) : '';
  const gate = useQuery(versionGateQuery(model, version, from, to));
  const promotion = promotionOf(promotions, candidate, to, now.getTime());
  const step: StepName = isStep(search.step) ? search.step : 'candidate';
  const go = (next: StepName, change: { version?: string } = {}): void =>
    void navigate({ search: (prev) => ({ ...prev, version, ...change, step: next }), resetScroll: false });
  useFocusOnStep(step);
  // Decided here, by a colleague, or after a step-up: the next thing to see is the reload.
  const underWay = isUnderWay(promotion);
  const wasUnderWay = useRef(underWay);
  useEffect(() => {
    if (underWay && !wasUnderWay.current && step === 'approve') go('watch');
    wasUnderWay.current = underWay;
  });
  const head = (
    <PageHead
      title={words.title(model)}
      sub={words.sub(from, to)}
      actions={
        <ButtonLink to="/models/$name" params={{ name: model }}>
          {words.toModel(model)}
        </ButtonLink>
      }
    />
  );
  if (!candidate) {
    return (
      <>
        {head}
        <Panel title={words.candidate.title} flush>
          <Blank
            of={of}
            icon="cube"
            title={versions.length ? words.candidate.none : words.candidate.noVersions}
            actions={
              <ButtonLink to="/models/$name" params={{ name: model }} search={{ act: 'retrain' }}>
                {words.candidate.retrain}
              </ButtonLink>
            }
          >
            {words.candidate.noneHint(from, to)}
          </Blank>
        </Panel>
      </>
    );
  }
  const current = holderOf(versions, to);
  const wizard: Wizard = {
    model,
    trackerName,
    versions,
    candidate,
    current: current?.version === candidate.version ? undefined : current,
    from,
    to,
    policy,
    promotion,
  };
  const place = stepNames.indexOf(step);
  const previous = stepNames[place - 1];
  const next = stepNames[place + 1];
  return (
    <>
      {head}
      <Stepper step={step} gateKind={gate.data && (isOpen(gate.data) || underWay ? 'ok' : 'critical')} onGo={go} />
      <div className="stack wizard" id="step">
        {step === 'candidate' && (
          <CandidateStep wizard={wizard} onChoose={(chosen) => go('candidate', { version: chosen })} />
        )}
        {step === 'metrics' && <MetricsStep wizard={wizard} />}
        {step === 'gate' && <GateStep wizard={wizard} gate={gate} />}
        {step === 'approve' && <ApproveStep wizard={wizard} gate={gate} />}
        {step === 'watch' && <WatchStep wizard={wizard} onBack={() => go('approve')} />}
        <div className="wizard-foot">
          {previous ? <Button onPress={() => go(previous)}>{words.back}</Button> : <span />}
          {next && step !== 'watch' && (step !== 'approve' || underWay) && (
            <Button kind={step === 'approve' && !underWay ? undefined : 'primary'} onPress={() => go(next)}>
              {words.next[step]}
            </Button>
          )}
        </div>
      </div>
    </>
  );
}

interface StepperProps {
  step: StepName;
  gateKind: StateKind | undefined;
  onGo: (step: StepName) => void;
}

/** The five steps; each may be opened, since looking changes nothing. */
function Stepper({ step, gateKind, onGo }: StepperProps) {
  const place = stepNames.indexOf(step);
  return (
    <nav aria-label={words.stepsLabel}>
      <p className="small muted only-s">{words.stepOf(place + 1, stepNames.length)}</p>
      <ol className="stepper">
        {stepNames.map((name, i) => (
          <li key={name} data-done={i < place || undefined}>
            <button type="button" aria-current={name === step ? 'step' : undefined} onClick={() => onGo(name)}>
              <span className="n" aria-hidden="true">
                {i < place ? <Icon name="check" small /> : i + 1}
              </span>
              <span className="name">{words.steps[name]}</span>
              {name === 'gate' && gateKind === 'critical' && (
                <>
                  <Icon name="critical" small className="st-critical" />
                  <span className="vh">{words.gate.held}</span>
                </>
              )}
            </button>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** Moves the focus to a step as it opens, as a page load would; not on the first. */
function useFocusOnStep(step: StepName): void {
  const last = useRef(step);
  useEffect(() => {
    if (last.current !== step)
      document.querySelector<HTMLElement>('#step .panel h2')?.scrollIntoView({ block: 'nearest' });
    last.current = step;
  }, [step]);
}
