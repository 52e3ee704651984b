import { useState } from 'react';
import { Form } from 'react-aria-components';
import { Problem } from '../../api/problem';
import { providersQuery } from '../../api/queries';
import { explainProblem } from '../../components/blank';
import { Button } from '../../components/button';
import { TextField } from '../../components/field';
import { Icon } from '../../components/icon';
import { Note } from '../../components/note';
import { Skeleton } from '../../components/skeleton';
import { loginAddress, signInWithPassword } from '../../state/auth';
import { text } from '../../text';
import { useQuery } from '../../state/query';
import { orElse, read } from '../../state/figure';

/** Explains why a single sign-on failed. */
export function explainSSOError(code: string): string {
  const words = text.login.sso;
  if (code.startsWith('idp_') && code !== 'idp_unreachable') return words.idp(code.slice(4).replaceAll('_', ' '));
  const known = words[code as keyof typeof words];
  return typeof known === 'string' ? known : words.other(code);
}

function explainLogin(error: unknown): string {
  if (!(error instanceof Problem)) return explainProblem(error).title;
  const words = text.login.failed;
  return words[error.code as keyof typeof words] ?? error.message;
}

/** The ways to sign in: the organisation's first, then the local password. */
export function LoginForm({ returnTo, onSignedIn }: { returnTo: string; onSignedIn: () => void }) {
  const providers = useQuery(providersQuery);
  const [password, setPassword] = useState('');
  const [failure, setFailure] = useState<string>();
  const [pending, setPending] = useState(false);
  if (providers.isPending) return <Skeleton shape="text" rows={2} />;
  // Without an answer the password form is still offered: it is the break-glass way.
  const list = orElse(
    read(providers, (data) => data.providers),
    [],
  );
  const local = providers.data?.local_login ?? true;
  const submit = async (): Promise<void> => {
    setPending(true);
    setFailure(undefined);
    try {
      await signInWithPassword(password);
      onSignedIn();
    } catch (error) {
      setFailure(explainLogin(error));
    } finally {
      setPending(false);
    }
  };
  return (
    <>
      {providers.isError && (
        <Note kind="warn" title={text.login.providersFailed}>
          {explainProblem(providers.error).hint}
        </Note>
      )}
      {list.length === 0 && !local && (
        <Note kind="critical" title={text.login.noWay}>
          {text.login.noWayHint}
        </Note>
      )}
      {list.length > 0 && (
        <div className="sso">
          {list.map((provider, i) => (
            <a
              key={provider.name}
              className={i === 0 ? 'btn wide primary' : 'btn wide'}
              href={loginAddress(provider.login_url, returnTo)}
            >
              {i === 0 && <Icon name="key" small />}
              {text.login.withProvider(provider.display_name)}
            </a>
          ))}
        </div>
      )}
      {list.length > 0 && local && <div className="or">{text.login.or}</div>}
      {local && (
        <Form
          className="stack"
          validationBehavior="aria"
          onSubmit={(event) => {
            event.preventDefault();
            void submit();
          }}
        >
          <TextField
            label={text.login.password}
            type="password"
            name="password"
            autoComplete="current-password"
            large
            isRequired
            autoFocus={list.length === 0}
            value={password}
            onChange={setPassword}
            error={failure}
            hint={list.length > 0 ? text.login.breakGlassHint : undefined}
          />
          <Button type="submit" wide kind={list.length === 0 ? 'primary' : undefined} isDisabled={pending}>
            {text.login.submit}
          </Button>
        </Form>
      )}
    </>
  );
}
