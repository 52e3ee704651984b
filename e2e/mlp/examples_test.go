//go:build e2e

package mlp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// exampleID represents in the examples an id that a reader has found in a list.
const exampleID = "0193b2c4-7d1e-7a52-9c3f-5e8b6a7d1f20"

// Examples that end with exit code 1 here, and the text of the reason.
var failingExamples = map[string]string{
	"mlp stack up":                          "no Docker engine",
	"mlp stack down --volumes":              "no Docker engine",
	"mlp stack restart --service inference": "no Docker engine",
	"mlp stack logs --service control-plane --tail 200 --no-follow": "no Docker engine",
	"mlp --json stack status":   "no Docker engine",
	"mlp config init":           "needs a terminal",
	"mlp alerts ack drift.JPCP": "there is no alert",
}

// Each example of docs/mlp.md runs as a reader would type it, in a folder with a job and a copy of the model repository.
func checkExamples(t *testing.T, p *harness.Platform, mlp string) {
	reference, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "mlp.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?m)^### `mlp .*`\n\n(?:.*\n\n)+?```sh\n(mlp .*)\n```$").FindAllStringSubmatch(string(reference), -1)
	if headings := strings.Count(string(reference), "\n### `mlp "); len(examples) != headings {
		t.Fatalf("docs/mlp.md has %d commands and %d examples, want one each", headings, len(examples))
	}
	r := newReader(t, p, mlp)
	for _, example := range examples {
		t.Run(strings.TrimPrefix(example[1], "mlp "), func(t *testing.T) { r.try(t, example[1]) })
	}
}

// reader is a user at a shell, signed in at the platform.
type reader struct {
	p   *harness.Platform
	dir string
	env []string
}

func newReader(t *testing.T, p *harness.Platform, mlp string) *reader {
	t.Helper()
	r := &reader{p: p, dir: t.TempDir()}
	repo := filepath.Join(r.dir, "deploy", "modelrepo") // a copy
	if err := os.MkdirAll(filepath.Dir(repo), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "clone", "-q", p.Env["PLATFORM_MODELREPO"], repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.env = []string{"HOME=" + r.dir, "PATH=" + filepath.Dir(mlp) + ":" + os.Getenv("PATH"), "ORT_LIB=" + os.Getenv("ORT_LIB"), "DOCKER_HOST=unix:///nonexistent"}
	for k, v := range environment(t, p) {
		if k == "PLATFORM_MODELREPO" {
			v = repo
		}
		r.env = append(r.env, k+"="+v)
	}
	job := `{"embedding": [` + strings.Repeat("0.1, ", 383) + `0.1], "num_nodes": 4, "user_id": "a-reader"}`
	if err := os.WriteFile(filepath.Join(r.dir, "job.json"), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run(t, p.Secret(t, "dashboard_admin_password"), "mlp auth login")
	r.run(t, "", "mlp --context prod config set serving http://localhost:18001")
	return r
}

// try runs an example after its preparation.
func (r *reader) try(t *testing.T, example string) {
	line, stdin := strings.ReplaceAll(example, exampleID, r.prepare(t, example)), ""
	switch {
	case strings.Contains(example, "--watch"):
		r.watch(t, line)
		return
	case strings.HasPrefix(example, "mlp guarded-changes approve"):
		line = r.second(t) + line
	case example == "mlp auth login":
		stdin = r.p.Secret(t, "dashboard_admin_password")
	}
	out, code := r.shell(t, stdin, line)
	want, fails := failingExamples[example]
	if fails && (code != 1 || !strings.Contains(out, want)) {
		t.Errorf("%s: got exit %d\n%s\nwant exit 1 and %q", line, code, out, want)
	}
	if !fails && code != 0 {
		t.Errorf("%s: got exit %d, want 0\n%s", line, code, out)
	}
}

// prepare creates the object that an example names, and returns its id.
func (r *reader) prepare(t *testing.T, example string) string {
	t.Helper()
	named := func(prefix string) bool { return strings.HasPrefix(example, "mlp "+prefix) }
	switch {
	case named("runs show"), named("runs logs"):
		return r.find(t, `"flow_run_id": "([^"]+)"`, "mlp --json runs list --model JPCP --state completed --limit 1")
	case named("runs cancel"):
		return r.find(t, `"flow_run_id": "([^"]+)"`, "mlp --json retrain RuntimeClass") // takes some seconds
	case named("approvals show"):
		r.notice(t, "JPCP")
	case named("approvals reject"):
		r.notice(t, "RUNTIMEREGRESSOR")
		return r.find(t, `"id": "([^"]+)",\s+"kind": "retrain",\s+"model_id": "RUNTIMEREGRESSOR"`, "mlp --json approvals list")
	case named("models rollback"):
		r.run(t, "", "mlp retrain JPCP --follow")
		r.run(t, "", r.second(t)+"mlp approvals approve JPCP --follow")
	case named("drift baseline"), named("drift input baseline"):
		for range 20 {
			r.run(t, "", "mlp predict JPCP --features @job.json --alias Canary")
			r.run(t, "", "mlp predict JPCP --features @job.json")
		}
	case named("guarded-changes show"):
		r.run(t, "", "mlp pipeline promote MACK --if-accuracy-gte 0.21 --save")
	case named("guarded-changes reject"):
		r.run(t, "", "mlp pipeline promote MACK --if-accuracy-gte 0.22 --save")
	}
	if named("guarded-changes") && strings.Contains(example, exampleID) {
		return r.find(t, `"id": "([^"]+)"`, "mlp --json guarded-changes list --limit 1")
	}
	return exampleID
}

// notice files a change of a model as the continuous integration does.
func (r *reader) notice(t *testing.T, model string) {
	t.Helper()
	harness.Want(t, http.StatusOK, http.MethodPost, r.p.Env["CONTROL_PLANE_URL"]+"/api/changes", r.p.Secret(t, "ci_token"),
		map[string]any{"model_ids": []string{model}, "commit_sha": fmt.Sprintf("%040x", time.Now().UnixNano()), "commit_msg": "an example"})
}

// second makes a line that of another person, since no one approves their own requests.
func (r *reader) second(t *testing.T) string {
	return "CONTROL_PLANE_TOKEN=" + r.p.Secret(t, "control_plane_token") + " "
}

func (r *reader) find(t *testing.T, pattern, line string) string {
	t.Helper()
	out := r.run(t, "", line)
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("%s: got %s, want a match of %s", line, out, pattern)
	}
	return m[1]
}

// run runs a line that must succeed.
func (r *reader) run(t *testing.T, stdin, line string) string {
	t.Helper()
	out, code := r.shell(t, stdin, line)
	if code != 0 {
		t.Fatalf("%s: got exit %d, want 0\n%s", line, code, out)
	}
	return out
}

// shell waits, as its hint says, where the scripts and examples together exceed a tenant's rate limit.
func (r *reader) shell(t *testing.T, stdin, line string) (out string, code int) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, func() error {
		cmd := r.command(t, line)
		cmd.Stdin = strings.NewReader(stdin + "\n")
		b, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatalf("%s: %v", line, err)
		}
		out, code = string(b), cmd.ProcessState.ExitCode()
		if code == 1 && strings.Contains(out, "requests of this kind a minute") {
			return fmt.Errorf("%s: %s", line, out)
		}
		return nil
	})
	return out, code
}

func (r *reader) command(t *testing.T, line string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "exec env "+line)
	cmd.Dir, cmd.Env = r.dir, r.env
	return cmd
}

// watch ends a line with Ctrl-C once it has drawn something.
func (r *reader) watch(t *testing.T, line string) {
	cmd := r.command(t, line)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var talk bytes.Buffer
	cmd.Stderr = &talk
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 4096)
	n, err := out.Read(first)
	if err != nil {
		_ = cmd.Wait()
		t.Fatalf("%s drew nothing: %v\n%s", line, err, talk.String())
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Errorf("%s ended by itself: %v\n%s", line, err, first[:n])
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: got %v after Ctrl-C, want exit 0\n%s", line, err, talk.String())
	}
}
