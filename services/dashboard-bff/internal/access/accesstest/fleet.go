// Package accesstest runs replicas of the dashboard's guards over one store, with a provider whose verdicts a test sets.
package accesstest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/login"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// The credentials of a fleet.
const (
	ViewerPassword = "viewer-of-the-tests"
	AdminPassword  = "admin-of-the-tests"
	JWTSecret      = "a-secret-of-the-tests-with-more-than-32-bytes"
	Tenant         = "default"
	PublicURL      = "https://dashboard.test"
)

// Fleet holds the resources that replicas share.
type Fleet struct {
	T           testing.TB
	Pool        *pgxpool.Pool
	Store       session.Store
	Coordinator coord.Coordinator
	Keys        *sealing.Keys
	Rates       access.Rates
	shift       atomic.Int64 // of the clock, in nanoseconds
}

// New starts a fleet on a new database.
func New(t testing.TB) *Fleet {
	t.Helper()
	url := testenv.Migrated(t, "dashboard-access", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, store.Schema, outbox.Migrations(), coord.Migrations(), store.Migrations())
	})
	pool, err := postgres.Open(t.Context(), url, store.Schema, postgres.MaxConns(8))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	key := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789ABCDEF"))
	keys, err := sealing.ParseKeys(service.Secret(key))
	if err != nil {
		t.Fatal(err)
	}
	return &Fleet{T: t, Pool: pool, Store: session.NewPostgres(pool), Coordinator: coord.NewPostgres(pool), Keys: keys, Rates: access.DefaultRates()}
}

// Now returns the fleet's time; Advance sets it forward.
func (f *Fleet) Now() time.Time { return time.Now().Add(time.Duration(f.shift.Load())) }

// Advance sets the clock of all replicas forward.
func (f *Fleet) Advance(d time.Duration) { f.shift.Add(int64(d)) }

// Options change a replica.
type Options struct {
	Federation     access.Federation
	NoLocalLogin   bool
	AdminPassword  string // default AdminPassword
	JWTSecret      string // default JWTSecret
	PublicURL      string // default PublicURL; "request" means none
	TrustedProxies []string
	EnforceStepUp  bool
	Operators      []string // default Tenant
	Insecure       bool     // cookies without Secure
	Store          session.Store
	Coordinator    coord.Coordinator
	Lifetime, Idle time.Duration // default 8 h, 2 h
	TTL            time.Duration // of password tokens; default 12 h
}

// Replica is one process of the fleet.
type Replica struct {
	Fleet    *Fleet
	Server   *service.Server
	Guard    *access.Guard
	Tokens   *session.Tokens
	Sessions *session.Manager
	Login    *login.Handlers
}

func or[T comparable](value, standard T) T {
	var zero T
	if value == zero {
		return standard
	}
	return value
}

// Replica starts a process.
func (f *Fleet) Replica(o Options) *Replica {
	f.T.Helper()
	ok := func(err error) {
		f.T.Helper()
		if err != nil {
			f.T.Fatal(err)
		}
	}
	if o.Store == nil {
		o.Store = f.Store
	}
	if o.Coordinator == nil {
		o.Coordinator = f.Coordinator
	}
	public := or(o.PublicURL, PublicURL)
	if public == "request" {
		public = ""
	}
	log := slog.New(slog.DiscardHandler)
	verdicts := session.NewVerdicts(o.Store, f.Now)
	r := &Replica{Fleet: f, Server: service.New(service.Options{Name: "dashboard", BodyLimit: 256 << 10})}
	var err error
	r.Tokens, err = session.NewTokens(session.TokenConfig{
		Secret: service.Secret(or(o.JWTSecret, JWTSecret)), TTL: or(o.TTL, 12*time.Hour), Tenant: Tenant, Viewer: ViewerPassword,
		Admin: service.Secret(or(o.AdminPassword, AdminPassword)), LocalLogin: !o.NoLocalLogin, Verdicts: verdicts, Now: f.Now,
	})
	ok(err)
	r.Sessions, err = session.NewManager(session.ManagerConfig{
		Verdicts: verdicts, Keys: f.Keys, Cookies: session.Cookies{Insecure: o.Insecure}, Lifetime: or(o.Lifetime, 8*time.Hour),
		Idle: or(o.Idle, 2*time.Hour), Now: f.Now,
	})
	ok(err)
	limits, err := access.NewLimits(access.LimitsConfig{Coordinator: o.Coordinator, Store: o.Store, Rates: f.Rates, Log: log, Now: f.Now})
	ok(err)
	if o.Operators == nil {
		o.Operators = []string{Tenant}
	}
	r.Guard, err = access.New(access.Config{
		Tokens: r.Tokens, Sessions: r.Sessions, Federation: o.Federation, Limits: limits, Pool: f.Pool, Log: log, Now: f.Now,
		Registry: r.Server.Registry, PublicURL: public, TrustedProxies: o.TrustedProxies, OperatorTenants: o.Operators,
		StepUpActions: access.DefaultStepUpActions(), EnforceStepUp: o.EnforceStepUp, StepUpMaxAge: 15 * time.Minute,
	})
	ok(err)
	r.Login, err = login.New(login.Config{
		Guard: r.Guard, Limits: limits, Tokens: r.Tokens, Sessions: r.Sessions, Federation: o.Federation,
		Viewer: ViewerPassword, Admin: service.Secret(or(o.AdminPassword, AdminPassword)), LocalLogin: !o.NoLocalLogin, Tenant: Tenant,
	})
	ok(err)
	access.AddHeaders(r.Server.Echo, public)
	e := r.Server.Echo
	e.POST("/api/auth/login", r.Login.Login, r.Guard.Public(access.Login))
	e.POST("/api/auth/logout", r.Login.Logout, r.Guard.Require(caller.Viewer))
	e.GET("/api/auth/me", r.Login.Me, r.Guard.Require(caller.Viewer))
	return r
}

// Request changes a request before it is sent.
type Request func(*http.Request)

// Bearer sends a token.
func Bearer(token string) Request { return Header("Authorization", "Bearer "+token) }

// Header sets a header.
func Header(name, value string) Request { return func(r *http.Request) { r.Header.Set(name, value) } }

// Cookie sends the cookies that a response has set.
func Cookie(from *http.Response) Request {
	return func(r *http.Request) {
		for _, c := range from.Cookies() {
			if c.MaxAge >= 0 {
				r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			}
		}
	}
}

// From sets the address of the TCP peer.
func From(address string) Request {
	return func(r *http.Request) { r.RemoteAddr = address + ":40000" }
}

// Do sends a request to the replica; a body that is not nil goes as JSON.
func (r *Replica) Do(method, path string, body any, how ...Request) *Answer {
	r.Fleet.T.Helper()
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			r.Fleet.T.Fatal(err)
		}
	}
	req := httptest.NewRequest(method, "https://dashboard.test"+path, bytes.NewReader(raw))
	req.TLS = nil
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, change := range how {
		change(req)
	}
	w := httptest.NewRecorder()
	r.Server.Echo.ServeHTTP(w, req)
	return &Answer{T: r.Fleet.T, Code: w.Code, Header: w.Header(), Body: w.Body.Bytes(), Response: w.Result()}
}

// Answer is a response.
type Answer struct {
	T        testing.TB
	Code     int
	Header   http.Header
	Body     []byte
	Response *http.Response
}

// Object returns the body.
func (a *Answer) Object() map[string]any {
	a.T.Helper()
	var out map[string]any
	if err := json.Unmarshal(a.Body, &out); err != nil {
		a.T.Fatalf("body %q: %v; want a JSON object", a.Body, err)
	}
	return out
}

// Text returns a member of the body, or of the problem; empty if it is absent or no string.
func (a *Answer) Text(member string) string {
	a.T.Helper()
	var out map[string]any
	_ = json.Unmarshal(a.Body, &out)
	text, _ := out[member].(string)
	return text
}

// Want fails the test unless the status and, for a problem, the code are these.
func (a *Answer) Want(status int, code string) *Answer {
	a.T.Helper()
	if a.Code != status || a.Text("code") != code {
		a.T.Fatalf("answer %d %q (%s); want %d %q", a.Code, a.Text("code"), a.Body, status, code)
	}
	return a
}

// SignIn returns a token of a password session, made without applying the limits.
func (r *Replica) SignIn(role caller.Role) string {
	r.Fleet.T.Helper()
	token, _, err := r.Tokens.Mint(role)
	if err != nil {
		r.Fleet.T.Fatal(err)
	}
	return token
}

// Fact is an audit fact that the fleet wrote.
type Fact struct {
	Actor, Action, Target, Outcome, Tenant string
	Details                                map[string]any
}

// Facts returns the audit facts of an action, oldest first.
func (f *Fleet) Facts(action string) []Fact {
	f.T.Helper()
	rows, err := f.Pool.Query(f.T.Context(), "select payload from outbox where namespace = 'audit' and payload->>'action' = $1 order by seq", action)
	if err != nil {
		f.T.Fatal(err)
	}
	defer rows.Close()
	var out []Fact
	for rows.Next() {
		var raw []byte
		var one Fact
		if err := rows.Scan(&raw); err != nil {
			f.T.Fatal(err)
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			f.T.Fatal(err)
		}
		out = append(out, one)
	}
	if err := rows.Err(); err != nil {
		f.T.Fatal(err)
	}
	return out
}
