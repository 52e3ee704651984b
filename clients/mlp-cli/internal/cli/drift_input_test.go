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
	{"model":"MACK","alias":"Production","version":"1","status":"NO_BASELINE","overall":"NO_BASELINE","reason":"no_baseline","n_snapshots":0,"n_baseline":0,"live_mean":null,"live_std":null,"measures":{},"recent":[],"statistics":{}}]`

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
