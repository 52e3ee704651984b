package controlplanetest

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
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/apitest"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
)

// Bearer secrets of the tests.
const (
	Legacy   = "legacy-0123456789abcdef"
	CI       = "ci-0123456789abcdef0123"     // default: read, changes
	Operator = "op-0123456789abcdef0123"     // default: read, write
	Reader   = "reader-0123456789abcdef"     // default: read
	Foreign  = "foreign-0123456789abcdef"    // other: read, write
	Trainer  = "trainer-0123456789abcdef"    // default: manage
	Both     = "both-0123456789abcdef01234"  // default, principal ci: changes, approve, read
	Seeder   = "seed-0123456789abcdef01"     // default, principal system:seed: read, write
	Approver = "approve-0123456789abcdef012" // default: approve
	Governor = "govern-0123456789abcdef0123" // default: read, govern
)

var credentials = MustJSON(map[string]any{
	CI:       map[string]any{"principal": "ci", "tenant": "default", "scopes": []string{"read", "changes"}},
	Operator: map[string]any{"principal": "operator", "tenant": "default", "scopes": []string{"read", "write"}},
	Reader:   map[string]any{"principal": "reader", "tenant": "default", "scopes": []string{"read"}},
	Foreign:  map[string]any{"principal": "mallory", "tenant": "other", "scopes": []string{"read", "write"}},
	Trainer:  map[string]any{"principal": "trainer", "tenant": "default", "scopes": []string{"manage"}},
	Both:     map[string]any{"principal": "ci", "tenant": "default", "scopes": []string{"read", "changes", "approve"}},
	Approver: map[string]any{"principal": "approver", "tenant": "default", "scopes": []string{"approve"}},
	Governor: map[string]any{"principal": "governor", "tenant": "default", "scopes": []string{"read", "govern"}},
})

// systemCredentials are those of the platform's own components; no environment variable holds them.
var systemCredentials = MustJSON(map[string]any{
	Seeder: map[string]any{"principal": "system:seed", "tenant": "default", "scopes": []string{"read", "write"}},
})

func MustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// plane is a control plane with its dependencies: a real Postgres and NATS, and stand-ins for orchestrator and tracker.
type Plane struct {
	T            testing.TB
	URL          string
	Database     string
	NATS         string
	Orchestrator *Orchestrator
	Tracker      *Tracker
	Env          []string
	NoWait       bool // do not wait until it is ready
}

// Neighbours starts the dependencies of the control plane.
func Neighbours(t testing.TB, env ...string) *Plane {
	t.Helper()
	p := &Plane{T: t, Orchestrator: NewOrchestrator(t), Tracker: NewTracker(t), NATS: testenv.NATS(t)}
	p.Database = testenv.Migrated(t, "control-plane", func(ctx context.Context, url string) error {
		return controlplane.Migrate(ctx, controlplane.Config{Base: service.Base{DatabaseURL: service.Secret(url)}})
	})
	p.Env = []string{
		"PLATFORM_DATABASE_URL=" + p.Database, "NATS_URL=" + p.NATS, "PREFECT_API_URL=" + p.Orchestrator.URL,
		"TRACKING_URI=" + p.Tracker.URL, "MODELREPO_DIR=" + Samples(), "CONTROL_PLANE_TOKEN=" + Legacy,
		"CONTROL_PLANE_CREDENTIALS_JSON=" + credentials, "ALLOW_GENERATED_PRODUCTION=true", "LOG_LEVEL=warn", "DRAIN_DELAY=0s",
		"AUDIT_SIGNING_KEY_FILE=" + filepath.Join(t.TempDir(), "audit-signing.key"),
	}
	for _, kv := range env {
		p.Setenv(kv)
	}
	return p
}

// Setenv replaces a variable.
func (p *Plane) Setenv(kv string) {
	name, _, _ := strings.Cut(kv, "=")
	p.Env = slices.DeleteFunc(p.Env, func(have string) bool { return strings.HasPrefix(have, name+"=") })
	p.Env = append(p.Env, kv)
}

// Start runs a control plane until the test ends.
func Start(t testing.TB, env ...string) *Plane {
	t.Helper()
	p := Neighbours(t, env...)
	p.Serve()
	return p
}

// Serve runs the control plane in this process; stop ends it.
func (p *Plane) Serve(change ...func(*controlplane.Config)) (stop func()) {
	p.T.Helper()
	cfg, err := controlplane.LoadConfig(p.Env)
	if err != nil {
		p.T.Fatal(err)
	}
	if cfg.Token != "" || cfg.Credentials != "" { // else the platform's own components have none either
		cfg.SystemCredentials = service.Secret(systemCredentials)
	}
	cfg.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.T.Fatal(err)
	}
	for _, f := range change {
		f(&cfg)
	}
	p.URL = "http://" + cfg.Listener.Addr().String()
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = service.NewLogger(p.T.Output(), cfg.LogLevel)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.T.Context()))
	done := make(chan error, 1)
	go func() { done <- controlplane.Run(ctx, cfg, log) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		p.Orchestrator.Set(Well)
		p.Tracker.Set(Well)
		cancel()
		if err := <-done; err != nil {
			p.T.Errorf("control plane: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		service.HTTPClient(0).CloseIdleConnections()
	}
	p.T.Cleanup(stop)
	if p.NoWait {
		p.Answering()
	} else {
		p.Ready()
	}
	return stop
}

// Ready waits until every check has run, optional ones too, and none fails.
func (p *Plane) Ready()     { p.T.Helper(); p.Probe("/readyz", "not checked yet") }
func (p *Plane) Answering() { p.T.Helper(); p.Probe("/livez") }

// Probe waits until the path answers 200 with none of these texts.
func (p *Plane) Probe(path string, without ...string) {
	p.T.Helper()
	testenv.Eventually(p.T, 30*time.Second, func() error {
		resp, err := http.Get(p.URL + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK || slices.ContainsFunc(without, func(text string) bool { return strings.Contains(string(b), text) }) {
			return fmt.Errorf("%d %s", resp.StatusCode, b)
		}
		return nil
	})
}

// reply is a response whose body was read.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

func (r Response) Object(t testing.TB) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(r.Body, &out); err != nil {
		t.Fatalf("%v: %d %s", err, r.Status, r.Body)
	}
	return out
}

func (r Response) List(t testing.TB) []map[string]any {
	t.Helper()
	var out []map[string]any
	if err := json.Unmarshal(r.Body, &out); err != nil {
		t.Fatalf("%v: %d %s", err, r.Status, r.Body)
	}
	return out
}

func (r Response) Code() string {
	var out struct{ Code string }
	_ = json.Unmarshal(r.Body, &out)
	return out.Code
}

// Call sends a request; body is nil, text, or a value to encode.
func (p *Plane) Call(method, path, bearer string, body any, header ...string) Response {
	p.T.Helper()
	r, err := p.Try(method, path, bearer, body, header...)
	if err != nil {
		p.T.Fatal(err)
	}
	return r
}

// Try is Call, but returns an error if no answer came. Each answer is validated against the OpenAPI document.
func (p *Plane) Try(method, path, bearer string, body any, header ...string) (Response, error) {
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
			return Response{}, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(p.T.Context(), method, p.URL+path, in)
	if err != nil {
		return Response{}, err
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
		return Response{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	out := Response{resp.StatusCode, resp.Header, b}
	if err == nil {
		if fault := document.Conforms(req, apitest.Answer{Status: out.Status, Header: out.Header, Body: out.Body}); fault != nil {
			p.T.Error(fault, "want nil")
		}
	}
	return out, err
}

// Want is Call with the expected status.
func (p *Plane) Want(status int, method, path, bearer string, body any, header ...string) Response {
	p.T.Helper()
	r := p.Call(method, path, bearer, body, header...)
	if r.Status != status {
		p.T.Fatalf("%s %s: %d, want %d: %s", method, path, r.Status, status, r.Body)
	}
	return r
}

// Refused is Call with the expected status and code.
func (p *Plane) Refused(status int, code, method, path, bearer string, body any, header ...string) Response {
	p.T.Helper()
	r := p.Want(status, method, path, bearer, body, header...)
	if r.Code() != code {
		p.T.Fatalf("%s %s: code %q, want %q: %s", method, path, r.Code(), code, r.Body)
	}
	if ct := r.Header.Get("Content-Type"); ct != "application/problem+json" {
		p.T.Fatalf(`%s %s: Content-Type %q; want ct == "application/problem+json"`, method, path, ct)
	}
	return r
}

// Notice records a change of one model and returns the record's id.
func (p *Plane) Notice(model, commit string) string {
	p.T.Helper()
	out := p.Want(200, "POST", "/api/changes", CI, map[string]any{
		"model_ids": []string{model}, "commit_sha": commit, "commit_msg": "change", "changed_files": []string{"a"},
	}).Object(p.T)
	ids := out["created"].([]any)
	if len(ids) != 1 {
		p.T.Fatalf("created: %v; want len(ids) == 1", out)
	}
	return ids[0].(string)
}

func (p *Plane) Approval(id string) map[string]any {
	p.T.Helper()
	return p.Want(200, "GET", "/approvals/"+id, Operator, nil).Object(p.T)
}

// event is a row of the outbox.
type Event struct {
	Tenant, Name, Actor string
	Data                map[string]any
}

// Events returns all rows of the outbox with this name, or all, oldest first.
func (p *Plane) Events(name string) []Event {
	p.T.Helper()
	conn, err := pgx.Connect(p.T.Context(), p.Database)
	if err != nil {
		p.T.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(p.T.Context()))
	rows, err := conn.Query(p.T.Context(), `select tenant, namespace || '.' || name, actor, payload from control_plane.outbox
		where $1 = '' or namespace || '.' || name = $1 order by seq`, name)
	if err != nil {
		p.T.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Event, error) {
		var e Event
		err := row.Scan(&e.Tenant, &e.Name, &e.Actor, &e.Data)
		return e, err
	})
	if err != nil {
		p.T.Fatal(err)
	}
	return out
}

// Audits returns the audit facts of one action.
func (p *Plane) Audits(action string) []map[string]any {
	p.T.Helper()
	out := []map[string]any{}
	for _, e := range p.Events("audit.recorded") {
		if e.Data["action"] == action {
			out = append(out, e.Data)
		}
	}
	return out
}

// SQL runs a statement that puts the database into a state that no request can.
func (p *Plane) SQL(statement string, args ...any) {
	p.T.Helper()
	conn, err := pgx.Connect(p.T.Context(), p.Database)
	if err != nil {
		p.T.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(p.T.Context()))
	if _, err := conn.Exec(p.T.Context(), statement, args...); err != nil {
		p.T.Fatal(err)
	}
}

// Count returns the number that a query selects.
func (p *Plane) Count(query string) (n int) {
	p.T.Helper()
	conn, err := pgx.Connect(p.T.Context(), p.Database)
	if err != nil {
		p.T.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(p.T.Context()))
	if err := conn.QueryRow(p.T.Context(), query).Scan(&n); err != nil {
		p.T.Fatal(err)
	}
	return n
}

// AwaitTarget waits until the deployment is known, so that a fault set after it
// hits the dispatch itself.
func (p *Plane) AwaitTarget() {
	p.T.Helper()
	testenv.Eventually(p.T, 10*time.Second, func() error {
		if s := p.Health()["dispatch"].(map[string]any)["state"]; s != "ok" {
			return fmt.Errorf("dispatch.state %v", s)
		}
		return nil
	})
}

func (p *Plane) Health() map[string]any {
	p.T.Helper()
	return p.Want(200, "GET", "/health", "", nil).Object(p.T)
}

// Good returns a version that may be served, with one metric.
func Good(metric string, value any) Version {
	return Version{Metrics: map[string]any{metric: value}}
}

func (p *Plane) Promotion(id string) map[string]any {
	p.T.Helper()
	return p.Want(200, "GET", "/promotions/"+id, Operator, nil).Object(p.T)
}

// PendingPromotion returns the id of the model's only pending promotion.
func (p *Plane) PendingPromotion(model string) string {
	p.T.Helper()
	items := p.Want(200, "GET", "/promotions?state=pending&model="+model, Operator, nil).Object(p.T)["items"].([]any)
	if len(items) != 1 {
		p.T.Fatalf("pending promotions of %s: %v; want len(items) == 1", model, items)
	}
	return items[0].(map[string]any)["id"].(string)
}

// Staged registers a version that would pass the sample policies.
func (p *Plane) Staged(model string) string {
	p.Tracker.Add(model, Version{Metrics: map[string]any{"accuracy": 0.95, "rmse": 10.0}})
	return model
}

// Trained has a change of the model approved and trained to a version, as the trainer would report it.
func (p *Plane) Trained(model, dataset string, v Version) (approval, run, version string) {
	p.T.Helper()
	approval = p.Notice(model, "c0ffee1")
	run = p.Want(200, "POST", "/approve/"+model, Operator, map[string]any{"dataset_name": dataset}).Object(p.T)["flow_run_id"].(string)
	v.RunTags = map[string]string{"prefect_flow_run_id": run, "modelrepo_commit": "c0ffee1"}
	return approval, run, p.Tracker.Add(strings.ToLower(model), v)
}

func (p *Plane) Report(model, version string) map[string]any {
	p.T.Helper()
	return p.Want(200, "POST", "/versions", Trainer, map[string]any{"model": model, "version": version}).Object(p.T)
}

// Samples returns the folder of the sample model repository, found above the working directory.
func Samples() string {
	// Tests run in their package's folder; a path from runtime.Caller would not exist under -trimpath.
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		samples := filepath.Join(dir, "deploy/modelrepo")
		if _, err := os.Stat(samples); err == nil {
			return samples
		}
	}
	panic("no deploy/modelrepo above the working directory")
}
