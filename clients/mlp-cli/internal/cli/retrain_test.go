package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/services/trainer"
)

// serveDispatcher serves a control plane that starts runs, and answers requests for their state as given, repeating
// the last.
func serveDispatcher(t *testing.T, polls *atomic.Int64, got func([]byte), followed ...string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/models":
			fmt.Fprint(w, `[{"model_name":"JPCP","datasets":["JobEmbeddings"]}]`)
		case r.URL.Path == "/audit/events":
			fmt.Fprint(w, `{"event_id":"01990000-0000-7000-8000-000000000000"}`)
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			got(body)
			fmt.Fprint(w, `{"flow_run_id":"f1","deployment":"d","status_url":"/retrain/f1","parameters":{}}`)
		default:
			n := int(polls.Add(1))
			status, body, _ := strings.Cut(followed[min(n, len(followed))-1], " ")
			code := 0
			fmt.Sscan(status, &code)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// A refusal will not become an answer, so following ends at once; other failures may pass.
func TestFollow(t *testing.T) {
	t.Parallel()
	const completed = `200 {"flow_run_id":"f1","is_terminal":true,"state_type":"COMPLETED","model_version":"4"}`
	for _, tc := range []struct {
		name     string
		followed []string
		polls    int64
		code     int
		want     string
	}{
		{"401", []string{"401 {}"}, 1, 1, `"status": 401`},
		{"403", []string{"403 {}"}, 1, 1, `"status": 403`},
		{"404", []string{"404 {}"}, 1, 1, `"status": 404`},
		{"429 passes", []string{"429 {}", completed}, 2, 0, `"model_version": "4"`},
		{"503 passes", []string{"503 {}", completed}, 2, 0, `"model_version": "4"`},
		{"failed run", []string{`200 {"flow_run_id":"f1","is_terminal":true,"state_type":"FAILED"}`}, 1, 1, `"code": "run_failed"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var polls atomic.Int64
			url := serveDispatcher(t, &polls, func([]byte) {}, tc.followed...)
			r := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "CONTROL_PLANE_TOKEN": "t"}, "", "--json", "retrain", "JPCP", "--follow")
			if r.code != tc.code || polls.Load() != tc.polls || !strings.Contains(r.out, tc.want) {
				t.Fatalf("exit %d after %d questions\n%s; want r.code == tc.code && polls.Load() == tc.polls && strings.Contains(r.out, tc.want)", r.code, polls.Load(), r.out)
			}
		})
	}
}

// Every storage that the control plane takes is a value of --backend, on both commands.
func TestBackends(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"public_archive", "object_store", "dataplane", "local"} {
		var body []byte
		url := serveDispatcher(t, new(atomic.Int64), func(b []byte) { body = b }, "404 {}")
		r := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "CONTROL_PLANE_TOKEN": "t"}, "", "--json", "retrain", "JPCP", "--backend", backend)
		var sent map[string]any
		if err := json.Unmarshal(body, &sent); err != nil || r.code != 0 || sent["backend_name"] != backend || sent["dataset_name"] != "JobEmbeddings" || sent["is_dummy"] != false {
			t.Errorf("%s: exit %d, sent %s\n%s; want r.code == 0 && sent[\"backend_name\"] == backend && sent[\"dataset_name\"] == \"JobEmbeddings\" && sent[\"is_dummy\"] == false", backend, r.code, body, r.out)
		}
		repo := t.TempDir()
		if err := os.Mkdir(filepath.Join(repo, "models"), 0o700); err != nil {
			t.Fatal(err)
		}
		if r := runMLP(t, map[string]string{"HOME": t.TempDir()}, "", "--json", "pipeline", "run", "--repo", repo, "-m", "JPCP", "--dry-run", "-b", backend); r.code != 0 {
			t.Errorf("pipeline run --backend %s: exit %d\n%s; want r.code == 0", backend, r.code, r.out)
		}
	}
}

// A reason that would be lost is refused before anything is sent.
func TestReasonThatWouldBeLost(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": "http://127.0.0.1:1", "SERVING_URL": "http://127.0.0.1:1", "CONTROL_PLANE_TOKEN": "t"}
	for _, line := range []string{"retrain JPCP --reason why", "drift baseline JPCP -r why"} {
		if r := runMLP(t, vars, "", strings.Fields(line)...); r.code != 1 || !strings.Contains(r.err, "keeps no reason") || !strings.Contains(r.err, "nothing changed") {
			t.Errorf("%s: exit %d\n%s; want r.code == 1 && strings.Contains(r.err, \"keeps no reason\") && strings.Contains(r.err, \"nothing changed\")", line, r.code, r.err)
		}
	}
}

// The remains of a failed training are reported.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	failed := errors.New("ladder: no answer")
	for _, tc := range []struct {
		name        string
		res         trainer.Result
		interrupted bool
		code        string
		has, not    string
	}{
		{"before a run", trainer.Result{}, true, "interrupted", "nothing was registered", "KILLED"},
		{"in a run", trainer.Result{RunID: "r1"}, true, "interrupted", "r1 is marked KILLED and nothing was registered", "version"},
		{"after registering", trainer.Result{RunID: "r1", Version: "7"}, true, "interrupted", "version 7 of JPCP is registered already", "nothing was registered"},
		{"failed after registering", trainer.Result{RunID: "r1", Version: "7"}, false, "training_failed", "no answer; version 7 of JPCP is registered", "nothing"},
		{"failed before", trainer.Result{RunID: "r1"}, false, "training_failed", "training JPCP failed: ladder", "registered"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := failed
			if tc.interrupted {
				err = context.Canceled
			}
			f := fault.From(unfinishedFault(tc.res, "JPCP", err, tc.interrupted))
			if f.Code != tc.code || f.Exit != fault.ExitRuntime || !strings.Contains(f.Message, tc.has) || strings.Contains(f.Message, tc.not) {
				t.Fatalf("%+v; want f.Code == tc.code && f.Exit == fault.ExitRuntime && strings.Contains(f.Message, tc.has) && !strings.Contains(f.Message, tc.not)", f)
			}
		})
	}
}

// Each fault of a repository is in the document, not the first alone.
func TestValidateListsFaults(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	for _, name := range []string{"One", "Two"} {
		dir := filepath.Join(repo, "models", "regression", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "model.yaml"), []byte("name: "+name+"\nnonsense: <b>\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []string{"json", "csv"} {
		r := runMLP(t, map[string]string{"HOME": t.TempDir()}, "", "-o", format, "pipeline", "validate", "--repo", repo)
		var doc struct {
			Code   string
			Faults []struct {
				File, Message string
				Line          *int
			}
		}
		if err := json.Unmarshal([]byte(r.out), &doc); err != nil || r.code != 1 || r.err != "" || doc.Code != "invalid_modelrepo" || len(doc.Faults) < 2 {
			t.Fatalf("exit %d, %v\n%s%s; want r.code == 1 && r.err == \"\" && doc.Code == \"invalid_modelrepo\" && len(doc.Faults) >= 2", r.code, err, r.out, r.err)
		}
		for _, f := range doc.Faults {
			if f.File == "" || f.Message == "" || f.Line == nil {
				t.Errorf(`%+v; want f.File != "" && f.Message != "" && f.Line != nil`, f)
			}
		}
	}
	if r := runMLP(t, map[string]string{"HOME": t.TempDir()}, "", "pipeline", "validate", "--repo", repo); r.code != 1 || strings.Count(r.out, "model.yaml:") < 2 {
		t.Fatalf("exit %d\n%s; want r.code == 1 && strings.Count(r.out, \"model.yaml:\") >= 2", r.code, r.out)
	}
}

// A scheduler that this build does not have, or that is not set up, is refused, not replaced by mock.
func TestPipelineRunRefusesAnUnknownScheduler(t *testing.T) {
	repo := filepath.Join("..", "..", "..", "..", "deploy", "modelrepo")
	for mode, want := range map[string]string{"slurm": "HPC_WORK_DIR", "flux": `PLATFORM_SCHEDULER_MODE "flux" is not in this build`} {
		r := runMLP(t, map[string]string{"HOME": t.TempDir(), "PLATFORM_SCHEDULER_MODE": mode}, "", "pipeline", "run", "--repo", repo, "-m", "JPCP")
		if r.code != 1 || !strings.Contains(r.out+r.err, want) {
			t.Errorf("%s: got exit %d, %s%s, want 1 and %s", mode, r.code, r.out, r.err, want)
		}
	}
}

// The settings of a login node would be passed over, and the job submitted here instead.
func TestPipelineRunRefusesSSH(t *testing.T) {
	t.Parallel()
	repo := filepath.Join("..", "..", "..", "..", "deploy", "modelrepo")
	r := runMLP(t, map[string]string{"HOME": t.TempDir(), "PLATFORM_SCHEDULER_MODE": "slurm", "HPC_SSH_HOST": "login"}, "", "pipeline", "run", "--repo", repo, "-m", "JPCP")
	if r.code != 1 || !strings.Contains(r.out+r.err, "HPC_SSH_HOST") || !strings.Contains(r.out+r.err, "trainer train") {
		t.Errorf("exit %d, %s%s; want 1 and a refusal that names HPC_SSH_HOST and trainer train", r.code, r.out, r.err)
	}
}

// The operator's list of commands for estimators also applies to a training on this machine.
func TestPipelineRunAllowsListedCommands(t *testing.T) {
	repo := t.TempDir()
	if err := os.CopyFS(repo, os.DirFS(filepath.Join("..", "..", "..", "..", "deploy", "modelrepo"))); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(repo, "models", "power_consumption_prediction", "JPCP", "model.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "kind: random_forest", "kind: command\n  command: [fit, it]", 1))
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(tracker.Close)
	const refusal = "not listed in TRAINER_COMMAND_ALLOW"
	for allow, want := range map[string]string{"": refusal, "other": refusal, "other,fit it": "start a run in the tracker"} {
		r := runMLP(t, map[string]string{"HOME": t.TempDir(), "TRACKING_URI": tracker.URL, "TRAINER_COMMAND_ALLOW": allow}, "", "pipeline", "run", "--repo", repo, "-m", "JPCP")
		if r.code != 1 || !strings.Contains(r.out+r.err, want) {
			t.Errorf("allowed %q: got exit %d, %s%s, want 1 and %s", allow, r.code, r.out, r.err, want)
		}
	}
	r := runMLP(t, map[string]string{"HOME": t.TempDir(), "TRAINER_COMMAND_TIMEOUT": "soon"}, "", "pipeline", "run", "--repo", repo, "-m", "JPCP")
	if r.code != 1 || !strings.Contains(r.out+r.err, "TRAINER_COMMAND_TIMEOUT") {
		t.Errorf("got exit %d, %s%s, want 1 and TRAINER_COMMAND_TIMEOUT", r.code, r.out, r.err)
	}
}
