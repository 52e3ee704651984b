// Package recordstest is the test kit of the packages that store records of people: a migrated database, the routes
// under test, and a control plane that answers with recorded documents. Only tests import it.
package recordstest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/apitest"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// Callers of two tenants.
var (
	Admin    = caller.Caller{Subject: "local:admin", Tenant: "default", Role: caller.Admin, Method: caller.Password}
	Viewer   = caller.Caller{Subject: "local:viewer", Name: "Vera Viewer", Tenant: "default", Role: caller.Viewer, Method: caller.Password}
	Stranger = caller.Caller{Subject: "idp-b:9", Tenant: "other", Role: caller.Viewer, Method: caller.SSO}
	// StrangerAdmin is an admin of the other tenant.
	StrangerAdmin = caller.Caller{Subject: "idp-b:1", Tenant: "other", Role: caller.Admin, Method: caller.SSO}
)

// bodyLimit is the service's.
const bodyLimit = 256 << 10

// Pool returns a pool on a new database with the dashboard's tables.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	url := testenv.Migrated(t, "dashboard", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, store.Schema, outbox.Migrations(), store.Migrations())
	})
	return Reopen(t, url)
}

// Reopen returns another pool on the same database, as another replica has.
func Reopen(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, store.Schema, postgres.MaxConns(4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Log returns a logger that discards.
func Log() *slog.Logger { return slog.New(slog.DiscardHandler) }

// App serves routes to callers who are taken as verified.
type App struct {
	T    testing.TB
	Echo *echo.Echo
}

type whoKey struct{}

// NewApp returns an app without routes; add them to Echo.
func NewApp(t testing.TB) *App {
	t.Helper()
	srv := service.New(service.Options{Name: "dashboard", BodyLimit: bodyLimit, Log: Log()})
	srv.Echo.HTTPErrorHandler = fault.ExplainStore(srv.Echo.HTTPErrorHandler)
	srv.Echo.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if who, ok := c.Request().Context().Value(whoKey{}).(caller.Caller); ok {
				caller.Set(c, who)
			}
			return next(c)
		}
	})
	return &App{T: t, Echo: srv.Echo}
}

// Answer is a recorded response.
type Answer struct {
	T      testing.TB
	Status int
	Header http.Header
	Body   []byte
}

// Document is the API's, by which the answers of all tests are judged. Views are made of Freshness and members of
// their own, which it must leave room for where unknown members are a fault.
var Document = apitest.New(bytes.Replace(api.Document, []byte("    Freshness:\n      type: object\n"),
	[]byte("    Freshness:\n      type: object\n      additionalProperties: true\n"), 1))

// Do sends a request as who. A string is a body as it is, all else becomes JSON; header is pairs of name and value.
func (a *App) Do(who caller.Caller, method, path string, body any, header ...string) Answer {
	a.T.Helper()
	var raw []byte
	switch b := body.(type) {
	case nil:
	case string:
		raw = []byte(b)
	default:
		var err error
		if raw, err = json.Marshal(b); err != nil {
			a.T.Fatal(err)
		}
	}
	req := httptest.NewRequest(method, path, bytes.NewReader(raw))
	if raw == nil {
		req = httptest.NewRequest(method, path, http.NoBody)
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	a.Echo.ServeHTTP(rec, req.WithContext(context.WithValue(a.T.Context(), whoKey{}, who)))
	answer := Answer{T: a.T, Status: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()}
	if err := Document.Conforms(req, apitest.Answer{Status: answer.Status, Header: answer.Header, Body: answer.Body}); err != nil {
		a.T.Errorf("got an answer unlike the API's document: %v\n%s", err, answer.Body)
	}
	return answer
}

// Want calls and requires an answer with that status.
func (a *App) Want(status int, who caller.Caller, method, path string, body any, header ...string) Answer {
	a.T.Helper()
	answer := a.Do(who, method, path, body, header...)
	if answer.Status != status {
		a.T.Fatalf("%s %s: got %d %s; want %d", method, path, answer.Status, answer.Body, status)
	}
	return answer
}

// Refused calls and requires a problem document with that code.
func (a *App) Refused(status int, code string, who caller.Caller, method, path string, body any, header ...string) Answer {
	a.T.Helper()
	answer := a.Want(status, who, method, path, body, header...)
	if got := answer.Object()["code"]; got != code {
		a.T.Fatalf("%s %s: got code %v, %s; want %s", method, path, got, answer.Body, code)
	}
	return answer
}

// Object returns the body as a JSON object.
func (a Answer) Object() map[string]any {
	a.T.Helper()
	var out map[string]any
	if err := json.Unmarshal(a.Body, &out); err != nil {
		a.T.Fatalf("got %q, no JSON object: %v", a.Body, err)
	}
	return out
}

// Decode returns the body as a T.
func Decode[T any](a Answer) T {
	a.T.Helper()
	var out T
	if err := json.Unmarshal(a.Body, &out); err != nil {
		a.T.Fatalf("got %q: %v", a.Body, err)
	}
	return out
}

// Event is one row of the outbox.
type Event struct {
	Tenant, Name, Actor string
	Data                map[string]any
}

// Events returns the events so far whose "<namespace>.<name>" begins with prefix, in order.
func Events(t testing.TB, pool *pgxpool.Pool, prefix string) []Event {
	t.Helper()
	rows, err := pool.Query(t.Context(), "select tenant, namespace || '.' || name, actor, payload from outbox order by seq")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []Event
	for rows.Next() {
		var e Event
		if err := rows.Scan(&e.Tenant, &e.Name, &e.Actor, &e.Data); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(e.Name, prefix) {
			out = append(out, e)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Audits returns the audit facts so far of the action, in order.
func Audits(t testing.TB, pool *pgxpool.Pool, action string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, e := range Events(t, pool, "audit.recorded") {
		if e.Data["action"] == action {
			out = append(out, e.Data)
		}
	}
	return out
}
