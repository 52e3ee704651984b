package svccli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// Every program of the pages about clients is run against a tower over the samples and prints the output shown below
// it.
func TestClientDocs(t *testing.T) {
	t.Parallel()
	_, url, stop := sampleTower(t)
	defer stop()
	runPrograms(t, url, "../../docs/evidence-clients.md", 5)
	runPrograms(t, url, "../python/README.md", 1)
}

func runPrograms(t *testing.T, url, file string, least int) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(python|go)\n(.*?)```\n\n```text\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < least || len(blocks) != len(regexp.MustCompile("```(python|go)\n").FindAllString(string(page), -1)) {
		t.Fatalf("%s has %d programs with their output; each needs one", file, len(blocks))
	}
	for _, b := range blocks {
		language, program, want := b[1], b[2], b[3]
		got := ""
		if language == "python" {
			got = findPython(t, url, "-c", program)
		} else {
			got = runGo(t, url, program)
		}
		if got != want {
			t.Errorf("a %s program of %s printed\n%s\nthe page says\n%s", language, file, got, want)
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
