package boundaries

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A marker before a block of commands names the test that runs it, or the reason why none does; "below" covers all
// blocks of a generated part.
var snippetMark = regexp.MustCompile(`^<!-- (?:(run|run below): (\S+) (\w+)|not run: (\S.*)) -->$`)

// A test runs every block of shell commands in the documentation, or its marker states why not.
func TestDocumentedCommandsAreRun(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("found %d pages, %v; want 10 or more", len(pages), err)
	}
	tours, err := filepath.Glob("../../docs/tours/*.md")
	if err != nil || len(tours) == 0 {
		t.Fatalf("found %d tours, %v; want some", len(tours), err)
	}
	pages = append(pages, tours...)
	run, excused := 0, 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		before, below := "", false
		for number, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			mark := snippetMark.FindStringSubmatch(line)
			if mark != nil && mark[2] != "" {
				checkRunner(t, page, mark[2], mark[3])
				below = below || mark[1] == "run below"
			}
			if strings.HasPrefix(line, "```sh") || strings.HasPrefix(line, "```bash") || strings.HasPrefix(line, "```shell") {
				switch of := snippetMark.FindStringSubmatch(before); {
				case of == nil && below, of != nil && of[4] == "":
					run++
				case of != nil:
					excused++
				default:
					t.Errorf("%s:%d: no test runs these commands; put <!-- run: FILE TestName --> or <!-- not run: reason --> above", page, number+1)
				}
			}
			before = line
		}
	}
	if run < 80 || excused > 30 {
		t.Errorf("%d blocks are run and %d are not; want 80 or more, and 30 or fewer", run, excused)
	}
}

// checkRunner checks that a test exists and that its package reads the page.
func checkRunner(t *testing.T, page, file, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Errorf("%s names a test that cannot be read: %v", page, err)
		return
	}
	if !strings.Contains(string(text), "func "+name+"(") {
		t.Errorf("%s names %s in %s, which is not there", page, name, file)
	}
	files, err := filepath.Glob(filepath.Join("../..", filepath.Dir(file), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), filepath.Base(page)) {
			return
		}
	}
	t.Errorf("no test beside %s reads %s", file, filepath.Base(page))
}
