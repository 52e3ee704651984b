package orchestratord_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/orchestrator/orchestratortest"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		os.Exit(runChild(url))
	}
	testenv.Main(m)
}

// runFunc is a Runner.
type runFunc func(ctx context.Context, run orchestratord.FlowRun, logs func(int, string)) error

func (f runFunc) Run(ctx context.Context, run orchestratord.FlowRun, logs func(int, string)) error {
	return f(ctx, run, logs)
}

func noRunner(context.Context, orchestratord.FlowRun, func(int, string)) error {
	panic("nothing should run")
}

type bench struct {
	url        string // of the database
	server     *orchestratord.Server
	c          *orchestrator.Client
	deployment orchestrator.Deployment
}

// migratedDatabase gives a database with the schema.
func migratedDatabase(t testing.TB) string {
	t.Helper()
	url := testenv.Postgres(t)
	if err := postgres.Migrate(t.Context(), url, orchestratord.Schema, orchestratord.Migrations()); err != nil {
		t.Fatal(err)
	}
	return url
}

// startServer gives a server and client on the database.
func startServer(t testing.TB, url string, r orchestratord.Runner, opts ...orchestratord.Option) (*orchestratord.Server, *orchestrator.Client) {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, orchestratord.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := orchestratord.New(t.Context(), pool, r, slog.New(slog.NewTextHandler(t.Output(), nil)), opts...)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return s, orchestrator.New(srv.URL+"/api", srv.Client())
}

func setupBench(t testing.TB, r orchestratord.Runner, opts ...orchestratord.Option) bench {
	t.Helper()
	b := bench{url: migratedDatabase(t)}
	b.server, b.c = startServer(t, b.url, r, opts...)
	err := b.server.EnsureDeployment(t.Context(), orchestratord.Deployment{
		Flow: "training_flow", Name: "platform-dispatch",
		ParameterSchema: json.RawMessage(`{"type":"object","properties":{"model_name":{"type":"string"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if b.deployment, err = b.c.ReadDeploymentByName(t.Context(), "training_flow", "platform-dispatch"); err != nil {
		t.Fatal(err)
	}
	return b
}

// startExecutor runs the executor until the test ends or stop is called; stop waits.
func startExecutor(t testing.TB, s *orchestratord.Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (b bench) create(t testing.TB, in orchestrator.CreateFlowRun) orchestrator.FlowRun {
	t.Helper()
	run, _, err := b.c.CreateFlowRun(t.Context(), b.deployment.ID, in)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// await waits until the run is in the state.
func (b bench) await(t testing.TB, id uuid.UUID, want orchestrator.StateType) orchestrator.FlowRun {
	t.Helper()
	var run orchestrator.FlowRun
	testenv.Eventually(t, 20*time.Second, func() (err error) {
		if run, err = b.c.ReadFlowRun(t.Context(), id); err == nil && run.StateType != want {
			err = fmt.Errorf("run is %s (%s), want %s", run.StateType, run.Message(), want)
		}
		return err
	})
	return run
}

func (b bench) states(t testing.TB, id uuid.UUID) string {
	t.Helper()
	states, err := b.c.States(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, s := range states {
		types = append(types, string(s.Type))
	}
	return strings.Join(types, " ")
}

// TestConformance runs the suite on the stand-in, and on the server that
// ORCHESTRATOR_E2E_URL names, if any.
func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("stand-in", func(t *testing.T) {
		t.Parallel()
		s, c := startServer(t, migratedDatabase(t), runFunc(noRunner))
		startExecutor(t, s) // must leave the runs of worker pools alone
		orchestratortest.Run(t, c.URL())
	})
	if url := os.Getenv("ORCHESTRATOR_E2E_URL"); url != "" {
		t.Run("server", func(t *testing.T) {
			t.Parallel()
			orchestratortest.Run(t, url)
		})
	}
}

func TestOneOfManyCreates(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	var created, known int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			_, made, err := b.c.CreateFlowRun(t.Context(), b.deployment.ID, orchestrator.CreateFlowRun{IdempotencyKey: "one"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case made:
				created++
			default:
				known++
			}
		})
	}
	wg.Wait()
	if created != 1 || known != 49 {
		t.Fatalf("%d times 201 and %d times 200, want 1 and 49", created, known)
	}
}

// A state that is proposed while another is entered waits for that one, and finds the run.
func TestManyStatesAtOnce(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	run, _, err := b.c.CreateFlowRun(t.Context(), b.deployment.ID, orchestrator.CreateFlowRun{IdempotencyKey: "states"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if _, err := b.c.SetState(t.Context(), run.ID, orchestrator.State{Type: orchestrator.Running}, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestEnsureDeploymentKeepsWhatUsersChanged(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	if err := b.c.PauseDeployment(t.Context(), b.deployment.ID); err != nil {
		t.Fatal(err)
	}
	err := b.server.EnsureDeployment(t.Context(), orchestratord.Deployment{
		Flow: "training_flow", Name: "platform-dispatch", Description: "trains", ParameterSchema: json.RawMessage(`{"type":"object","properties":{"commit_sha":{}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.c.ReadDeployment(t.Context(), b.deployment.ID)
	if err != nil || !got.Paused || !got.DeclaresParameter("commit_sha") || got.Description == nil || *got.Description != "trains" {
		t.Fatalf(`%+v, %v; want got.Paused && got.DeclaresParameter("commit_sha") && got.Description != nil && *got.Description == "trains"`, got, err)
	}
	if got.Status != "READY" {
		t.Fatalf(`status %s: this process carries its runs out; want "READY"`, got.Status)
	}
	err = b.server.EnsureDeployment(t.Context(), orchestratord.Deployment{Flow: "f", Name: "d", ParameterSchema: json.RawMessage(`{"type":"nonsense"}`)})
	if err == nil || !strings.Contains(err.Error(), "f/d") {
		t.Fatalf(`bad schema: %v; want an error && strings.Contains(err.Error(), "f/d")`, err)
	}
}

// callRaw sends a raw request.
func callRaw(t *testing.T, c *orchestrator.Client, method, path, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, c.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if len(b) > 0 && b[0] == '{' {
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	}
	return resp.StatusCode, doc
}

func TestBodiesInAContentCoding(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(`{"name":"packed"}`)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for coding, status := range map[string]int{"gzip": 201, "deflate": 400, "br": 415} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", b.c.URL()+"/flows/", bytes.NewReader(packed.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Encoding", coding)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != status {
			t.Errorf("%s: %d %s, want %d", coding, resp.StatusCode, body, status)
		}
	}
}

func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	run := b.create(t, orchestrator.CreateFlowRun{})
	deployment := "/deployments/" + b.deployment.ID.String()
	for _, tc := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/flows/", `{`, 422, "JSON"},
		{"POST", "/flows/", `{"name":7}`, 422, "name"},
		{"POST", "/flows/", `{"name":"a/b"}`, 422, "invalid character"},
		{"POST", "/flows/", `{"name":"` + "a\xff" + `"}`, 422, "UTF-8"},
		{"POST", "/flows/", `{"name":"a\u0000b"}`, 422, "U+0000"},
		{"POST", "/flows/", `{"name":"` + strings.Repeat("x", 5<<20) + `"}`, 413, "5242880"},
		{"POST", "/flow_runs/filter", `{"flow_runs":{"zzz":1}}`, 422, "zzz"},
		{"POST", "/flow_runs/filter", `{"flow_runs":{"id":{"any_":["x"]}}}`, 422, "flow_runs"},
		{"POST", "/flow_runs/filter", `{"flow_runs":{"operator":"and_","parent_flow_run_id":null,"id":{"operator":"or_"}}}`, 422, "operator"},
		{"POST", "/flow_runs/filter", `{"task_runs":{"id":{}}}`, 422, "does not offer"},
		{"POST", "/flow_runs/filter", `{"limit":201}`, 422, "200"},
		{"POST", "/flow_runs/filter", `{"sort":"COLOUR"}`, 422, "COLOUR"},
		{"POST", "/flow_runs/filter", `{"flow_runs":{"operator":"xor_"}}`, 422, "or_"},
		{"POST", "/flow_runs/" + run.ID.String() + "/set_state", `{}`, 422, "required"},
		{"POST", "/flow_runs/not-a-uuid/set_state", `{}`, 404, "Not Found"},
		{"GET", "/flow_run_states/?flow_run_id=x", ``, 422, "UUID"},
		{"GET", "/nothing", ``, 404, "Not Found"},
		{"PUT", "/health", ``, 405, "Method Not Allowed"},
		{"POST", deployment + "/create_flow_run", `{"parameters":[]}`, 422, "object"},
		{"POST", deployment + "/create_flow_run", `{"state":{"type":"RUNNING"}}`, 422, "SCHEDULED"},
		{"PATCH", deployment, `{"concurrency_limit":0}`, 422, "greater"},
		{"PATCH", deployment, `{"work_pool_name":"absent"}`, 404, "absent"},
		{"PATCH", deployment, `{"parameter_openapi_schema":{"$ref":"file:///etc/passwd"}}`, 422, "references"},
		{"PATCH", deployment, `{"schedules":[{"schedule":{"interval":60}}]}`, 422, "cron"},
		{"PATCH", deployment, `{"schedules":[{"schedule":{"cron":"0 0 30 2 *"}}]}`, 422, "names no day"},
		{"PATCH", deployment, `{"schedules":[{"schedule":{"cron":"0 0 * * *","timezone":"Mars/Base"}}]}`, 422, "Mars/Base"},
		{"PATCH", deployment, `{"schedules":[{"schedule":{"cron":"@every 1s"}}]}`, 422, "five fields"},
		{"POST", "/logs/", `[{"name":"x","level":20,"message":"m","timestamp":"2026-01-01T00:00:00Z"}]`, 422, "flow_run_id"},
		{"POST", "/logs/", `[{"name":"x","level":20,"message":"m","timestamp":"2026-01-01T00:00:00Z","flow_run_id":"` + uuid.NewString() + `"}]`, 404, "not found"},
	} {
		status, doc := callRaw(t, b.c, tc.method, tc.path, tc.body)
		text, _ := json.Marshal(doc)
		if status != tc.status || !strings.Contains(string(text), tc.says) {
			t.Errorf("%s %s %.60s: %d %s, want %d and %q", tc.method, tc.path, tc.body, status, text, tc.status, tc.says)
		}
	}
}

// TestMembersOfTheOfficialClient: it sends every member it knows, unused ones as null.
func TestMembersOfTheOfficialClient(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	run := b.create(t, orchestrator.CreateFlowRun{})
	for path, body := range map[string]string{
		"/flow_runs/filter": `{"flows":null,"flow_runs":{"operator":"and_","created_by":null,"state":{"operator":"and_","type":{"any_":["SCHEDULED"]},"name":null}},"task_runs":null,"sort":"ID_DESC","limit":null,"offset":0}`,
		"/logs/filter":      `{"logs":{"operator":"and_","level":null,"timestamp":null,"flow_run_id":{"any_":["` + run.ID.String() + `"]},"task_run_id":null,"text":null},"sort":"TIMESTAMP_ASC"}`,
		"/flows/filter":     `{"flows":null,"flow_runs":null,"task_runs":null,"deployments":null,"work_pools":null,"sort":null,"limit":null,"offset":0}`,
	} {
		if status, doc := callRaw(t, b.c, "POST", path, body); status != http.StatusOK {
			t.Errorf("%s: %d %v; want status == %v", path, status, doc, http.StatusOK)
		}
	}
}

// TestShapes compares the members of each document with those of a Prefect 3.8.8 server (testdata): none is invented,
// and the omitted ones are listed.
func TestShapes(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	if _, err := b.c.CreateWorkPool(t.Context(), "pool", "process", ""); err != nil {
		t.Fatal(err)
	}
	status, doc := callRaw(t, b.c, "PATCH", "/deployments/"+b.deployment.ID.String(), `{"work_pool_name":"pool","schedules":[{"schedule":{"cron":"0 3 * * *"}}]}`)
	if status != http.StatusNoContent {
		t.Fatalf("%d %v; want status == %v", status, doc, http.StatusNoContent)
	}
	run := b.create(t, orchestrator.CreateFlowRun{})
	leftOut := []string{
		"flow_run.created_by", "flow_run.infrastructure_document_id",
		"deployment.global_concurrency_limit", "deployment.concurrency_options", "deployment.storage_document_id",
		"deployment.infrastructure_document_id", "deployment.created_by", "deployment.updated_by",
		"work_pool.storage_configuration", "work_pool.active_slots",
	}
	for name, path := range map[string]string{
		"flow": "/flows/" + run.FlowID.String(), "deployment": "/deployments/" + b.deployment.ID.String(),
		"flow_run": "/flow_runs/" + run.ID.String(), "work_pool": "/work_pools/pool",
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		_, got := callRaw(t, b.c, "GET", path, "")
		compareMembers(t, name, got, want, leftOut)
	}
}

func compareMembers(t *testing.T, path string, got, want map[string]any, leftOut []string) {
	t.Helper()
	for k, v := range got {
		w, ok := want[k]
		if !ok {
			t.Errorf("%s.%s is not of the interface; want ok", path, k)
			continue
		}
		if fmt.Sprintf("%T", v) != fmt.Sprintf("%T", w) && v != nil && w != nil {
			t.Errorf(`%s.%s is %T, a real server gives %T; want ((fmt.Sprintf("%%T", v) == fmt.Sprintf("%%T", w) || v == nil) || w == nil)`, path, k, v, w)
		}
		if g, ok := v.(map[string]any); ok && k == "state" {
			compareMembers(t, path+"."+k, g, w.(map[string]any), leftOut)
		}
		if list, ok := v.([]any); ok && k == "schedules" {
			compareMembers(t, path+"."+k, list[0].(map[string]any), w.([]any)[0].(map[string]any), leftOut)
		}
	}
	for k := range want {
		if _, ok := got[k]; !ok && !slices.Contains(leftOut, path+"."+k) {
			t.Errorf("%s.%s is missing", path, k)
		}
	}
}

// A page of another site, or one whose name was made to resolve to this machine, starts no training.
func TestWebPagesAreKeptOut(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	h := b.server.Handler()
	path := "/api/deployments/" + b.deployment.ID.String() + "/create_flow_run"
	for _, tt := range []struct {
		name, host, origin, contentType string
		status                          int
	}{
		{"rebound name", "evil.example:14200", "http://evil.example:14200", "application/json", 403},
		{"other site", "127.0.0.1:14200", "https://evil.example", "application/json", 403},
		{"form", "127.0.0.1:14200", "", "text/plain", 422},
		{"client", "127.0.0.1:14200", "", "application/json; charset=utf-8", 201},
	} {
		r := httptest.NewRequest("POST", path, strings.NewReader(`{"parameters":{"model_name":"JPCP"}}`))
		r.Host = tt.host
		r.Header.Set("Content-Type", tt.contentType)
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s: %d, want %d: %s", tt.name, w.Code, tt.status, w.Body)
		}
	}
}
