// The credential of a password session. An SSO session is a cookie that scripts never see.

const KEY = 'dashboard_auth';

export interface PasswordSession {
  token: string;
  role: 'viewer' | 'admin';
  expires_at: string;
}

/** Returns the stored session, unless it is damaged or has expired. */
export function readSession(): PasswordSession | undefined {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? 'null') as PasswordSession | null;
    if (!stored || typeof stored.token !== 'string' || new Date(stored.expires_at).getTime() <= Date.now())
      return undefined;
    return stored;
  } catch {
    return undefined;
  }
}

export function storeSession(session: PasswordSession): void {
  const { token, role, expires_at } = session;
  localStorage.setItem(KEY, JSON.stringify({ token, role, expires_at }));
}

export function clearSession(): void {
  localStorage.removeItem(KEY);
}

/** Returns the headers that authenticate a request: the bearer, or for a cookie the proof that this page sent it. */
export function credentialHeaders(): Record<string, string> {
  const session = readSession();
  return session ? { Authorization: `Bearer ${session.token}` } : { 'X-PLATFORM-CSRF': '1' };
}
