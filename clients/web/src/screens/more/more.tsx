import { Link } from '@tanstack/react-router';
import { flagsQuery } from '../../api/queries';
import { Icon } from '../../components/icon';
import { PageHead } from '../../components/page';
import { Panel } from '../../components/panel';
import { Button } from '../../components/button';
import { visibleGroups } from '../../shell/nav';
import { signOut, useMe } from '../../state/auth';
import { text } from '../../text';
import { useQuery } from '../../state/query';

/** On a phone: the pages that have no place in the bottom bar. */
export function MoreScreen() {
  const me = useMe();
  const flags = useQuery(flagsQuery).data?.flags;
  return (
    <>
      <PageHead
        title={text.shell.nav.more}
        sub={me && `${me.name ?? me.sub}, ${me.tenant}`}
        actions={
          <Button icon="out" onPress={() => void signOut(me)}>
            {text.shell.signOut}
          </Button>
        }
      />
      <div className="stack">
        {visibleGroups({ isAdmin: me?.role === 'admin', flags }).map((group) => (
          <Panel key={group.key} title={group.title ?? text.shell.mainNav} flush>
            <ul className="list">
              {group.entries.map((entry) => (
                <li key={entry.key}>
                  <Link to={entry.to}>
                    <Icon name={entry.icon} />
                    <span className="ttl">{entry.label}</span>
                  </Link>
                </li>
              ))}
            </ul>
          </Panel>
        ))}
      </div>
    </>
  );
}
