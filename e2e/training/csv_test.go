//go:build e2e

package training

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// The section of docs/trainer.md, followed to the letter, turns a spreadsheet's export into an up-to-date model in
// Production.
func TestFromACSVToProduction(t *testing.T) {
	root := harness.Root(t)
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 2*time.Minute)
	page, err := os.ReadFile(filepath.Join(root, "docs", "trainer.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## From a CSV to Production\n")
	section, _, _ = strings.Cut(section, "\n## ")
	shell := func(script string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
		cmd.Env = append(p.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "HOME="+t.TempDir(),
			"GIT_AUTHOR_NAME=e2e", "GIT_AUTHOR_EMAIL=e2e@example.org", "GIT_COMMITTER_NAME=e2e", "GIT_COMMITTER_EMAIL=e2e@example.org")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 4 {
		t.Fatalf("the section has %d blocks of commands; want 4: the model, the training, the promotion, the prediction", len(blocks))
	}
	for i, want := range []string{"is valid: ", "Staging, Canary", "RUNHOURS +CURRENT"} {
		out, err := shell(blocks[i][1])
		if err != nil || !regexp.MustCompile(want).MatchString(out) {
			t.Fatalf("%s: %v\n%s\nwant %s", blocks[i][1], err, out, want)
		}
	}
	harness.Eventually(t, 30*time.Second, func() error {
		out, err := shell(blocks[3][1])
		if err != nil || !regexp.MustCompile(`RUNHOURS +1 +Production +[0-9]`).MatchString(out) {
			return fmt.Errorf("no prediction of Production yet (%v): %s", err, out)
		}
		return nil
	})
}
