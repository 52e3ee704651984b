import { useEffect, useState, useSyncExternalStore } from 'react';
import { ProblemNote } from '../components/act-dialog';
import { Button } from '../components/button';
import { Dialog } from '../components/dialog';
import { TextField } from '../components/field';
import { Icon } from '../components/icon';
import { Note } from '../components/note';
import { Facts } from '../components/stat';
import { formatDuration } from '../format/time';
import {
  getStepUp,
  missingSecrets,
  setStepUp,
  storePendingAct,
  subscribeToStepUp,
  takePendingAct,
  useAct,
} from '../state/acts';
import { loginAddress, signInWithPassword, useMe } from '../state/auth';
import { text } from '../text';

const words = text.shell.stepUp;

/** Picks up an act that went to the provider for a fresh sign-in. */
export function resumePendingAct(ssoError: string | undefined): boolean {
  const pending = takePendingAct();
  if (!pending) return false;
  setStepUp({ ...pending, returned: ssoError ? 'not_met' : 'met' });
  return true;
}

/** Prompts for a fresh sign-in, naming the act, and then for one more confirmation. */
export function StepUpDialog() {
  const stepUp = useSyncExternalStore(subscribeToStepUp, getStepUp);
  const me = useMe();
  const [password, setPassword] = useState('');
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const [failure, setFailure] = useState<unknown>();
  const { pending, problem, perform, reset } = useAct();
  useEffect(() => {
    setPassword('');
    setTyped({});
    setFailure(undefined);
    reset();
  }, [stepUp, reset]);
  if (!stepUp) return null;
  const close = (): void => setStepUp(undefined);
  const age = formatDuration(stepUp.maxAge * 1000);
  const facts = (
    <Facts
      facts={[
        [words.act, <b className="med">{stepUp.act.title}</b>],
        [words.signedInAs, `${me?.name ?? me?.sub ?? ''}${me?.idp ? `, ${me.idp}` : ''}`],
        stepUp.returned
          ? undefined
          : [
              words.needs,
              stepUp.acrValues.length
                ? words.needsAcr(stepUp.acrValues.join(', '), stepUp.maxAge)
                : words.needsAge(stepUp.maxAge),
            ],
      ]}
    />
  );
  if (stepUp.returned === 'met') {
    const missing = missingSecrets(stepUp.act);
    const act = missing.length
      ? { ...stepUp.act, body: { ...(stepUp.act.body as Record<string, unknown>), ...typed } }
      : stepUp.act;
    const confirm = async (): Promise<void> => {
      const result = await perform(act);
      if (result?.done) close();
    };
    return (
      <Dialog
        title={words.confirmTitle}
        isOpen
        alert
        onClose={close}
        footer={
          <>
            <Button onPress={close}>{text.common.cancel}</Button>
            <Button
              kind="primary"
              isDisabled={pending || missing.some((name) => !typed[name])}
              onPress={() => void confirm()}
            >
              {stepUp.act.confirm}
            </Button>
          </>
        }
      >
        <p className="muted">{words.confirmHint}</p>
        {facts}
        {missing.length > 0 && <p className="muted">{words.typeAgain}</p>}
        {missing.map((name) => (
          <TextField
            key={name}
            label={name}
            type="password"
            autoComplete="new-password"
            value={typed[name] ?? ''}
            onChange={(value) => setTyped((old) => ({ ...old, [name]: value }))}
          />
        ))}
        {problem !== undefined && <ProblemNote error={problem} />}
      </Dialog>
    );
  }
  const signIn = async (): Promise<void> => {
    try {
      await signInWithPassword(password);
      setStepUp({ ...stepUp, returned: 'met' });
    } catch (error) {
      setFailure(error);
    }
  };
  const viaSSO = stepUp.loginUrl !== undefined;
  return (
    <Dialog
      title={words.title}
      isOpen
      alert
      onClose={close}
      footer={
        <>
          <Button onPress={close}>{text.common.cancel}</Button>
          {viaSSO ? (
            <a
              className="btn primary"
              href={loginAddress(stepUp.loginUrl ?? '', location.pathname + location.search)}
              onClick={() => storePendingAct(stepUp)}
            >
              <Icon name="key" small />
              {words.withSSO}
            </a>
          ) : (
            <Button kind="primary" icon="key" isDisabled={password === ''} onPress={() => void signIn()}>
              {words.withPassword}
            </Button>
          )}
        </>
      }
    >
      {stepUp.returned === 'not_met' ? (
        <Note kind="critical" role="alert" title={words.notMet}>
          {words.notMetHint}
        </Note>
      ) : (
        <p className="muted">{stepUp.acrValues.length ? words.explainFactor(age) : words.explain(age)}</p>
      )}
      {facts}
      {!viaSSO && (
        <TextField
          label={words.password}
          type="password"
          autoComplete="current-password"
          large
          autoFocus
          value={password}
          onChange={setPassword}
          onKeyDown={(event) => event.key === 'Enter' && password && void signIn()}
        />
      )}
      {failure !== undefined && <ProblemNote error={failure} />}
      <Note title={words.nothingYet}>{words.returns}</Note>
    </Dialog>
  );
}
