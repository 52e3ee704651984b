package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	testenv.Main(m)
}

// Bearer secrets of the tests.
const (
	legacy   = "legacy-0123456789abcdef"
	ci       = "ci-0123456789abcdef0123"     // default: read, changes
	operator = "op-0123456789abcdef0123"     // default: read, write
	reader   = "reader-0123456789abcdef"     // default: read
	foreign  = "foreign-0123456789abcdef"    // other: read, write
	trainer  = "trainer-0123456789abcdef"    // default: manage
	both     = "both-0123456789abcdef01234"  // default, principal ci: changes, approve, read
	seeder   = "seed-0123456789abcdef01"     // default, principal system:seed: read, write
	approver = "approve-0123456789abcdef012" // default: approve
)

var credentials = mustJSON(map[string]any{
	ci:       map[string]any{"principal": "ci", "tenant": "default", "scopes": []string{"read", "changes"}},
	operator: map[string]any{"principal": "operator", "tenant": "default", "scopes": []string{"read", "write"}},
	reader:   map[string]any{"principal": "reader", "tenant": "default", "scopes": []string{"read"}},
	foreign:  map[string]any{"principal": "mallory", "tenant": "other", "scopes": []string{"read", "write"}},
	trainer:  map[string]any{"principal": "trainer", "tenant": "default", "scopes": []string{"manage"}},
	both:     map[string]any{"principal": "ci", "tenant": "default", "scopes": []string{"read", "changes", "approve"}},
	seeder:   map[string]any{"principal": "system:seed", "tenant": "default", "scopes": []string{"read", "write"}},
	approver: map[string]any{"principal": "approver", "tenant": "default", "scopes": []string{"approve"}},
})

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// plane is a control plane with its neighbours: a real Postgres and NATS, and
// stand-ins for orchestrator and tracker.
type plane struct {
	t            testing.TB
	url          string
	database     string
	nats         string
	orchestrator *fakeOrchestrator
	tracker      *fakeTracker
	env          []string
	noWait       bool // do not wait until it is ready
}

// neighbours starts everything but the control plane itself.
func neighbours(t testing.TB, env ...string) *plane {
	t.Helper()
	p := &plane{t: t, orchestrator: newOrchestrator(t), tracker: newTracker(t), nats: testenv.NATS(t)}
	p.database = testenv.Migrated(t, "control-plane", func(ctx context.Context, url string) error {
		return controlplane.Migrate(ctx, controlplane.Config{Base: service.Base{DatabaseURL: service.Secret(url)}})
	})
	p.env = []string{
		"PLATFORM_DATABASE_URL=" + p.database, "NATS_URL=" + p.nats, "PREFECT_API_URL=" + p.orchestrator.URL,
		"TRACKING_URI=" + p.tracker.URL, "MODELREPO_DIR=../../deploy/modelrepo", "CONTROL_PLANE_TOKEN=" + legacy,
		"CONTROL_PLANE_CREDENTIALS_JSON=" + credentials, "ALLOW_GENERATED_PRODUCTION=true", "LOG_LEVEL=warn",
	}
	for _, kv := range env {
		p.setenv(kv)
	}
	return p
}

// setenv replaces a variable.
func (p *plane) setenv(kv string) {
	name, _, _ := strings.Cut(kv, "=")
	p.env = slices.DeleteFunc(p.env, func(have string) bool { return strings.HasPrefix(have, name+"=") })
	p.env = append(p.env, kv)
}

// start runs a control plane until the test ends.
func start(t testing.TB, env ...string) *plane {
	t.Helper()
	p := neighbours(t, env...)
	p.serve()
	return p
}

// serve runs the control plane in this process; stop ends it.
func (p *plane) serve(change ...func(*controlplane.Config)) (stop func()) {
	p.t.Helper()
	cfg, err := controlplane.LoadConfig(p.env)
	if err != nil {
		p.t.Fatal(err)
	}
	cfg.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range change {
		f(&cfg)
	}
	p.url = "http://" + cfg.Listener.Addr().String()
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = service.NewLogger(p.t.Output(), cfg.LogLevel)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.t.Context()))
	done := make(chan error, 1)
	go func() { done <- controlplane.Run(ctx, cfg, log) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		p.orchestrator.set(well)
		p.tracker.set(well)
		cancel()
		if err := <-done; err != nil {
			p.t.Errorf("control plane: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		service.HTTPClient(0).CloseIdleConnections()
	}
	p.t.Cleanup(stop)
	if p.noWait {
		p.answering()
	} else {
		p.ready()
	}
	return stop
}

func (p *plane) ready()     { p.t.Helper(); p.probe("/readyz") }
func (p *plane) answering() { p.t.Helper(); p.probe("/livez") }

func (p *plane) probe(path string) {
	p.t.Helper()
	testenv.Eventually(p.t, 30*time.Second, func() error {
		resp, err := http.Get(p.url + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%d %s", resp.StatusCode, b)
		}
		return nil
	})
}

// reply is a response whose body was read.
type response struct {
	status int
	header http.Header
	body   []byte
}

func (r response) object(t testing.TB) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(r.body, &out); err != nil {
		t.Fatalf("%v: %d %s", err, r.status, r.body)
	}
	return out
}

func (r response) list(t testing.TB) []map[string]any {
	t.Helper()
	var out []map[string]any
	if err := json.Unmarshal(r.body, &out); err != nil {
		t.Fatalf("%v: %d %s", err, r.status, r.body)
	}
	return out
}

func (r response) code() string {
	var out struct{ Code string }
	_ = json.Unmarshal(r.body, &out)
	return out.Code
}

// call sends a request; body is nil, text, or a value to encode.
func (p *plane) call(method, path, bearer string, body any, header ...string) response {
	p.t.Helper()
	r, err := p.try(method, path, bearer, body, header...)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p *plane) try(method, path, bearer string, body any, header ...string) (response, error) {
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	case io.Reader:
		in = b
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return response{}, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, in)
	if err != nil {
		return response{}, err
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, b}, err
}

// want is call, with the status that must come.
func (p *plane) want(status int, method, path, bearer string, body any, header ...string) response {
	p.t.Helper()
	r := p.call(method, path, bearer, body, header...)
	if r.status != status {
		p.t.Fatalf("%s %s: %d, want %d: %s", method, path, r.status, status, r.body)
	}
	return r
}

// refused is call, with the status and code that must come.
func (p *plane) refused(status int, code, method, path, bearer string, body any, header ...string) response {
	p.t.Helper()
	r := p.want(status, method, path, bearer, body, header...)
	if r.code() != code {
		p.t.Fatalf("%s %s: code %q, want %q: %s", method, path, r.code(), code, r.body)
	}
	if ct := r.header.Get("Content-Type"); ct != "application/problem+json" {
		p.t.Fatalf("%s %s: Content-Type %q", method, path, ct)
	}
	return r
}

// notice records a change of one model and returns the record's id.
func (p *plane) notice(model, commit string) string {
	p.t.Helper()
	out := p.want(200, "POST", "/api/changes", ci, map[string]any{
		"model_ids": []string{model}, "commit_sha": commit, "commit_msg": "change", "changed_files": []string{"a"},
	}).object(p.t)
	ids := out["created"].([]any)
	if len(ids) != 1 {
		p.t.Fatalf("created: %v", out)
	}
	return ids[0].(string)
}

func (p *plane) approval(id string) map[string]any {
	p.t.Helper()
	return p.want(200, "GET", "/approvals/"+id, operator, nil).object(p.t)
}

// event is a row of the outbox.
type event struct {
	Tenant, Name, Actor string
	Data                map[string]any
}

// events are all rows of the outbox with this name, or all, oldest first.
func (p *plane) events(name string) []event {
	p.t.Helper()
	conn, err := pgx.Connect(p.t.Context(), p.database)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(p.t.Context()))
	rows, err := conn.Query(p.t.Context(), `select tenant, namespace || '.' || name, actor, payload from control_plane.outbox
		where $1 = '' or namespace || '.' || name = $1 order by seq`, name)
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (event, error) {
		var e event
		err := row.Scan(&e.Tenant, &e.Name, &e.Actor, &e.Data)
		return e, err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// audits are the audit facts of one action.
func (p *plane) audits(action string) []map[string]any {
	p.t.Helper()
	out := []map[string]any{}
	for _, e := range p.events("audit.recorded") {
		if e.Data["action"] == action {
			out = append(out, e.Data)
		}
	}
	return out
}

// sql runs a statement that puts the database into a state no request can.
func (p *plane) sql(statement string, args ...any) {
	p.t.Helper()
	conn, err := pgx.Connect(p.t.Context(), p.database)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(p.t.Context()))
	if _, err := conn.Exec(p.t.Context(), statement, args...); err != nil {
		p.t.Fatal(err)
	}
}

// awaitTarget waits until the deployment is known, so that a fault set after it
// hits the dispatch itself.
func (p *plane) awaitTarget() {
	p.t.Helper()
	testenv.Eventually(p.t, 10*time.Second, func() error {
		if s := p.health()["dispatch"].(map[string]any)["state"]; s != "ok" {
			return fmt.Errorf("dispatch.state %v", s)
		}
		return nil
	})
}

func (p *plane) health() map[string]any {
	p.t.Helper()
	return p.want(200, "GET", "/health", "", nil).object(p.t)
}

// good is a version that may be served, with one metric.
func good(metric string, value any) trackedVersion {
	return trackedVersion{metrics: map[string]any{metric: value}}
}

func (p *plane) promotion(id string) map[string]any {
	p.t.Helper()
	return p.want(200, "GET", "/promotions/"+id, operator, nil).object(p.t)
}

// pendingPromotion is the id of the model's one pending promotion.
func (p *plane) pendingPromotion(model string) string {
	p.t.Helper()
	items := p.want(200, "GET", "/promotions?state=pending&model="+model, operator, nil).object(p.t)["items"].([]any)
	if len(items) != 1 {
		p.t.Fatalf("pending promotions of %s: %v", model, items)
	}
	return items[0].(map[string]any)["id"].(string)
}
