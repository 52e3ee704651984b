package snapshot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/snapshot"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const path = "/api/v1/collab/snapshot"

func start(t *testing.T) (*recordstest.App, *pgxpool.Pool) {
	t.Helper()
	pool := recordstest.Pool(t)
	s, err := snapshot.New(snapshot.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	app := recordstest.NewApp(t)
	app.Echo.Use(snapshot.MaskToken)
	app.Echo.POST(path, s.Create)
	app.Echo.GET(path+"/:token", s.Get)
	return app, pool
}

func create(app *recordstest.App, body any) api.SnapshotToken {
	app.T.Helper()
	return recordstest.Decode[api.SnapshotToken](app.Want(200, recordstest.Viewer, "POST", path, body))
}

func TestSnapshotIsReadAsItWasFrozenUntilItExpires(t *testing.T) {
	t.Parallel()
	app, pool := start(t)
	const view = `{"b": 1.50, "a": [12345678901234567890, 1e400], "t": "<b>\u0000"}`
	made := create(app, `{"view": `+view+`, "ttl_hours": 2}`)
	if left := time.Until(made.ExpiresAt); left < 119*time.Minute || left > 121*time.Minute {
		t.Errorf("got %s of life, want 2 h", left)
	}
	var got struct {
		Found     bool            `json:"found"`
		View      json.RawMessage `json:"view"`
		ReadOnly  bool            `json:"read_only"`
		ExpiresAt time.Time       `json:"expires_at"`
		CreatedBy string          `json:"created_by"`
	}
	rec := app.Do(recordstest.Admin, "GET", path+"/"+made.Token, nil)
	if err := json.Unmarshal(rec.Body, &got); err != nil {
		t.Fatalf("got %s: %v", rec.Body, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(view)); err != nil {
		t.Fatal(err)
	}
	if !got.Found || !got.ReadOnly || got.CreatedBy != "local:viewer" || !got.ExpiresAt.Equal(made.ExpiresAt) || !strings.Contains(string(got.View), "12345678901234567890") || !strings.Contains(string(got.View), "1e400") {
		t.Errorf("got %+v, view %s; want the view byte for byte", got, got.View)
	}
	if rec.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got Cache-Control %q, want no-store", rec.Header.Get("Cache-Control"))
	}
	if _, err := pool.Exec(t.Context(), "update snapshots set expires_at = now()"); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, app, made.Token)
}

func wantAbsent(t *testing.T, app *recordstest.App, token string) {
	t.Helper()
	if got := app.Want(200, recordstest.Viewer, "GET", path+"/"+token, nil); strings.TrimSpace(string(got.Body)) != `{"found":false}` {
		t.Errorf("%q: got %s, want found false and nothing else", token, got.Body)
	}
}

func TestUnknownAndForeignTokensLookAlike(t *testing.T) {
	t.Parallel()
	app, _ := start(t)
	made := create(app, `{"view": {}}`)
	if left := time.Until(made.ExpiresAt).Round(time.Hour); left != 168*time.Hour {
		t.Errorf("got a life of %s by default, want 168 h", left)
	}
	if got := app.Want(200, recordstest.Stranger, "GET", path+"/"+made.Token, nil); strings.TrimSpace(string(got.Body)) != `{"found":false}` {
		t.Errorf("other tenant: got %s, want found false", got.Body)
	}
	for _, token := range []string{"x", strings.Repeat("A", 43), "%00", "%ff", "a%2Fb", made.Token + "A", made.Token[:42]} {
		wantAbsent(t, app, token)
	}
}

func TestLimitsOfTheView(t *testing.T) {
	t.Parallel()
	app, pool := start(t)
	nested := func(n int) string { return strings.Repeat(`{"a":`, n-1) + `{}` + strings.Repeat(`}`, n-1) }
	sized := func(n int) string { return `{"a":"` + strings.Repeat("x", n-8) + `"}` }
	for _, good := range []string{`{"view": ` + nested(16) + `}`, `{"view": ` + sized(64<<10) + `}`, `{"view": {}, "ttl_hours": 1}`, `{"view": {}, "ttl_hours": 720}`} {
		create(app, good)
	}
	for body, member := range map[string]string{
		`{"view": ` + nested(17) + `}`: "view", `{"view": ` + sized(64<<10+1) + `}`: "view", `{"view": []}`: "view", `{"view": "x"}`: "view", `{}`: "view",
		`{"view": null}`: "view", `{"view": {}, "ttl_hours": 0}`: "ttl_hours", `{"view": {}, "ttl_hours": 721}`: "ttl_hours",
	} {
		answer := app.Refused(422, "validation_failed", recordstest.Viewer, "POST", path, body)
		if got := fmt.Sprint(answer.Object()["errors"]); !strings.Contains(got, member) {
			t.Errorf("%.60s: got %s, want %s named", body, got, member)
		}
	}
	app.Want(422, recordstest.Viewer, "POST", path, `{"view": {}, "ttl_hours": 1.5}`)
	app.Want(422, recordstest.Viewer, "POST", path, `{"view": {}, "tenant": "other"}`)
	app.Want(413, recordstest.Viewer, "POST", path, `{"view": `+sized(300<<10)+`}`)
	if _, err := pool.Exec(t.Context(), "insert into snapshots select sha256(n::text::bytea), 'default', '{}', 'x', now(), now() + interval '1 hour' from generate_series(1, 495) n"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	statuses := make(chan int, 4)
	for range 4 { // 499 are there: one more has room, however many ask at once
		wg.Go(func() { statuses <- app.Do(recordstest.Viewer, "POST", path, `{"view": {}}`).Status })
	}
	wg.Wait()
	close(statuses)
	count := map[int]int{}
	for s := range statuses {
		count[s]++
	}
	if count[200] != 1 || count[409] != 3 {
		t.Errorf("got %v, want one 200 and three 409", count)
	}
	app.Refused(409, "snapshot_limit", recordstest.Viewer, "POST", path, `{"view": {}}`)
	app.Want(200, recordstest.Stranger, "POST", path, `{"view": {}}`)
	if _, err := pool.Exec(t.Context(), "update snapshots set expires_at = now() where created_by = 'x'"); err != nil {
		t.Fatal(err)
	}
	create(app, `{"view": {}}`)
}

func TestTokenIsNowhereButInTheAnswer(t *testing.T) {
	t.Parallel()
	app, pool := start(t)
	made := create(app, `{"view": {"a": 1}}`)
	var dump string
	if err := pool.QueryRow(t.Context(), "select (select string_agg(s::text, ' ') from snapshots s) || (select string_agg(o::text, ' ') from outbox o)").Scan(&dump); err != nil || strings.Contains(dump, made.Token) {
		t.Errorf("got %v, dump %s; want no token in it", err, dump)
	}
	facts := recordstest.Audits(t, pool, "snapshot.create")
	if len(facts) != 1 || len(facts[0]["target"].(string)) != len("snapshot:")+8 || facts[0]["actor"] != "local:viewer" {
		t.Errorf("got facts %v, want one with 8 hex of the digest", facts)
	}

	var log bytes.Buffer
	srv := service.New(service.Options{Name: "dashboard", Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	s, err := snapshot.New(snapshot.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	srv.Echo.Use(snapshot.MaskToken)
	srv.Echo.GET(path+"/:token", s.Get)
	for _, url := range []string{path + "/" + made.Token, path + "/" + made.Token + "?x=1", "/snapshot/" + made.Token} {
		srv.Echo.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, nil))
	}
	if got := log.String(); strings.Contains(got, made.Token) || strings.Count(got, facts[0]["target"].(string)[len("snapshot:"):]) < 3 {
		t.Errorf("got log %s; want 8 hex of the digest in the place of the token", got)
	}
}
