package svccli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// The rows of the acceptance table that are about the local loop, on the program itself.

func loopFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

func TestRow63LoopImportRead(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	for _, name := range []string{"json", "json-plan", "failing", "patch-0.2", "patch-0.3", "patch-0.4"} {
		config := "local-loop/" + name + "/config.json"
		first, second := filepath.Join("first", name), filepath.Join("second", name)
		requireSuccess(t, runSVC(t, dir, "local-loop", config, "--output-dir", first))
		requireSuccess(t, runSVC(t, dir, "local-loop", config, "--output-dir", second))
		a, b := loopFiles(t, filepath.Join(dir, first)), loopFiles(t, filepath.Join(dir, second))
		for _, file := range []string{"run-record.json", "evidence-report.json", "evidence-report.md", "replay-source.json", "NEXT_STEPS.md"} {
			if a[file] == "" || a[file] != b[file] {
				t.Errorf("%s: %s differs", name, file)
			}
		}
		requireSuccess(t, runSVC(t, dir, "local-loop", config, "--replay", second))
		imported := "--store loop.db --idempotency-key " + name + " " + projectFlags
		requireSuccess(t, runWords(t, dir, "run import-evidence "+first+" "+imported))
		if r := requireSuccess(t, runWords(t, dir, "run import-evidence "+second+" "+imported)); !strings.HasPrefix(r.out, "replayed: ") {
			t.Error(r.out, `want strings.HasPrefix(r.out, "replayed: ")`)
		}
	}
	p, url := towerOn(t, dir, "--port", "0", "--product-spine-store", "loop.db")
	for _, name := range []string{"json", "json-plan", "failing", "patch-0.2", "patch-0.3", "patch-0.4"} {
		report, err := canon.Parse(readFile(t, dir, "first/"+name+"/evidence-report.json"))
		if err != nil {
			t.Fatal(err)
		}
		id, _ := report.(*canon.Object).Get("run_id")
		status, body := getURL(t, url+"/api/v1/runs/"+id.(string)+"/evidence")
		if status != 200 {
			t.Fatalf("%d %s; want status == 200", status, body)
		}
		answer, err := canon.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		kept, _ := answer.(*canon.Object).Get("evidence_report")
		digest, _ := answer.(*canon.Object).Get("evidence_report_digest")
		if canon.Digest(kept) != canon.Digest(report) || digest != canon.Digest(report) {
			t.Errorf("%s: another report; want canon.Digest(kept) == canon.Digest(report) && digest == canon.Digest(report)", name)
		}
	}
	p.signal(t, syscall.SIGTERM)
	p.ends(t)
	requireSuccess(t, runSVC(t, dir, "verify", "loop.db"))
}

func TestRow64LoopIntoAFullFolder(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	full := filepath.Join(dir, "full")
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(full, "run-record.json"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(full)
	if err != nil {
		t.Fatal(err)
	}
	r := runSVC(t, dir, "local-loop", "local-loop/json/config.json", "--output-dir", "full", "--json")
	var answer struct {
		OK    bool
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || r.code != 2 || answer.OK || answer.Error.Code != "output_not_empty" || !strings.HasPrefix(r.err, "error: the output folder full is not empty") {
		t.Errorf(`%d %q %q %v; want r.code == 2 && !answer.OK && answer.Error.Code == "output_not_empty" && strings.HasPrefix(r.err, "error: the output folder full is not empty")`, r.code, r.out, r.err, err)
	}
	after, err := os.Stat(full)
	if err != nil {
		t.Fatal(err)
	}
	if files := loopFiles(t, full); len(files) != 1 || files["run-record.json"] != "mine" || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf(`touched: %v; want len(files) == 1 && files["run-record.json"] == "mine" && after.ModTime().Equal(before.ModTime())`, files)
	}
	// The default folder, and that it is not written over either.
	requireSuccess(t, runWords(t, dir, "local-loop local-loop/json/config.json"))
	written := loopFiles(t, filepath.Join(dir, "svc-local-loop", "run_json-demo"))
	if len(written) != 7 {
		t.Error(len(written), "want 7")
	}
	if r := runWords(t, dir, "local-loop local-loop/json/config.json"); r.code != 2 {
		t.Error(r.code, "want 2")
	}
}

// A run that is killed while it writes leaves the whole folder or none of it.
func TestKilledLoopLeavesNothingHalfWritten(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	whole := 0
	for i := range 12 {
		parent := filepath.Join(dir, "runs", string(rune('a'+i)))
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		p := svcProcess(t, dir, "local-loop", "local-loop/json/config.json", "--output-dir", filepath.Join(parent, "out"))
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = p.Wait()
		}()
		// Killed at as many files as this round is late.
		for over := false; !over; {
			select {
			case <-ended:
				over = true
				continue
			default:
			}
			beside, err := filepath.Glob(filepath.Join(parent, ".out.*", "*"))
			if err != nil {
				t.Fatal(err)
			}
			over = len(beside) >= 1+i%7
		}
		_ = p.Process.Kill() // it may have ended
		<-ended
		switch _, err := os.Stat(filepath.Join(parent, "out")); {
		case err == nil:
			whole++
			if files := loopFiles(t, filepath.Join(parent, "out")); len(files) != 7 {
				t.Errorf("half a folder: %d files; want 7", len(files))
			}
			requireSuccess(t, runSVC(t, dir, "local-loop", "local-loop/json/config.json", "--replay", filepath.Join(parent, "out")))
		case !os.IsNotExist(err):
			t.Error(err)
		}
	}
	t.Logf("%d of 12 runs were whole", whole)
}
