//go:build e2e

package mlp

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/cli/terminaltest"
)

// commitChange appends a line to a file of the model MACK and files the change, as a developer and the continuous integration do.
func commitChange(t *testing.T, p *harness.Platform, line string) {
	t.Helper()
	repo := p.Env["PLATFORM_MODELREPO"]
	name := filepath.Join(repo, "models", "performance_prediction", "MACK", "model.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(text, line+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "-C", repo, "-c", "user.name=dev", "-c", "user.email=dev@localhost", "commit", "-qam", line).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sha, err := exec.Command("git", "-C", repo, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	harness.Want(t, 200, "POST", p.Env["CONTROL_PLANE_URL"]+"/api/changes", p.Secret(t, "ci_token"),
		map[string]any{"model_ids": []string{"MACK"}, "commit_sha": strings.TrimSpace(string(sha)), "commit_msg": line})
}

// A change is shown as a diff. When a newer one supersedes it while the question waits at the terminal, the answer
// decides nothing.
func checkDecisions(t *testing.T, p *harness.Platform, mlp string) {
	vars := environment(t, p)
	commitChange(t, p, "# deeper trees")
	if text, ok := runFormat(t, mlp, vars, "table", "approvals show MACK"); !ok || !strings.Contains(text, "+# deeper trees") {
		t.Errorf("approvals show: got (ok %t)\n%s\nwant the added line", ok, text)
	}
	if text, ok := runFormat(t, mlp, vars, "json", "approvals show MACK"); !ok || !strings.Contains(text, `+# deeper trees`) {
		t.Errorf("approvals show as JSON: got (ok %t)\n%s\nwant the added line in its diff", ok, text)
	}

	person, side := terminaltest.Open(t, 250)
	cmd := exec.CommandContext(t.Context(), mlp, "approvals", "approve", "MACK")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TERM=xterm"}
	for k, v := range vars {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = side.Close() // the program has it now
	asked, ended := make(chan struct{}), make(chan string)
	go readTerminal(person, "[Y/n] ", asked, ended)
	select {
	case <-asked:
	case said := <-ended:
		t.Fatalf("approvals approve ended without a question:\n%s", said)
	case <-time.After(time.Minute):
		t.Fatal("approvals approve asked nothing within a minute")
	}
	commitChange(t, p, "# even deeper trees")
	if _, err := person.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	said := <-ended
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("approvals approve: got %v, want exit code 1", err)
	}
	for _, want := range []string{"what is pending of MACK is now", "# even deeper trees", "mlp approvals show "} {
		if !strings.Contains(said, want) {
			t.Errorf("approvals approve says %q; want %q in it", said, want)
		}
	}
	if text, _ := runFormat(t, mlp, vars, "csv", "approvals list --columns model,message,status"); !strings.Contains(text, "MACK,# even deeper trees,pending") {
		t.Errorf("approvals list: got %q; want the newer change, undecided", text)
	}
	if text, ok := runFormat(t, mlp, vars, "json", "approvals reject MACK"); !ok {
		t.Errorf("approvals reject failed:\n%s", text)
	}
}

// readTerminal signals when the text has appeared, and returns the output once the program's side is closed.
func readTerminal(person *os.File, text string, asked chan<- struct{}, ended chan<- string) {
	var all bytes.Buffer
	b := make([]byte, 4096)
	for {
		n, err := person.Read(b)
		before := bytes.Contains(all.Bytes(), []byte(text))
		all.Write(b[:n])
		if !before && bytes.Contains(all.Bytes(), []byte(text)) {
			close(asked)
		}
		if err != nil {
			ended <- all.String()
			return
		}
	}
}
