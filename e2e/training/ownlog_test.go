//go:build e2e && full

package training

import (
	"encoding/json"
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

// The section of docs/trainer.md on your own job log, followed to the letter, takes a table without groups,
// applications and hours from YAML to a model that answers under Production.
func TestOwnJobLogIsServed(t *testing.T) {
	root := harness.Root(t)
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 2*time.Minute)
	dir := p.Env["PLATFORM_MODELREPO"]
	page, err := os.ReadFile(filepath.Join(root, "docs", "trainer.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## A job log of your own\n")
	section, _, _ = strings.Cut(section, "\n## ")
	shell := func(script string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
		cmd.Dir = dir
		cmd.Env = append(p.Environ(), "SAMPLES="+filepath.Join(root, "deploy", "modelrepo"), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"),
			"GIT_AUTHOR_NAME=e2e", "GIT_AUTHOR_EMAIL=e2e@example.org", "GIT_COMMITTER_NAME=e2e", "GIT_COMMITTER_EMAIL=e2e@example.org")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		name := filepath.Join(dir, block[1])
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(block[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 4 {
		t.Fatalf("the section has %d blocks of commands; want 4: the table, the training, the promotion, the prediction", len(blocks))
	}
	for _, block := range blocks[:3] {
		if out, err := shell(block[1]); err != nil {
			t.Fatalf("%s: %v\n%s", block[1], err, out)
		}
	}
	harness.Eventually(t, 30*time.Second, func() error {
		out, err := shell(blocks[3][1])
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		var answer struct {
			Alias      string
			Unit       string
			Prediction float64
		}
		if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Alias != "Production" || answer.Unit != "s" || answer.Prediction <= 0 {
			t.Errorf("got %s (%v); want some seconds from Production", out, err)
		}
		return nil
	})
}
