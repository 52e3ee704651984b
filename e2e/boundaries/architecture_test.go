package boundaries

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// serviceDirs maps a heading of docs/architecture.md to the directory below services/ that its paths are relative to.
var serviceDirs = map[string]string{
	"Control plane": "control-plane", "Inference": "inference", "Assistant": "assistant",
	"Dashboard": "dashboard-bff", "Evidence API": "evidence-api", "Trainer": "trainer",
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	testName = regexp.MustCompile(`^(Test|Fuzz)[A-Z0-9]\w*$`)
	pathName = regexp.MustCompile(`^[\w./-]+(\.go|\.sql|/)$|^(libs|internal)/[\w/-]+$`)
)

// Every file, directory and test that docs/architecture.md names for a route exists: a page that points to a moved file
// is worse than none.
func TestArchitecturePageNamesRealFiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Find the code of a route\n")
	if !found {
		t.Fatal("docs/architecture.md has no section \"Find the code of a route\"")
	}
	seen := 0
	for _, part := range strings.Split(section, "\n### ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		name, known := serviceDirs[heading]
		if !known {
			t.Errorf("docs/architecture.md describes %q, which is none of the services %v; want known", heading, serviceDirs)
			continue
		}
		dir := filepath.Join("../../services", name)
		tests := readTests(t, dir)
		for _, m := range codeSpan.FindAllStringSubmatch(body, -1) {
			switch word := m[1]; {
			case testName.MatchString(word):
				seen++
				if !strings.Contains(tests, "\nfunc "+word+"(") {
					t.Errorf("%s: docs/architecture.md names %s, which no test file of services/%s declares; want strings.Contains(tests, \"\\nfunc \"+word+\"(\")", heading, word, name)
				}
			case pathName.MatchString(word) && !strings.HasPrefix(word, "/"):
				seen++
				if !existsInAny(word, "../..", dir, filepath.Join(dir, "internal"), filepath.Join(dir, "internal/store/queries")) {
					t.Errorf(`%s: docs/architecture.md names %s, which does not exist in services/%s; want existsInAny(word, "../..", dir, filepath.Join(dir, "internal"), filepath.Join(dir, "internal/store/queries"))`, heading, word, name)
				}
			}
		}
	}
	if seen < 250 {
		t.Fatalf("saw %d files and tests in docs/architecture.md, want at least 250", seen)
	}
}

// readTests returns the text of all test files below dir.
func readTests(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteByte('\n')
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func existsInAny(path string, dirs ...string) bool {
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
			return true
		}
	}
	return false
}
