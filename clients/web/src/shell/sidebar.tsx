import { Link } from '@tanstack/react-router';
import { flagsQuery } from '../api/queries';
import { Count } from '../components/figure';
import { Icon } from '../components/icon';
import { MenuButton } from '../components/menu';
import { signOut, useMe } from '../state/auth';
import { text } from '../text';
import { useNavCounts, type NavCount } from './counts';
import { visibleGroups, type NavEntry } from './nav';
import { useQuery } from '../state/query';

const words = { hot: text.shell.count.firing, wait: text.shell.count.waiting, run: text.shell.count.running };

export function Sidebar({ current, onPreferences }: { current: string | undefined; onPreferences: () => void }) {
  const me = useMe();
  const flags = useQuery(flagsQuery).data?.flags;
  const counts = useNavCounts();
  const groups = visibleGroups({ isAdmin: me?.role === 'admin', flags });
  const initials = (me?.name ?? me?.sub ?? '').replace(/^.*:/, '').slice(0, 2).toUpperCase();
  return (
    <nav className="side" aria-label={text.shell.mainNav}>
      <div className="switch still" title={text.shell.oneTenant}>
        <span className="mark">
          <Icon name="drift" />
        </span>
        <span className="grow trunc">
          <b className="trunc">{me?.tenant}</b>
          <small className="trunc db">{location.host}</small>
        </span>
      </div>
      <div className="nav">
        {groups.map((group) => (
          <div className="nav-g" key={group.key} role="group" aria-label={group.title ?? text.shell.mainNav}>
            {group.title && <h2 aria-hidden="true">{group.title}</h2>}
            {group.entries.map((entry) => (
              <NavLink key={entry.key} entry={entry} current={current === entry.key} count={counts[entry.key]} />
            ))}
          </div>
        ))}
        <Link to="/more" className="mob only-s">
          <Icon name="menu" />
          <span>{text.shell.nav.more}</span>
        </Link>
      </div>
      <div className="me">
        <span className="avatar" aria-hidden="true">
          {initials}
        </span>
        <span className="grow trunc">
          <span className="med trunc db" title={me?.sub}>
            {me?.name ?? me?.sub}
          </span>
          <span className="faint trunc db">
            {me && `${text.shell.roles[me.role]}, ${text.shell.signedIn[me.auth_method]}`}
          </span>
        </span>
        <MenuButton
          label={text.shell.account}
          placement="top end"
          button={{ kind: 'ghost', icon: 'more', iconOnly: true, label: text.shell.account }}
          entries={[
            { id: 'preferences', label: text.shell.nav.preferences, icon: 'gear' },
            { id: 'out', label: text.shell.signOut, icon: 'out' },
          ]}
          onAction={(id) => (id === 'out' ? void signOut(me) : onPreferences())}
        />
      </div>
    </nav>
  );
}

function NavLink({ entry, current, count }: { entry: NavEntry; current: boolean; count?: NavCount }) {
  return (
    <Link
      to={entry.to}
      className={entry.mobile ? 'mob' : undefined}
      aria-current={current ? 'page' : undefined}
      activeProps={{}}
      title={entry.label}
    >
      <Icon name={entry.icon} />
      <span>{entry.label}</span>
      {count?.value.kind === 'measured'
        ? count.value.value > 0 && (
            <span className={`count ${count.kind}`}>
              {count.value.value}
              <span className="vh"> {words[count.kind]}</span>
            </span>
          )
        : count && <Count figure={count.value} className="count nm" />}
    </Link>
  );
}
