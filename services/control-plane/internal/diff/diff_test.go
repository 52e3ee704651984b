package diff_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge/forgetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

const model = "models/power_consumption_prediction/JPCP/"

// A diff begins where the model was last trained and ends at the noticed commit.
func TestDiff(t *testing.T) {
	t.Parallel()
	repo := forgetest.New(t)
	repo.Run(repo.Dir, "cp", "-r", filepath.Join(controlplanetest.Samples(), "models"), filepath.Join(controlplanetest.Samples(), "datasets"), filepath.Join(controlplanetest.Samples(), "registries"), ".")
	repo.Git("add", ".")
	first := repo.Commit("first", map[string]string{"notes": "1\n"})
	second := repo.Commit("second", map[string]string{"notes": "1\n2\n", "data/raw": "\x00\x01"})
	p := controlplanetest.Start(t, "MODELREPO_DIR="+repo.Dir, "MODELREPO_POLL_SECONDS=86400")
	id := p.Notice("JPCP", second)
	show := func(id string) map[string]any {
		t.Helper()
		return p.Want(200, "GET", "/approvals/"+id+"/diff", controlplanetest.Reader, nil).Object(t)
	}
	// Never trained: the changes of the commit itself.
	d := show(id)
	files := d["files"].([]any)
	if d["from_commit"] != first || d["to_commit"] != second || d["truncated"] != false || len(files) != 2 {
		t.Fatalf(`%v; want d["from_commit"] == first && d["to_commit"] == second && d["truncated"] == false && len(files) == 2`, d)
	}
	raw, notes := files[0].(map[string]any), files[1].(map[string]any)
	if _, patched := raw["patch"]; patched || raw["path"] != "data/raw" || raw["status"] != "added" {
		t.Errorf(`a binary file: %v; want !patched && raw["path"] == "data/raw" && raw["status"] == "added"`, raw)
	}
	if notes["path"] != "notes" || notes["status"] != "modified" || notes["additions"] != 1.0 || notes["deletions"] != 0.0 || notes["patch"] != "@@ -1 +1,2 @@\n 1\n+2\n" {
		t.Errorf("a text file: %v; want notes[\"path\"] == \"notes\" && notes[\"status\"] == \"modified\" && notes[\"additions\"] == 1.0 && notes[\"deletions\"] == 0.0 && notes[\"patch\"] == \"@@ -1 +1,2 @@\\n 1\\n+2\\n\"", notes)
	}

	// Trained from the first commit, as the trainer reports it.
	older := p.Notice("JPCP", first)
	run := p.Want(200, "POST", "/approvals/"+older+"/approve", controlplanetest.Operator, nil).Object(t)["flow_run_id"].(string)
	version := p.Tracker.Add("jpcp", controlplanetest.Version{
		Metrics: map[string]any{"rmse": 10.0}, RunTags: map[string]string{"prefect_flow_run_id": run, "modelrepo_commit": first},
	})
	p.Report("jpcp", version)
	p.Orchestrator.State(run, "COMPLETED", "")
	testenv.Eventually(t, 15*time.Second, func() error {
		for _, m := range p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(t)["models"].([]any) {
			if m := m.(map[string]any); m["model_id"] == "JPCP" && m["trained_from_commit"] != first {
				return fmt.Errorf("%v", m)
			}
		}
		return nil
	})
	third := repo.Commit("third", map[string]string{"notes": "1\n2\n3\n", model + "README.md": "text\n"})
	d = show(p.Notice("JPCP", third[:10]))
	if d["from_commit"] != first || d["to_commit"] != third || len(d["files"].([]any)) != 3 {
		t.Errorf(`%v; want d["from_commit"] == first && d["to_commit"] == third && len(d["files"].([]any)) == 3`, d)
	}
	if d = show(p.Notice("MACK", third)); d["from_commit"] != second {
		t.Errorf(`another model: %v; want d["from_commit"] == %v`, d, second)
	}

	p.Refused(404, "approval_not_found", "GET", "/approvals/"+id+"/diff", controlplanetest.Foreign, nil)
	p.Refused(404, "approval_not_found", "GET", "/approvals/x/diff", controlplanetest.Reader, nil)
	for _, commit := range []string{"main", "HEAD", strings.Repeat("9", 40), "refs/heads/main", "c0ffee1"} {
		id := p.Notice("RUNTIMECLASS", commit)
		p.Refused(404, "diff_unavailable", "GET", "/approvals/"+id+"/diff", controlplanetest.Reader, nil)
	}
}

// The answer stays within 1 MiB and reports that it is truncated.
func TestDiffIsBounded(t *testing.T) {
	t.Parallel()
	repo := forgetest.New(t)
	repo.Commit("first", map[string]string{"models/.keep": "\n"})
	many := map[string]string{}
	for i := range 12 {
		many[fmt.Sprintf("f%02d", i)] = strings.Repeat("<&>\t\u2028line\n", 3000) // grows when encoded
	}
	sha := repo.Commit("many", many)
	p := controlplanetest.Start(t, "MODELREPO_DIR="+repo.Dir)
	r := p.Want(200, "GET", "/approvals/"+p.Notice("JPCP", sha)+"/diff", controlplanetest.Reader, nil)
	d := r.Object(t)
	if len(r.Body) > 1<<20 || d["truncated"] != true || len(d["files"].([]any)) != 12 {
		t.Errorf(`%d bytes, %d files, truncated %v; want len(r.Body) <= 1 << 20 && d["truncated"] == true && len(d["files"].([]any)) == 12`, len(r.Body), len(d["files"].([]any)), d["truncated"])
	}
	patched := 0
	for _, f := range d["files"].([]any) {
		if f := f.(map[string]any); f["patch"] != nil {
			patched++
		} else if f["additions"] != 3000.0 {
			t.Errorf(`%v; want f["additions"] == 3000.0`, f)
		}
	}
	if patched == 0 {
		t.Error("no patch at all")
	}
}

// A commit newer than the last poll is fetched for its diff.
func TestDiffFetches(t *testing.T) {
	t.Parallel()
	repo := forgetest.New(t)
	repo.Commit("first", map[string]string{"models/.keep": "\n"})
	p := controlplanetest.Start(t, "MODELREPO_DIR=", "MODELREPO_GIT_URL="+repo.Serve().Address(), "MODELREPO_CACHE_DIR="+t.TempDir(), "MODELREPO_POLL_SECONDS=0")
	sha := repo.Commit("second", map[string]string{"models/new": "x\n"})
	d := p.Want(200, "GET", "/approvals/"+p.Notice("JPCP", sha)+"/diff", controlplanetest.Reader, nil).Object(t)
	if d["to_commit"] != sha || len(d["files"].([]any)) != 1 {
		t.Errorf(`%v; want d["to_commit"] == sha && len(d["files"].([]any)) == 1`, d)
	}
}
