package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
)

// ErrNoSession means that the request carries no session cookie.
var ErrNoSession = errors.New("no session cookie")

// Data is the state of a browser session. It is stored encrypted; the browser never sees it.
type Data struct {
	Subject, Name, Tenant     string
	Role                      caller.Role
	Provider, ProviderSubject string
	ACR                       string
	AuthTime                  time.Time
	IDToken                   string         // for the logout at the provider
	Claims                    map[string]any // for later checks against the trust file's rules
	CreatedAt                 time.Time      // set by Begin
	LastSeen                  time.Time      // set by Begin and Current
}

// ManagerConfig configures browser sessions.
type ManagerConfig struct {
	Verdicts *Verdicts
	Keys     *sealing.Keys
	Cookies  Cookies
	Lifetime time.Duration // from the sign-in; 8 h
	Idle     time.Duration // without a request; 2 h
	Now      func() time.Time
}

// Manager begins, finds and ends browser sessions. The state lives under the SHA-256 of the cookie's id, sealed with a
// key that is derived from the secret key and the cookie's secret: neither database nor cookie suffices alone.
type Manager struct {
	cfg ManagerConfig

	mu   sync.Mutex           // guards seen
	seen map[string]time.Time // by session id: the newest activity noted in the store, as far as known here
}

// NewManager refuses a missing part.
func NewManager(cfg ManagerConfig) (*Manager, error) {
	if err := service.RequireParts("session.Manager", cfg); err != nil {
		return nil, err
	}
	if cfg.Lifetime < time.Second || cfg.Idle < time.Second {
		return nil, errors.New("session.Manager: Lifetime and Idle must be given")
	}
	return &Manager{cfg: cfg, seen: map[string]time.Time{}}, nil
}

// maxState limits the JSON of a session, in bytes: the size of a provider's claims cannot be limited otherwise.
const maxState = 128 << 10

// Lifetime returns how long a session lasts from its sign-in.
func (m *Manager) Lifetime() time.Duration { return m.cfg.Lifetime }

// Cookies returns the cookie settings of this origin.
func (m *Manager) Cookies() Cookies { return m.cfg.Cookies }

// Begin starts a session under a new id, ends the one that the request's cookie names and sets the cookie: an id that
// was stolen or planted before is worthless afterwards.
func (m *Manager) Begin(c echo.Context, d Data) error {
	if d.Subject == "" || d.Tenant == "" || d.Role != caller.Viewer && d.Role != caller.Admin {
		return errors.New("session.Begin: subject, tenant and role must be given")
	}
	ctx := c.Request().Context()
	next, err := newTicket()
	if err != nil {
		return fmt.Errorf("begin session: %w", err)
	}
	d.CreatedAt = m.cfg.Now().UTC()
	d.LastSeen = d.CreatedAt
	sealed, err := m.seal(next, d)
	if err != nil {
		return fmt.Errorf("begin session: %w", err)
	}
	if err := m.touch(ctx, next.id, d.CreatedAt); err != nil {
		return err
	}
	if err := m.cfg.Verdicts.Put(ctx, Key(next.id), []byte(sealed), m.cfg.Lifetime); err != nil {
		return err
	}
	if before, err := m.ticketOf(c.Request()); err == nil {
		if err := m.remove(ctx, before.id); err != nil {
			return err
		}
	}
	m.setCookie(c, m.cfg.Cookies.New(SessionCookie, next.String(), http.SameSiteStrictMode, 0))
	return nil
}

// Current returns the session of the request's cookie and its id: ErrNoSession without a cookie, 401 invalid_token for
// one that names no live session, 503 if the store does not answer.
func (m *Manager) Current(c echo.Context) (Data, string, error) {
	ctx := c.Request().Context()
	t, err := m.ticketOf(c.Request())
	if err != nil {
		return Data{}, "", err
	}
	d, err := m.load(ctx, t)
	if err != nil {
		return Data{}, "", err
	}
	if d.LastSeen, err = m.noteActivity(ctx, t.id); err != nil {
		return Data{}, "", err
	}
	return d, t.id, nil
}

// End ends the session of the request's cookie on every replica and removes the browser's cookies. It also removes
// them if there is no session, but not if the session could not be ended: the person must be able to try again. It
// returns the ended session.
func (m *Manager) End(c echo.Context) (Data, error) {
	d, err := m.end(c)
	if !fault.SessionStoreUnavailable.Has(err) {
		m.setCookie(c, m.cfg.Cookies.Expired(SessionCookie, http.SameSiteStrictMode))
		m.setCookie(c, m.cfg.Cookies.Expired(BrowserCookie, http.SameSiteLaxMode))
	}
	return d, err
}

func (m *Manager) end(c echo.Context) (Data, error) {
	ctx := c.Request().Context()
	t, err := m.ticketOf(c.Request())
	if err != nil {
		return Data{}, err
	}
	d, err := m.load(ctx, t)
	if err != nil {
		return Data{}, err
	}
	return d, m.remove(ctx, t.id)
}

// Alive returns nil while the session is live: 401 invalid_token once it was ended or idle for too long, 503 if the
// store does not answer. It is for streams, which outlive the request that began them, and does not count as activity.
func (m *Manager) Alive(ctx context.Context, id string) error {
	if err := m.exists(ctx, id); err != nil {
		return err
	}
	m.mu.Lock()
	known := m.seen[id]
	m.mu.Unlock()
	if m.cfg.Now().Sub(known) < m.cfg.Idle {
		return nil
	}
	last, err := m.storedActivity(ctx, id)
	if err != nil {
		return unavailable(err)
	}
	if m.cfg.Now().Sub(last) >= m.cfg.Idle {
		return m.endIdle(ctx, id)
	}
	m.remember(id, last)
	return nil
}

// Touch is Alive for a request that proves the session by other means than its cookie. It counts as activity.
func (m *Manager) Touch(ctx context.Context, id string) error {
	if err := m.exists(ctx, id); err != nil {
		return err
	}
	_, err := m.noteActivity(ctx, id)
	return err
}

func (m *Manager) exists(ctx context.Context, id string) error {
	_, err := m.cfg.Verdicts.Get(ctx, Key(id))
	if errors.Is(err, ErrNotFound) {
		return ended("The session was ended")
	}
	return err
}

func (m *Manager) setCookie(c echo.Context, cookie *http.Cookie) {
	c.Response().Header().Set("Cache-Control", "no-store")
	c.SetCookie(cookie)
}

func ended(why string) error { return fault.InvalidToken.New(why + "; sign in again.") }

// ticketOf reads the session cookie.
func (m *Manager) ticketOf(r *http.Request) (ticket, error) {
	found := r.CookiesNamed(m.cfg.Cookies.Name(SessionCookie))
	if len(found) == 0 {
		return ticket{}, ErrNoSession
	}
	t, ok := parseTicket(found[0].Value)
	if !ok || len(found) > 1 { // the intended one of two cannot be known; another site may have planted one
		return ticket{}, ended("The session cookie cannot be read")
	}
	return t, nil
}

func (m *Manager) keys(t ticket) (*sealing.Keys, error) {
	return m.cfg.Keys.Derive("platform browser session", t.secret)
}

func (m *Manager) seal(t ticket, d Data) (string, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	if len(raw) > maxState {
		return "", fmt.Errorf("the session's state has %d bytes; %d are allowed", len(raw), maxState)
	}
	keys, err := m.keys(t)
	if err != nil {
		return "", err
	}
	return keys.Seal(Key(t.id), string(raw))
}

func (m *Manager) load(ctx context.Context, t ticket) (Data, error) {
	sealed, err := m.cfg.Verdicts.Get(ctx, Key(t.id))
	if errors.Is(err, ErrNotFound) {
		return Data{}, ended("The session has ended")
	}
	if err != nil {
		return Data{}, err
	}
	keys, err := m.keys(t)
	if err != nil {
		return Data{}, err
	}
	raw, err := keys.Open(Key(t.id), string(sealed))
	if err != nil { // another secret, or a key that was taken away
		return Data{}, fault.InvalidToken.New("The session cookie does not open a session; sign in again.").WithCause(err)
	}
	var d Data
	if err := json.Unmarshal([]byte(raw), &d); err != nil {
		return Data{}, fault.InvalidToken.New("The session is of another version of the dashboard; sign in again.").WithCause(err)
	}
	if !m.cfg.Now().Before(d.CreatedAt.Add(m.cfg.Lifetime)) {
		return Data{}, ended("The session has reached its full length")
	}
	return d, nil
}

// remove deletes the state first: without it the session is over, whatever else is left.
func (m *Manager) remove(ctx context.Context, id string) error {
	if err := m.cfg.Verdicts.Delete(ctx, Key(id)); err != nil {
		return err
	}
	m.mu.Lock()
	delete(m.seen, id)
	m.mu.Unlock()
	_ = m.cfg.Verdicts.store.Delete(ctx, seenKey(id)) // the rest of it means nothing without the state, and expires
	return nil
}

// Activity has a separate entry: were it part of the state, a request that notes it while another ends the session
// would bring the session back.
func seenKey(id string) string { return Key("seen:" + id) }

// maxSeen limits the sessions whose activity is remembered here; forgetting one costs a question to the store.
const maxSeen = 8192

// touchEvery returns how often activity is noted in the store.
func (m *Manager) touchEvery() time.Duration { return min(m.cfg.Idle/10, time.Minute) }

// noteActivity returns when the session was last active before now; it is over if that is too long ago.
func (m *Manager) noteActivity(ctx context.Context, id string) (time.Time, error) {
	now := m.cfg.Now()
	m.mu.Lock()
	known := m.seen[id]
	m.mu.Unlock()
	if now.Sub(known) < m.touchEvery() {
		return known.UTC(), nil
	}
	last, err := m.storedActivity(ctx, id) // another replica may know of later activity
	if err != nil {
		if now.Sub(known) < m.cfg.Idle {
			return known.UTC(), nil
		}
		return time.Time{}, unavailable(err)
	}
	if now.Sub(last) >= m.cfg.Idle {
		return time.Time{}, m.endIdle(ctx, id)
	}
	return last.UTC(), m.touch(ctx, id, now)
}

// storedActivity returns the newest activity that any replica noted; the zero time without one.
func (m *Manager) storedActivity(ctx context.Context, id string) (time.Time, error) {
	raw, err := m.cfg.Verdicts.store.Get(ctx, seenKey(id))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return time.Time{}, err
	}
	return parseSeconds(raw), nil
}

func (m *Manager) endIdle(ctx context.Context, id string) error {
	if err := m.remove(ctx, id); err != nil {
		return err
	}
	return ended("The session was idle for too long")
}

func (m *Manager) touch(ctx context.Context, id string, at time.Time) error {
	value := strconv.AppendInt(nil, at.Unix(), 10)
	if err := m.cfg.Verdicts.store.Put(ctx, seenKey(id), value, m.cfg.Idle); err != nil {
		return unavailable(err)
	}
	m.remember(id, at)
	return nil
}

func (m *Manager) remember(id string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) >= maxSeen {
		clear(m.seen)
	}
	m.seen[id] = at
}

func parseSeconds(raw []byte) time.Time {
	seconds, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
