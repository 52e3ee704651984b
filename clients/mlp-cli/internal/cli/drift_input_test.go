package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const inputStatuses = `[{"model":"JPCP","alias":"Production","version":"3","status":"CRITICAL","overall":"CRITICAL","decided_by":"z_score","statistic":"mean","z_score":4.5,
	"live_mean":1.02,"live_std":0.1,"baseline_mean":1,"baseline_std":0.1,"n_snapshots":100,"n_baseline":1000,"baseline_set_at":"2026-01-02T03:04:05Z","measures":{},"recent":[],
	"statistics":{"norm":{"status":"OK","overall":"OK","z_score":0.2,"live_mean":1.02,"measures":{}},"mean":{"status":"CRITICAL","overall":"CRITICAL","z_score":4.5,"live_mean":0.25,"measures":{}},
	"std":{"status":"OK","overall":"OK","live_mean":0.5,"measures":{}}}},
	{"model":"MACK","alias":"Production","version":"1","status":"NO_BASELINE","overall":"NO_BASELINE","reason":"no_baseline","n_snapshots":12,"n_baseline":0,"live_mean":null,"live_std":null,"measures":{},"recent":[],"statistics":{}}]`

func TestInputDriftStatus(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", inputStatuses)
	env := map[string]string{"HOME": t.TempDir(), "SERVING_URL": url, "COLUMNS": "200"}
	for _, c := range []struct {
		format string
		want   []string
	}{
		{"table", []string{"NORM μ", "EMB μ", "EMB σ", "MAX Z", "CRITICAL", "z_score of mean", "set a baseline with: mlp drift input baseline <model>"}},
		{"json", []string{`"norm_mean": 1.02`, `"embedding_mean": 0.25`, `"embedding_std": 0.5`, `"max_z": 4.5`, `"statistic": "mean"`, `"max_z": null`}},
		{"yaml", []string{"max_z: 4.5", "max_z: null"}},
		{"csv", []string{"model,alias,norm", "JPCP,Production,1.02,0.25,0.5,4.5,CRITICAL,CRITICAL,z_score of mean,100"}},
	} {
		r := runMLP(t, env, "", "-o", c.format, "drift", "input", "status")
		for _, want := range c.want {
			if r.code != 0 || !strings.Contains(r.out, want) {
				t.Errorf("%s: exit %d, got\n%s%s\nwant %s", c.format, r.code, r.out, r.err, want)
			}
		}
	}
	none := serveAnswer(t, 200, "application/json", `[]`)
	if r := runMLP(t, map[string]string{"HOME": t.TempDir(), "SERVING_URL": none}, "", "--json", "drift", "input", "status", "nobody"); r.code != 1 || !strings.Contains(r.out, "model_not_loaded") {
		t.Errorf("nobody: exit %d, %s; want 1, model_not_loaded", r.code, r.out)
	}
}

// Baseline and reset go to the routes of inputs; a dry run sends neither.
func TestInputDriftWrites(t *testing.T) {
	t.Parallel()
	var sent []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprint(w, inputStatuses)
			return
		}
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.URL.Path+" "+string(body))
		switch {
		case strings.HasSuffix(r.URL.Path, "/reset"):
			fmt.Fprint(w, `{"deleted": 100}`)
		case strings.Contains(r.URL.Path, "MACK"):
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"status":409,"code":"not_enough_snapshots","title":"Not enough snapshots","detail":"Model MACK has 0."}`)
		default:
			fmt.Fprint(w, `{"model":"JPCP","alias":"Production","n":100,"mean":1,"std":0.1,"set_at":"2026-01-02T03:04:05Z"}`)
		}
	}))
	t.Cleanup(srv.Close)
	env := map[string]string{"HOME": t.TempDir(), "SERVING_URL": srv.URL}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"drift", "input", "baseline", "jpcp", "--dry-run"}, 0, "100 snapshots"},
		{[]string{"drift", "input", "reset", "jpcp", "--dry-run"}, 0, "under Production"},
		{[]string{"--yes", "drift", "input", "baseline", "jpcp"}, 0, "baseline of the inputs of JPCP (Production) set from 100 snapshots"},
		{[]string{"--yes", "drift", "input", "reset", "jpcp"}, 0, "100 inputs of JPCP (Production) forgotten; the baseline stays"},
		{[]string{"drift", "input", "baseline", "mack"}, 1, "Model MACK has 0."},
		{[]string{"drift", "input", "reset", "jpcp", "--alias", "Champion"}, 2, "--alias must be one of"},
	} {
		r := runMLP(t, env, "", c.args...)
		if r.code != c.code || !strings.Contains(r.out+r.err, c.want) {
			t.Errorf("%v: exit %d, %s%s; want %d, %q", c.args, r.code, r.out, r.err, c.code, c.want)
		}
	}
	want := []string{`/drift/input/JPCP/baseline {"alias":"Production"}`, `/drift/input/JPCP/reset {"alias":"Production"}`, `/drift/input/MACK/baseline {"alias":"Production"}`}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAutoRetrainKind(t *testing.T) {
	t.Parallel()
	var put map[string]any
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `[{"model_name":"JPCP","datasets":["JobEmbeddings"]}]`)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&put); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, `{"model":"JPCP","enabled":true,"min_z":3,"dataset_name":null,"cooldown_seconds":3600,"gate":"approval","kind":"any"}`)
	}))
	t.Cleanup(srv.Close)
	env := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL, "CONTROL_PLANE_TOKEN": "a-long-enough-token"}
	if r := runMLP(t, env, "", "--json", "drift", "auto-retrain", "enable", "jpcp", "--kind", "any"); r.code != 0 || put["kind"] != "any" || !strings.Contains(r.out, `"kind": "any"`) {
		t.Errorf("exit %d, sent %v, %s%s; want 0, kind any", r.code, put, r.out, r.err)
	}
	if r := runMLP(t, env, "", "drift", "auto-retrain", "enable", "jpcp", "--kind", "all"); r.code != 2 || !strings.Contains(r.err, "--kind must be one of prediction, input, any") {
		t.Errorf("exit %d, %s; want 2, the kinds there are", r.code, r.err)
	}
}

// A dry run shows values that the service chooses as absent.
func TestDryRunOfAbsentOptions(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", `[{"model_name":"JPCP","datasets":["JobEmbeddings"]}]`)
	r := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url}, "", "drift", "auto-retrain", "enable", "jpcp", "--kind", "any", "--dry-run")
	for _, want := range []string{"cooldown_seconds  —\n", "gate              —\n", "kind              any\n", "min_z             —\n"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("exit %d\n%s\nwant %q in it", r.code, r.out, want)
		}
	}
}

// A baseline is offered where there are enough snapshots for one: with fewer, the service refuses it.
func TestBaselineIsOfferedWhereItCanBeSet(t *testing.T) {
	t.Parallel()
	for snapshots, want := range map[int]bool{0: false, 9: false, 10: true} {
		url := serveAnswer(t, 200, "application/json", fmt.Sprintf(`[{"model":"JPCP","alias":"Canary","status":"NO_BASELINE","overall":"NO_BASELINE","n_snapshots":%d,"recent":[]}]`, snapshots))
		for _, command := range []string{"drift status", "drift input status"} {
			r := runMLP(t, map[string]string{"HOME": t.TempDir(), "SERVING_URL": url}, "", strings.Fields(command)...)
			if got := strings.Contains(r.out, "set a baseline with: mlp "); r.code != 0 || got != want {
				t.Errorf("%s with %d snapshots: exit %d, offered %v, want %v\n%s", command, snapshots, r.code, got, want, r.out)
			}
		}
	}
}

// The output for a drifting model names the command that shows why.
func TestDriftLeadsToItsReport(t *testing.T) {
	t.Parallel()
	row := func(model, alias, overall string) string {
		return fmt.Sprintf(`{"model":%q,"alias":%q,"status":"OK","overall":%q,"n_snapshots":100,"recent":[]}`, model, alias, overall)
	}
	for _, c := range []struct {
		rows []string
		want string
	}{
		{[]string{row("JPCP", "Production", "OK")}, ""},
		{[]string{row("JPCP", "Production", "CRITICAL"), row("MACK", "Production", "OK")}, "\nsee which inputs moved: mlp drift report JPCP\n"},
		{[]string{row("JPCP", "Canary", "WARNING")}, "\nsee which inputs moved: mlp drift report JPCP --alias Canary\n"},
		{[]string{row("JPCP", "Production", "CRITICAL"), row("MACK", "Production", "WARNING")}, "\nsee which inputs moved: mlp drift report <model>\n"},
	} {
		url := serveAnswer(t, 200, "application/json", "["+strings.Join(c.rows, ",")+"]")
		r := runMLP(t, map[string]string{"HOME": t.TempDir(), "SERVING_URL": url}, "", "drift", "status")
		if r.code != 0 || !strings.HasSuffix(r.out, c.want) || c.want == "" && strings.Contains(r.out, "drift report") {
			t.Errorf("exit %d\n%s\nwant it to end in %q", r.code, r.out, c.want)
		}
	}
}

// Of many inputs that moved, the worst three are drawn unasked, without the bins in which nothing lies.
func TestDriftReportDrawsTheWorst(t *testing.T) {
	t.Parallel()
	features := make([]string, 5)
	for i := range features {
		features[i] = fmt.Sprintf(`{"name":"f%d","kind":"number","status":"CRITICAL","overall":"CRITICAL","n":100,"n_baseline":100,"measures":{},
			"histogram":{"edges":[0,1,2,3,4],"live":[0,0,0,1],"baseline":[1,0,0,0]}}`, i)
	}
	url := serveAnswer(t, 200, "application/json", `{"model":"JOBS","alias":"Production","overall":"CRITICAL","n_snapshots":100,"n_baseline":100,"statistics":[],"features":[`+strings.Join(features, ",")+`]}`)
	env := map[string]string{"HOME": t.TempDir(), "SERVING_URL": url}
	r := runMLP(t, env, "", "drift", "report", "jobs")
	if got := strings.Count(r.out, "█ the last 100 requests"); got != 3 || r.err != "2 more moved; for their histograms: --all\n" {
		t.Errorf("exit %d, %d histograms, said %q; want 3 and how to see the others", r.code, got, r.err)
	}
	bar := strings.Repeat("░", 30)
	if want := "0 … │                               0 %\n    │" + bar + " 100 %\n  ⋮ │\n3 … │"; !strings.Contains(r.out, want) {
		t.Errorf("got\n%s\nwant one line for the empty bins:\n%s", r.out, want)
	}
	r = runMLP(t, env, "", "drift", "report", "jobs", "--all")
	if got := strings.Count(r.out, "█ the last 100 requests"); got != 5 || r.err != "" {
		t.Errorf("--all: exit %d, %d histograms, said %q; want all 5", r.code, got, r.err)
	}
}

const inputReport = `{"model":"JOBS","alias":"Production","overall":"CRITICAL","n_snapshots":100,"n_baseline":1000,"statistics":[],
	"features":[{"name":"procs","kind":"number","status":"CRITICAL","overall":"CRITICAL","decided_by":"z_score","z_score":9.5,"live_mean":45,"baseline_mean":10,"n":100,"n_baseline":1000,
	"measures":{"psi":{"status":"CRITICAL","value":8.5}},"histogram":{"edges":[0,25,50],"live":[0,1],"baseline":[0.75,0.25]}},
	{"name":"queue\u001b[31m","kind":"category","status":"WARNING","overall":"WARNING","decided_by":"psi","n":100,"n_baseline":1000,"measures":{},"histogram":{"classes":["debug","batch"],"live":[1,0],"baseline":[0.5,0.5]}},
	{"name":"hour","kind":"number","status":"OK","overall":"OK","z_score":0.1,"n":100,"n_baseline":1000,"measures":{},"histogram":{"edges":[0,24],"live":[1],"baseline":[1]}}]}`

// The terminal shows what moved as bars; documents hold everything.
func TestDriftReport(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", inputReport)
	env := map[string]string{"HOME": t.TempDir(), "SERVING_URL": url, "COLUMNS": "200"}
	r := runMLP(t, env, "", "-o", "table", "drift", "report", "jobs")
	full, part := strings.Repeat("█", 30), strings.Repeat("░", 8)
	for _, want := range []string{"procs: █ the last 100 requests, ░ the baseline's 1000", "25 … │" + full + " 100 %", "│" + part + "                       25 %", "batch │", "debug │" + full} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("exit %d, got\n%s%s\nwant %q", r.code, r.out, r.err, want)
		}
	}
	if strings.Contains(r.out, "hour:") || strings.Contains(r.out, "\x1b[31m") {
		t.Errorf("got\n%q\nwant no plot of what did not move, no control characters of names", r.out)
	}
	var doc struct{ Features []struct{ Name string } }
	if r := runMLP(t, env, "", "--json", "drift", "report", "jobs"); json.Unmarshal([]byte(r.out), &doc) != nil || len(doc.Features) != 3 || doc.Features[0].Name != "procs" {
		t.Errorf("exit %d, %s; want a document with three features, procs first", r.code, r.out)
	}
	if r := runMLP(t, env, "", "-o", "csv", "drift", "report", "jobs"); !strings.HasPrefix(r.out, "input,live") || strings.Contains(r.out, "█") {
		t.Errorf("csv:\n%s\nwant rows alone", r.out)
	}
	for _, args := range [][]string{{"drift", "report"}, {"drift", "report", "jobs", "--window", "5"}, {"drift", "report", "jobs", "--alias", "Champion"}} {
		if r := runMLP(t, env, "", args...); r.code != 2 {
			t.Errorf("%v: exit %d; want 2", args, r.code)
		}
	}
	absent := serveAnswer(t, 404, "application/problem+json", `{"status":404,"code":"model_not_loaded","title":"Model not loaded","detail":"Model NOBODY is not loaded."}`)
	if r := runMLP(t, map[string]string{"HOME": t.TempDir(), "SERVING_URL": absent}, "", "drift", "report", "nobody"); r.code != 1 || !strings.Contains(r.err, "not loaded") {
		t.Errorf("nobody: exit %d, %s; want 1, not loaded", r.code, r.err)
	}
}
