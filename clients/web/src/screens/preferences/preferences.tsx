import { useSyncExternalStore, type ReactNode } from 'react';
import { Button } from '../../components/button';
import { Chip } from '../../components/chip';
import { Note } from '../../components/note';
import { PageHead } from '../../components/page';
import { Panel } from '../../components/panel';
import { Segments } from '../../components/seg';
import { Skeleton } from '../../components/skeleton';
import { Facts } from '../../components/stat';
import { RelativeTime } from '../../components/time';
import { signOut, useMe } from '../../state/auth';
import {
  choicesOf,
  readPreference,
  storePreference,
  subscribeToPreferences,
  type Preferences,
} from '../../state/preferences';
import { text } from '../../text';

const words = text.preferences;

/** Labels of the choices on the buttons. */
const names: { [K in keyof Preferences]: Record<Preferences[K], string> } = {
  theme: text.shell.themes,
  density: text.shell.densities,
  language: words.languages,
  keys: { on: words.keysOn, off: words.keysOff },
};

export function PreferencesScreen() {
  const me = useMe();
  return (
    <>
      <PageHead title={words.title} sub={words.sub} />
      <div className="stack prefs">
        <Panel title={words.look} flush>
          <Choice name="theme" label={words.theme} hint={words.themeHint} />
          <Choice name="density" label={words.density} hint={words.densityHint} />
        </Panel>
        <Panel title={words.languageTitle} flush>
          <Choice
            name="language"
            label={words.language}
            hint={words.languageHint}
            // The catalogue is read once, when the page is loaded.
            onChosen={() => location.reload()}
          />
        </Panel>
        <Panel title={words.keyboard} flush>
          <Choice name="keys" label={words.keys} hint={words.keysHint} />
        </Panel>
        <Panel
          title={words.account}
          actions={
            <Button icon="out" onPress={() => void signOut(me)}>
              {words.signOut}
            </Button>
          }
        >
          {me ? (
            <>
              <Facts
                facts={[
                  [words.signedInAs, me.name ? `${me.name} (${me.sub})` : me.sub],
                  [words.role, text.shell.roles[me.role]],
                  [words.tenant, me.tenant],
                  [words.how, `${text.shell.signedIn[me.auth_method]}${me.idp ? `, ${me.idp}` : ''}`],
                  [words.since, <RelativeTime at={me.auth_time} />],
                  [words.until, <RelativeTime at={me.expires_at} />],
                  [
                    words.may,
                    <span className="caps">
                      {me.capabilities.map((capability) => (
                        <Chip key={capability}>{capability}</Chip>
                      ))}
                    </span>,
                  ],
                ]}
              />
              {me.break_glass && <Note kind="warn">{words.breakGlass}</Note>}
            </>
          ) : (
            <Skeleton shape="text" />
          )}
        </Panel>
      </div>
    </>
  );
}

function Choice<K extends keyof Preferences>({
  name,
  label,
  hint,
  onChosen,
}: {
  name: K;
  label: string;
  hint: ReactNode;
  onChosen?: () => void;
}) {
  const value = useSyncExternalStore(subscribeToPreferences, () => readPreference(name));
  return (
    <div className="pref">
      <span>
        <span className="med db">{label}</span>
        <span className="faint small">{hint}</span>
      </span>
      <Segments<Preferences[K]>
        label={label}
        value={value}
        segments={choicesOf(name).map((choice) => ({ value: choice, label: names[name][choice] }))}
        onChange={(choice) => {
          if (choice === value) return;
          storePreference(name, choice);
          onChosen?.();
        }}
      />
    </div>
  );
}
