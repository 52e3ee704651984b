package sso_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/libs/trust"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp/idptest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sso"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bundle is a dashboard with one provider, idp-a, whose step-up requires the level gold.
type bundle struct {
	*accesstest.Replica
	*idptest.Issuer
	t        *testing.T
	registry *idp.Registry
	records  *records
	path     string
	done     atomic.Int32 // acts of /guarded, which needs a step-up
}

// records is the fleet's session store, while it is available.
type records struct {
	session.Store
	away bool
}

var errAway = errors.New("the store is away")

func (r *records) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if r.away {
		return errAway
	}
	return r.Store.Put(ctx, key, value, ttl)
}

func (r *records) Take(ctx context.Context, key string) ([]byte, error) {
	if r.away {
		return nil, errAway
	}
	return r.Store.Take(ctx, key)
}

const entry = "  step_up: {acr_values: [gold], max_age_s: 900}\n  deny: [mallory]\n"

func (b *bundle) write(providers ...string) {
	b.t.Helper()
	if err := os.WriteFile(b.path, []byte("version: 1\nproviders:\n"+strings.Join(providers, "")), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Issuer: idptest.New(t), t: t, path: filepath.Join(t.TempDir(), "trust.yaml")}
	b.write(b.Trust("idp-a", entry))
	b.start(accesstest.New(t))
	b.SignsIn(person("1001", nil))
	return b
}

// start starts a replica that reads the trust file now.
func (b *bundle) start(fleet *accesstest.Fleet) {
	b.t.Helper()
	log := slog.New(slog.DiscardHandler)
	b.records = &records{Store: fleet.Store}
	var err error
	if b.registry, err = idp.New(idp.Config{
		Path: b.path, Environment: trust.Environment{LookupEnv: idptest.Environment}, Log: log, Now: fleet.Now, Timeout: time.Second,
	}); err != nil {
		b.t.Fatal(err)
	}
	b.Replica = fleet.Replica(accesstest.Options{Federation: b.registry})
	h, err := sso.New(sso.Config{
		Providers: b.registry, Records: b.records, Sessions: b.Sessions, Ledger: b.Guard, Keys: fleet.Keys, Cookies: b.Sessions.Cookies(),
		PublicURL: accesstest.PublicURL, LocalLogin: true, Log: log, Now: fleet.Now,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	e := b.Server.Echo
	e.GET("/api/auth/sso/providers", h.Providers, b.Guard.Public(access.Providers))
	e.GET("/api/auth/sso/:provider/login", h.Login, b.Guard.Public(access.SSO))
	e.GET("/api/auth/sso/callback", h.Callback, b.Guard.Public(access.SSO))
	e.POST("/api/auth/sso/logout", h.Logout, b.Guard.Require(caller.Viewer))
	e.POST("/guarded", func(c echo.Context) error { b.done.Add(1); return c.NoContent(http.StatusNoContent) },
		b.Guard.Require(caller.Admin, access.StepUp(access.FlagWrite)))
}

// person returns the claims of an admin.
func person(sub string, more map[string]any) map[string]any {
	claims := map[string]any{"sub": sub, "preferred_username": "ann", "acr": "silver", "groups": []any{"platform-admin"}}
	for k, v := range more {
		claims[k] = v
	}
	return claims
}

// browser keeps cookies as a browser does: Strict ones do not go along when another site sends it here.
type browser struct {
	b       *bundle
	cookies map[string]*http.Cookie
}

func (b *bundle) browser() *browser { return &browser{b, map[string]*http.Cookie{}} }

func (w *browser) do(method, path string, fromOtherSite bool, how ...accesstest.Request) *accesstest.Answer {
	w.b.t.Helper()
	how = append([]accesstest.Request{accesstest.Header("Accept", "text/html"), func(r *http.Request) {
		for _, c := range w.cookies {
			if !fromOtherSite || c.SameSite != http.SameSiteStrictMode {
				r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			}
		}
	}}, how...)
	a := w.b.Do(method, path, nil, how...)
	for _, c := range a.Response.Cookies() {
		if c.MaxAge < 0 {
			delete(w.cookies, c.Name)
		} else {
			w.cookies[c.Name] = c
		}
	}
	return a
}

// location returns where an answer redirects to; it fails for other answers.
func (w *browser) location(a *accesstest.Answer) *url.URL {
	w.b.t.Helper()
	u, err := url.Parse(a.Header.Get("Location"))
	if a.Code != http.StatusFound || err != nil {
		w.b.t.Fatalf("got %d %s to %q; want 302", a.Code, a.Body, a.Header.Get("Location"))
	}
	return u
}

// begin opens the login address and gives the provider's.
func (w *browser) begin(query string) *url.URL {
	w.b.t.Helper()
	return w.location(w.do("GET", "/api/auth/sso/idp-a/login"+query, false))
}

// visit signs the person in at the provider and returns the path of the callback.
func (w *browser) visit(provider *url.URL) string {
	w.b.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: 5 * time.Second}
	resp, err := client.Get(provider.String())
	if err != nil {
		w.b.t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || back.Scheme+"://"+back.Host != accesstest.PublicURL {
		w.b.t.Fatalf("the provider sent %q; want the dashboard's callback", resp.Header.Get("Location"))
	}
	return back.RequestURI()
}

// back opens the callback, as a browser that the provider redirects there, and returns its redirect.
func (w *browser) back(callback string) string {
	w.b.t.Helper()
	return w.location(w.do("GET", callback, true)).String()
}

// signIn goes all the way.
func (w *browser) signIn(query string) string {
	w.b.t.Helper()
	return w.back(w.visit(w.begin(query)))
}

func (w *browser) me() *accesstest.Answer { return w.do("GET", "/api/auth/me", false) }

// wantNobody fails if the browser has a session.
func (w *browser) wantNobody(what string) {
	w.b.t.Helper()
	if a := w.me(); a.Code != http.StatusUnauthorized {
		w.b.t.Errorf("%s: /me answers %d %s; want 401", what, a.Code, a.Body)
	}
}
