package diagnose

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/recorded/recordedtest"
)

func TestAnswerEndsWithWhatTheRecordingIs(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	recording := recordedtest.Folder(t, "must-gather")
	if code := Run("diagnose", []string{"--from", recording, "--namespace", "shop", "why", "does", "api-1", "crash"}, &out, &errOut); code != 0 {
		t.Fatalf("exit code %d, %s; want 0", code, errOut.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := "Note: this is a recording of a cluster as of 2026-03-01 10:06:01 UTC; nothing can be written to it, and what was not recorded is not known to be absent."
	if got := lines[len(lines)-1]; got != want {
		t.Errorf("the last line is %q, want %q", got, want)
	}
	for _, want := range []string{"api-1", "permission denied", "Not read, and so not judged: ", "configmaps"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the answer is %s, want %q in it", out.String(), want)
		}
	}
}

func TestAnswerAsJSON(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	recording := recordedtest.Folder(t, "must-gather")
	if code := Run("diagnose", []string{"--from", recording, "--output", "json"}, &out, &errOut); code != 0 {
		t.Fatalf("exit code %d, %s; want 0", code, errOut.String())
	}
	var a Answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil || len(a.Findings) == 0 || a.Findings[0].Name != "api-1" || a.Question != defaultQuestion {
		t.Errorf("answer %+v, error %v; want a first finding about api-1", a, err)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	recording := recordedtest.Folder(t, "must-gather")
	for name, c := range map[string]struct {
		verb string
		args []string
		want int
	}{
		"no recording is named":    {"diagnose", nil, 2},
		"an unknown flag":          {"diagnose", []string{"--form", "x"}, 2},
		"an unknown output":        {"diagnose", []string{"--from", recording, "--output", "xml"}, 2},
		"a recording that is away": {"diagnose", []string{"--from", filepath.Join(t.TempDir(), "none")}, 1},
		"no folder is named":       {"evaluate", nil, 2},
		"a folder without truths":  {"evaluate", []string{"--recorded", t.TempDir()}, 1},
	} {
		var out, errOut bytes.Buffer
		if got := Run(c.verb, c.args, &out, &errOut); got != c.want {
			t.Errorf("%s: exit code %d, %s; want %d", name, got, errOut.String(), c.want)
		}
	}
}

func TestEvaluateJudgesTheFirstFinding(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "one"), os.DirFS(recordedtest.Folder(t, "must-gather"))); err != nil {
		t.Fatal(err)
	}
	truth := "namespace: shop\nquestion: why does api-1 crash?\nobject: pod/api-1\ncause: volume mount permission denied\n"
	if err := os.WriteFile(filepath.Join(folder, "one", "truth.yaml"), []byte(truth), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Evaluate(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	want := Figures{Cause: "all", Asked: 1, Right: 1}
	if r.Total != want {
		t.Errorf("total %+v, want %+v; the answer is %s", r.Total, want, r.Results[0].Answer)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	truth := Truth{Object: "app/api", Cause: "liveness probe incorrect port"}
	const right = "One thing is wrong.\n\n**1. Deployment `api`: liveness or startup probe**\n\nThe liveness probe asks port 80."
	for name, c := range map[string]struct {
		answer string
		want   Verdict
	}{
		"object and cause first":  {right, Right},
		"object and cause second": {"**1. Service `web`: service port**\n\nx\n\n**2. Deployment `api`: probe**\n\nThe liveness probe asks port 80.", Partly},
		"the object alone":        {"**1. Deployment `api`: image pull**\n\nIts image is absent.", Partly},
		"something else":          {"**1. Deployment `web`: image pull**\n\nIts image is absent.", Wrong},
		"all is well":             {"Nothing was found wrong in namespace `shop`.", AllClear},
		"no finding, but a gap":   {"No object shows a fault. Not looked at: kube-proxy.", Honest},
		"a finding, and a gap":    {"**1. Deployment `web`: image pull**\n\nx\n\nNot read: roles.", Wrong},
	} {
		if got, err := judge(truth, c.answer); err != nil || got != c.want {
			t.Errorf("%s: judged %q, error %v; want %q", name, got, err, c.want)
		}
	}
}
