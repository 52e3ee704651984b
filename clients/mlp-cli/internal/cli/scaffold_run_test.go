package cli

import (
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer"
)

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// In an empty git repository and in a clone a scaffolded model is sound. A control plane that has not read its commit
// stops the training before anything is registered, and the next commands are those that are missing.
func TestScaffoldedModelIsPublishedFirst(t *testing.T) {
	var recorded atomic.Int64
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { recorded.Add(1); w.WriteHeader(500) }))
	t.Cleanup(tracker.Close)
	var read atomic.Value // the control plane's answer about commits
	read.Store(`{"models": [], "last_event": null}`)
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/modelrepo/status" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, read.Load().(string))
			return
		}
		if r.URL.Path != "/models/QUEUETIME/meta" {
			t.Errorf("the control plane was asked %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code": "model_not_found", "status": 404, "title": "Not found", "detail": "There is no such model; GET /models lists them."}`)
	}))
	t.Cleanup(control.Close)
	vars := map[string]string{"HOME": t.TempDir(), "TRACKING_URI": tracker.URL, "CONTROL_PLANE_URL": control.URL}

	origin, clone := filepath.Join(t.TempDir(), "origin"), filepath.Join(t.TempDir(), "clone")
	if err := os.Mkdir(origin, 0o755); err != nil {
		t.Fatal(err)
	}
	runGit(t, origin, "init", "-q")
	t.Chdir(origin)
	scaffoldAndRun(t, vars, []string{"git -C . add -A", "git -C . commit -m 'Add QueueTime'", "mlp modelrepo sync"})
	if err := os.RemoveAll(filepath.Join(origin, "models", "performance_prediction", "QueueTime")); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"datasets/QueueTimeData.yaml", "data/QueueTime.csv"} {
		if err := os.Remove(filepath.Join(origin, f)); err != nil {
			t.Fatal(err)
		}
	}
	if r := runMLP(t, vars, "", "scaffold", "Other"); r.code != 0 {
		t.Fatalf("a second model: got %+v, want exit 0", r)
	}
	runGit(t, origin, "add", "-A")
	runGit(t, origin, "commit", "-qm", "a repository")
	runGit(t, filepath.Dir(clone), "clone", "-q", origin, clone)
	t.Chdir(clone)
	scaffoldAndRun(t, vars, []string{"git -C . add -A", "git -C . commit -m 'Add QueueTime'", "git -C . push", "mlp modelrepo sync"})
	for commit, want := range map[string]string{
		"0123456789abcdef0123456789abcdef01234567": "the control plane has read commit 0123456789ab, which this folder does not have",
		headOf(t, clone): "git -C . add -A",
	} {
		read.Store(`{"models": [], "last_event": {"commit_sha": "` + commit + `", "timestamp": "2026-01-02T03:04:05Z", "source": "poll"}}`)
		if r := runMLP(t, vars, "", "pipeline", "run", "--model", "QueueTime", "--dummy"); r.code != 1 || !strings.Contains(r.err, want) {
			t.Errorf("a control plane that has read %s: got %+v, want the hint %q", commit, r, want)
		}
	}
	if recorded.Load() > 0 {
		t.Errorf("the tracker was called %d times, want nothing recorded", recorded.Load())
	}
}

func headOf(t *testing.T, dir string) string {
	t.Helper()
	sha, err := modelrepo.HeadCommit(dir)
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

func scaffoldAndRun(t *testing.T, vars map[string]string, next []string) {
	t.Helper()
	r := runMLP(t, vars, "", "scaffold", "QueueTime")
	if r.code != 0 {
		t.Fatalf("scaffold: got %+v, want exit 0", r)
	}
	for _, command := range next {
		if !strings.Contains(r.out+r.err, "\n  "+command) {
			t.Errorf("scaffold: got %s%s, want the command %q", r.out, r.err, command)
		}
	}
	if r := runMLP(t, vars, "", "pipeline", "validate"); r.code != 0 {
		t.Errorf("validate: got %+v, want exit 0", r)
	}
	r = runMLP(t, vars, "", "--json", "pipeline", "run", "--model", "QueueTime", "--dummy")
	var doc struct{ Code, Hint string }
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || r.code != 1 || doc.Code != "model_not_published" || doc.Hint != strings.Join(next, " && ") {
		t.Errorf("run: got %+v, want model_not_published and the hint %s", r, strings.Join(next, " && "))
	}
}

// An unrelated folder becomes a model repository only if --repo names it.
func TestScaffoldLeavesOtherFoldersAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "photos"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	vars := map[string]string{"HOME": t.TempDir()}
	if r := runMLP(t, vars, "", "scaffold", "QueueTime"); r.code != 1 || !strings.Contains(r.err, "--repo .") {
		t.Errorf("got %+v, want a refusal with the option to use", r)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v; want the folder as it was", entries, err)
	}
	if r := runMLP(t, vars, "", "scaffold", "QueueTime", "--repo", "."); r.code != 0 || !strings.Contains(r.out+r.err, "git -C . init") {
		t.Errorf("named: got %+v, want a repository and how to make it one of git", r)
	}
}

// A scaffolded model of each type learns from its rows and from generated ones, and reaches Staging with both.
func TestScaffoldedModelsTrain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	vars := map[string]string{"HOME": t.TempDir()}
	names := map[string]string{"Seconds": "regression", "Slow": "classification"}
	for name, kind := range names {
		if r := runMLP(t, vars, "", "scaffold", name, "--type", kind, "--repo", dir); r.code != 0 {
			t.Fatalf("got %+v, want exit 0", r)
		}
	}
	tr, err := trainer.New(trainer.Config{TrackingURI: "http://127.0.0.1:1", ModelRepoDir: dir, SchedulerMode: "mock", DataCacheDir: t.TempDir()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	repo, err := modelrepo.Open(dir, "")
	if err != nil || len(repo.Faults) > 0 {
		t.Fatal(err, repo.Faults)
	}
	for name := range names {
		for _, dummy := range []bool{false, true} {
			report, err := tr.Evaluate(t.Context(), trainer.Request{Model: name, Dummy: dummy}, nil)
			if err != nil {
				t.Errorf("%s, dummy %t: %v", name, dummy, err)
				continue
			}
			all := maps.Clone(report.Metrics)
			maps.Copy(all, report.Baselines)
			m, _ := repo.Model(name)
			if v := m.Judge(all)[0]; !v.Pass {
				t.Errorf("%s, dummy %t: got %s, want Staging", name, dummy, v.Reason)
			}
		}
	}
}

// validate reads every registry; a fault of a whole file is printed without a line.
func TestValidateReadsEveryRegistry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	vars := map[string]string{"HOME": t.TempDir()}
	if r := runMLP(t, vars, "", "scaffold", "QueueTime", "--repo", dir); r.code != 0 {
		t.Fatalf("got %+v, want exit 0", r)
	}
	if err := os.WriteFile(filepath.Join(dir, "registries", "prod.yaml"), []byte("version: 1\nmodels: [{name: Queuetimes}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "datasets", "Large.yaml"), []byte(strings.Repeat("#\n", 5_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := runMLP(t, vars, "", "pipeline", "validate", "--repo", dir)
	for _, want := range []string{"registries/prod.yaml:2: names model QUEUETIMES", "datasets/Large.yaml: has more than 4000 lines"} {
		if r.code != 1 || strings.Count(r.out, want) != 1 {
			t.Errorf("got %+v, want %q once", r, want)
		}
	}
}
