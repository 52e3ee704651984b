import { Dialog } from '../components/dialog';
import { LoginForm } from '../screens/login/form';
import { useSessionOver } from '../state/auth';
import { text } from '../text';

const words = text.shell.sessionOver;

/** Prompts for a sign-in over the page, which stays as it was. */
export function LoginDialog() {
  const over = useSessionOver();
  return (
    <Dialog title={words.title} isOpen={over} onClose={() => undefined} alert>
      <p className="muted">{words.expired}</p>
      <LoginForm returnTo={location.pathname + location.search} onSignedIn={() => undefined} />
      <p className="small faint">{words.kept}</p>
    </Dialog>
  );
}
