//go:build e2e

package stranger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// strangerID is a user and group that owns nothing.
const strangerID = 62_731

// A second user of the machine scans every port, file, process and socket of a running platform, and may do nothing.
func TestStrangerMayDoNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("the stranger is another user, and only root may become one: run as root")
	}
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 2*time.Minute)
	m := inspect(t, p)
	if len(m.Ports) < 11 {
		t.Fatalf("got ports %v, want at least 11: ten of the services, and NATS", m.Ports)
	}
	m.Requests = append(publishedRequests(t, p), standInRequests(p)...)
	// The same requests succeed with the credential: only its absence stops the stranger.
	harness.Want(t, http.StatusOK, "GET", p.Tracker()+"/api/2.0/mlflow/registered-models/search", "", nil)
	harness.Want(t, http.StatusOK, "GET", p.Orchestrator()+"/admin/version", "", nil)

	rows := becomeStranger(t, m)
	failed := printTable(t, rows)
	if failed > 0 {
		t.Errorf("the stranger succeeded %d times in %d attempts, want 0", failed, len(rows))
	}
	if health := p.Run(t, "platform", "health"); strings.TrimSpace(health) != "ok" {
		t.Errorf("after the stranger: got %q, want ok", health)
	}
}

// becomeStranger runs this binary as another user.
func becomeStranger(t *testing.T, m plan) []attempt {
	t.Helper()
	bin := strangersBinary(t)
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin)
	asStranger(cmd)
	cmd.Env = []string{planVariable + "=" + string(raw), "PATH=/usr/bin:/bin"}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("the stranger: %v\n%s", err, errOut.String())
	}
	var rows []attempt
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
		t.Fatalf("the stranger: %v\n%s", err, out.String())
	}
	return rows
}

// strangersBinary returns a copy of this binary that the stranger may run.
func strangersBinary(t *testing.T) string {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "stranger")
	if err := os.WriteFile(bin, self, 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}

// asStranger makes a command run as the other user.
func asStranger(cmd *exec.Cmd) {
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: strangerID, Gid: strangerID}, Pdeathsig: syscall.SIGKILL}
}

// printTable prints a line for each kind and target, and a separate one for every success.
func printTable(t *testing.T, rows []attempt) (failed int) {
	t.Helper()
	type key struct{ kind, target string }
	var order []key
	tried, outcomes := map[key]int{}, map[key][]string{}
	for _, r := range rows {
		k := key{r.Kind, r.Target}
		switch r.Kind {
		case "file":
			k.target = filepath.Dir(r.Target)
		case "process":
			k.target = "the platform and its children"
		}
		if tried[k] == 0 {
			order = append(order, k)
		}
		tried[k]++
		if !slices.Contains(outcomes[k], r.Outcome) {
			outcomes[k] = append(outcomes[k], r.Outcome)
		}
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tTARGET\tATTEMPTS\tOUTCOMES")
	for _, k := range order {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", k.kind, k.target, tried[k], strings.Join(outcomes[k], "; "))
	}
	for _, r := range rows {
		if r.Success {
			failed++
			fmt.Fprintf(w, "SUCCESS\t%s %s\t%s\t%s\n", r.Kind, r.Target, r.Tried, r.Outcome)
		}
	}
	_ = w.Flush() // into memory
	fmt.Printf("%s%d attempts, %d successes\n", text.String(), len(rows), failed)
	return failed
}

// publishedRequests returns the operations in the services' OpenAPI documents.
func publishedRequests(t *testing.T, p *harness.Platform) (out []request) {
	t.Helper()
	for _, s := range services(p) {
		for _, o := range operations(t, s) {
			r := request{Port: s.port(), Name: s.name, Method: o.method, Path: o.path(nil), Open: o.public}
			if o.writes() {
				r.Body = "{}"
			}
			out = append(out, r)
		}
	}
	return out
}

// standInRequests are requests that could misuse the stand-ins; these publish no document.
func standInRequests(p *harness.Platform) (out []request) {
	mlflow := "/api/2.0/mlflow/"
	for _, r := range []request{
		{Method: "GET", Path: "/health", Open: true},
		{Method: "GET", Path: "/"},
		{Method: "GET", Path: "/version"},
		{Method: "GET", Path: mlflow + "registered-models/search"},
		{Method: "POST", Path: mlflow + "experiments/search", Body: `{"max_results": 10}`},
		{Method: "POST", Path: mlflow + "registered-models/create", Body: `{"name": "intruder"}`},
		{Method: "POST", Path: mlflow + "registered-models/alias", Body: `{"name": "jpcp", "alias": "Production", "version": "1"}`},
		{Method: "DELETE", Path: mlflow + "registered-models/delete", Body: `{"name": "jpcp"}`},
		{Method: "POST", Path: mlflow + "runs/create", Body: `{"experiment_id": "0"}`},
		{Method: "POST", Path: mlflow + "webhooks", Body: `{"name": "x", "url": "http://127.0.0.1:1/"}`},
		{Method: "GET", Path: "/api/3.0/mlflow/server-info"},
		{Method: "GET", Path: "/api/2.0/mlflow-artifacts/artifacts?path="},
		{Method: "PUT", Path: "/api/2.0/mlflow-artifacts/artifacts/1/x/artifacts/model.onnx", Body: "x"},
		{Method: "DELETE", Path: "/api/2.0/mlflow-artifacts/artifacts/1"},
		{Method: "GET", Path: "/health/../api/2.0/mlflow/registered-models/search"},
	} {
		r.Name, r.Port = "tracker", hostOf(p.Env["TRACKING_URI"])
		out = append(out, r)
	}
	for _, r := range []request{
		{Method: "GET", Path: "/api/health", Open: true},
		{Method: "GET", Path: "/api/admin/version"},
		{Method: "POST", Path: "/api/flows/filter", Body: "{}"},
		{Method: "POST", Path: "/api/flow_runs/filter", Body: "{}"},
		{Method: "POST", Path: "/api/deployments/filter", Body: "{}"},
		{Method: "GET", Path: "/api/deployments/name/training_flow/platform-dispatch"},
		{Method: "POST", Path: "/api/deployments/01930000-0000-7000-8000-000000000001/create_flow_run", Body: `{"parameters": {"requested_by": "operator"}}`},
		{Method: "POST", Path: "/api/work_pools", Body: `{"name": "intruder"}`},
		{Method: "POST", Path: "/api/logs", Body: "[]"},
	} {
		r.Name, r.Port = "orchestrator", hostOf(p.Env["ORCHESTRATOR_API_URL"])
		out = append(out, r)
	}
	// The dashboard's second origin, which serves the tools' own pages.
	for _, path := range []string{"/", "/api/proxy/tracker/", "/api/proxy/control_plane/models", "/api/proxy-ticket/x"} {
		out = append(out, request{Port: toolsAddress(p), Name: "tools origin", Method: "GET", Path: path, Guessed: true})
	}
	return out
}

func fetchJSON(t *testing.T, url string, header http.Header, into any) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := impatient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: got %d, %v, want 200: %s", url, resp.StatusCode, err, b)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
}
