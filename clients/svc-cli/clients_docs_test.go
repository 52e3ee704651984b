package svccli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

const clientDocs = "../../docs/evidence-clients.md"

// Every program of docs/evidence-clients.md is run against a tower over the samples and prints what stands under it.
func TestClientDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(clientDocs)
	if err != nil {
		t.Fatal(err)
	}
	_, url, stop := sampleTower(t)
	defer stop()
	blocks := regexp.MustCompile("(?s)```(python|go)\n(.*?)```\n\n```text\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 5 || len(blocks) != len(regexp.MustCompile("```(python|go)\n").FindAllString(string(page), -1)) {
		t.Fatalf("the page has %d programs with their output; each needs one", len(blocks))
	}
	for _, b := range blocks {
		language, program, want := b[1], b[2], b[3]
		got := ""
		if language == "python" {
			got = python(t, url, "-c", program)
		} else {
			got = runGo(t, url, program)
		}
		if got != want {
			t.Errorf("%s program printed\n%s\nthe page says\n%s", language, got, want)
		}
	}
}

// runGo runs a program with the modules of this one.
func runGo(t *testing.T, url, program string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "go", "run", file)
	c.Env = append(os.Environ(), "SVC_CONTROL_TOWER_TOKEN="+token, "SVC_CONTROL_TOWER_URL="+url)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("go run: %v\n%s", err, out)
	}
	return string(out)
}
