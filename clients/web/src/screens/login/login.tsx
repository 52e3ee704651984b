import { getRouteApi, useNavigate, useRouter } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { Icon } from '../../components/icon';
import { Note } from '../../components/note';
import { useDocumentTitle } from '../../components/page';
import { safeReturnTo } from '../../state/auth';
import { text } from '../../text';
import { explainSSOError, LoginForm } from './form';

const route = getRouteApi('/login');

export function LoginScreen() {
  useDocumentTitle(text.login.title);
  const search = route.useSearch();
  const navigate = useNavigate();
  const router = useRouter();
  const returnTo = safeReturnTo(search.return_to);
  // The error is read once and leaves the address, so that a reload or a bookmark does not repeat it.
  const [ssoError] = useState(search.sso_error);
  useEffect(() => {
    if (search.sso_error) void navigate({ to: '/login', search: { return_to: search.return_to }, replace: true });
  }, [search.sso_error, search.return_to, navigate]);
  return (
    <main className="login" id="main">
      <div className="form">
        <div className="box">
          <div className="row">
            <span className="switch-mark">
              <Icon name="drift" />
            </span>
            <b className="strong">{text.common.product}</b>
          </div>
          <div>
            <h1>{text.login.title}</h1>
            <p className="muted">{text.login.to(location.host)}</p>
          </div>
          {ssoError ? (
            <Note kind="critical" role="alert">
              {explainSSOError(ssoError)}
            </Note>
          ) : (
            returnTo !== '/' && <Note title={text.login.returning}>{text.login.returningHint}</Note>
          )}
          <LoginForm returnTo={returnTo} onSignedIn={() => router.history.push(returnTo)} />
        </div>
      </div>
      <LoopArt />
    </main>
  );
}

const CENTRE = 300;
const RADIUS = 160;

/** The loop that the product is about, as a ring of its seven stages. */
function LoopArt() {
  const stages = text.login.stages;
  const place = (i: number, radius: number): [number, number] => {
    const angle = (i / stages.length) * 2 * Math.PI - Math.PI / 2;
    return [CENTRE + radius * Math.cos(angle), 270 + radius * Math.sin(angle)];
  };
  const [x, y] = place(1, RADIUS);
  return (
    <div className="art">
      <svg viewBox="0 0 600 540" role="img" aria-label={text.login.loopLabel}>
        <circle className="ring-l" cx={CENTRE} cy="270" r={RADIUS} />
        <circle className="ring-l" cx={CENTRE} cy="270" r="112" strokeDasharray="1 5" />
        <path className="arc" d={`M${CENTRE} ${270 - RADIUS}A${RADIUS} ${RADIUS} 0 0 1 ${x} ${y}`} />
        {stages.map((stage, i) => {
          const [cx, cy] = place(i, RADIUS);
          const [tx, ty] = place(i, RADIUS + 26);
          const side = Math.abs(tx - CENTRE) < 20 ? 'middle' : tx > CENTRE ? 'start' : 'end';
          return (
            <g key={stage}>
              <circle className={i === 1 ? 'nd on' : 'nd'} cx={cx} cy={cy} r="6" />
              <text x={tx} y={ty + 4} textAnchor={side}>
                {stage}
              </text>
            </g>
          );
        })}
        {text.login.claim.map((line, i) => (
          <text key={line} className="c1" x={CENTRE} y={264 + i * 26} textAnchor="middle">
            {line}
          </text>
        ))}
      </svg>
    </div>
  );
}
