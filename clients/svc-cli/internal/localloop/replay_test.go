package localloop_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
)

// writeDocument runs a loop and returns its config and the folder that was written.
func writeDocument(t testing.TB, l *looptest.Loop) (config, dir string) {
	t.Helper()
	base := t.TempDir()
	config = l.Write(t, filepath.Join(base, "loop"))
	dir = filepath.Join(base, "out")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range runAt(t, config).Files { // Write would flush each to the disk
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return config, dir
}

func replayRun(t testing.TB, config, dir string) []localloop.Difference {
	t.Helper()
	c, err := openSource(t, config).Replay(t.Context(), dir, localloop.Options{Now: laterTime})
	if err != nil {
		t.Fatal(err)
	}
	return c.Differences
}

// laterTime is another time than that of the run.
func laterTime() time.Time { return time.Date(2027, 2, 3, 4, 5, 6, 789, time.UTC) }

func manyKeys(n int) string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf(`"k%d": 1`, i))
	}
	return strings.Join(keys, ",")
}

func editFile(t testing.TB, path, old, new string) {
	t.Helper()
	data := mustRead(t, path)
	if !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%s does not hold %q:\n%s; want bytes.Contains(data, []byte(old))", path, old, data)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(old), []byte(new), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReplayOfAnUntouchedRunIsEqual(t *testing.T) {
	t.Parallel()
	for name, l := range looptest.Samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, dir := writeDocument(t, l)
			if d := replayRun(t, config, dir); len(d) > 0 {
				t.Error(d, "want len(d) <= 0")
			}
		})
	}
}

// A change of any file that was written, or of any file that it was made of, shows, and
// where it is.
func TestReplayFindsEveryChange(t *testing.T) {
	t.Parallel()
	const result = "out/verification-result-attempt-1.json"
	for _, c := range []struct {
		name, file, old, new string
		want                 string // "file place"
	}{
		{"record value", "out/run-record.json", `"control_failures": 0`, `"control_failures": 1`, "run-record.json /summary/control_failures"},
		{"record key more", "out/run-record.json", "{\n", "{\n  \"x\": 1,\n", "run-record.json /x"},
		{"record spelling", "out/run-record.json", `"kind": `, `"kind":  `, "run-record.json "},
		{"report value", "out/evidence-report.json", `"merge": false`, `"merge": true`, "evidence-report.json /authority/merge"},
		{"report attempts", "out/evidence-report.json", `"attempts": [`, `"attempts": [{},`, "evidence-report.json /attempts"},
		{"report no JSON", "out/evidence-report.json", `{`, `[`, "evidence-report.json "},
		{"markdown", "out/evidence-report.md", "reject_candidate", "accept_candidate", "evidence-report.md "},
		{"next steps", "out/NEXT_STEPS.md", "svc run", "rm -r; svc run", "NEXT_STEPS.md "},
		{"replay source", "out/replay-source.json", `"config.json"`, `"other.json"`, "replay-source.json /config"},
		{"result status", result, `"confidence": 1.0`, `"confidence": 0.5`, "verification-result-attempt-1.json /decision_support/confidence"},
		{"result that is none", result, `"checks_failed": 0`, `"checks_failed": 1`, "verification-result-attempt-1.json "},
		{"result evidence", result, `"id": "acceptance-observation"`, `"id": "acceptance-observatiom"`, "verification-result-attempt-1.json "},
		{"result times that are none", result, `"started_at": "2026`, `"started_at": "2027`, "verification-result-attempt-1.json "},
		{"result spelling", result, `"attempt": 1`, `"attempt":  1`, "verification-result-attempt-1.json "},
		{"candidate", "loop/attempt-1/candidate/answer.json", "42", "43", "run-record.json /attempts/0/verification/recommendation"},
		{"manifest", "loop/attempt-1/result-manifest.json", "Done.", "Done!", "run-record.json /attempts/0/result_manifest/digest"},
		{"policy", "loop/policy.json", `"max_candidate_bytes": 4096`, `"max_candidate_bytes": 4097`, "run-record.json /verifier_policy_digest"},
		{"config", "loop/config.json", "run/json-demo", "run/json-demo2", "replay-source.json /config_digest"},
		{"work unit", "loop/work-unit.json", "Write the answer.", "Write an answer.", "run-record.json /run_state"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config, dir := writeDocument(t, looptest.JSON())
			editFile(t, filepath.Join(filepath.Dir(dir), filepath.FromSlash(c.file)), c.old, c.new)
			var got []string
			for _, d := range replayRun(t, config, dir) {
				got = append(got, d.File+" "+d.Path)
				if d.Detail == "" {
					t.Error(d, `want d.Detail != ""`)
				}
				if d.File+" "+d.Path == c.want {
					return
				}
			}
			t.Errorf("%q, want %q", got, c.want)
		})
	}
}

// When, how long and where the verifier ran is the only thing that may differ.
func TestReplayLeavesOutTimeAndPlace(t *testing.T) {
	t.Parallel()
	config, dir := writeDocument(t, looptest.JSON())
	result := filepath.Join(dir, "verification-result-attempt-1.json")
	editFile(t, result, `"wall_seconds": 1.5`, `"wall_seconds": 99.0`)
	editFile(t, result, `"architecture": "`, `"architecture": "other`)
	editFile(t, result, `"finished_at": "2026`, `"finished_at": "2036`)
	if d := replayRun(t, config, dir); len(d) > 0 {
		t.Error(d, "want len(d) <= 0")
	}
}

func TestReplayFindsFilesMoreAndLess(t *testing.T) {
	t.Parallel()
	config, dir := writeDocument(t, looptest.Failing())
	if err := os.Remove(filepath.Join(dir, localloop.MarkdownFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "verification-result-attempt-2.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, localloop.RecordFile), filepath.Join(dir, "real")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, localloop.RecordFile)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range replayRun(t, config, dir) {
		got = append(got, d.File+": "+d.Detail)
	}
	want := []string{
		"evidence-report.md: the file is absent",
		"real: the run does not write this file",
		"run-record.json: the file cannot be compared: run-record.json is a symbolic link, which is not followed",
		"verification-result-attempt-2.json: the run does not write this file",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q; want strings.Join(got, \"\\n\") == strings.Join(want, \"\\n\")", got)
	}
}

func TestReplayOfNoFolder(t *testing.T) {
	t.Parallel()
	s := openSource(t, looptest.JSON().Write(t, t.TempDir()))
	var f *localloop.Fault
	if _, err := s.Replay(t.Context(), filepath.Join(t.TempDir(), "none"), localloop.Options{Now: tickingClock()}); !errors.As(err, &f) || f.Code != localloop.ReadError {
		t.Error(err, "want errors.As(err, &f) && f.Code == localloop.ReadError")
	}
}

// A file of thousands of changes is reported with a few of them.
func TestDifferencesAreBounded(t *testing.T) {
	t.Parallel()
	config, dir := writeDocument(t, looptest.JSON())
	if err := os.WriteFile(filepath.Join(dir, localloop.RecordFile), []byte("{"+manyKeys(500)+"}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if d := replayRun(t, config, dir); len(d) != 20 {
		t.Errorf("%d differences; want 20", len(d))
	}
}
