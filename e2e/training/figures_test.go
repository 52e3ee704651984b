//go:build e2e && full

package training

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// README's table matches the output of `make figures`, and its counts of rows those of the split.
func TestFiguresOfTheReadme(t *testing.T) {
	root := harness.Root(t)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Bin(t, "trainer"), "figures", "--repo", filepath.Join(root, "deploy", "modelrepo"))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errOut.String())
	}
	if !strings.Contains(string(readme), out.String()) {
		t.Errorf("README.md does not hold this table:\n%s", out.String())
	}
	for _, count := range regexp.MustCompile(`[\d,]*\d`).FindAllString(errOut.String(), -1) {
		if !strings.Contains(string(readme), " "+count+" ") {
			t.Errorf("README.md does not name the count %s of: %s", count, errOut.String())
		}
	}
}
