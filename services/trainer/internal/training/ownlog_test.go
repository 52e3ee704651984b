package training

import (
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
)

// The page of the documentation, followed to the letter, turns a table of other columns than the samples' into a
// model that meets its conditions for Production on jobs it never saw.
func TestOwnJobLogByTheDocumentation(t *testing.T) {
	t.Parallel()
	dir := writeDocumentedRepo(t)
	repo, err := modelrepo.Open(dir, "")
	if err != nil || len(repo.Faults) > 0 {
		t.Fatalf("got %v, faults %v; want a model repository without faults", err, repo.Faults)
	}
	tr, err := New(Config{
		Tracker: tracker.New("http://127.0.0.1:1", service.HTTPClient(tracker.DefaultTimeout)), ModelRepoDir: dir,
		CacheDir: t.TempDir(), GPUCostPerHour: 2.5, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := tr.Evaluate(t.Context(), Request{Model: "ClusterRuntime"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if total := report.Rows.Train + report.Rows.Validation + report.Rows.Test + report.Rows.Purged; total != 18_239 {
		t.Errorf("got %d rows, want every job of the log", total)
	}
	if report.Hours == nil || report.Hours.Zone != "UTC" {
		t.Errorf("got the hours %+v, want them in UTC: the times are instants", report.Hours)
	}
	all := maps.Clone(report.Metrics)
	maps.Copy(all, report.Baselines)
	for _, v := range repo.Models["CLUSTERRUNTIME"].Judge(all) {
		if !v.Pass {
			t.Errorf("%s: got %s; male %.3f, running baseline %.3f, want a pass", v.Alias, v.Reason, all["male"], all["baseline_running_male"])
		}
	}
}

// writeDocumentedRepo makes a model repository of the blocks of the page.
func writeDocumentedRepo(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/trainer.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## A job log of your own\n")
	section, _, _ = strings.Cut(section, "\n## ")
	root, err := filepath.Abs(samples)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("registries/base.yaml", "version: 1\n")
	files := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		write(block[1], block[2])
		files++
	}
	if files != 2 {
		t.Fatalf("got %d files in the section, want the data set and the model", files)
	}
	first := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(section)
	if first == nil {
		t.Fatal("the section has no command that makes the table")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", first[1])
	// A reader has a clone in the folder of the page, and no variable that the page does not set.
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "platform", "deploy"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, filepath.Join(home, "platform", "deploy", "modelrepo")); err != nil {
		t.Fatal(err)
	}
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}
