package boundaries

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every relative link of the documentation points to a file of the repository.
func TestDocumentationLinks(t *testing.T) {
	t.Parallel()
	pages := []string{"../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md"}
	for _, dir := range []string{"../../docs", "../../deploy", "../../services"} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && strings.HasSuffix(path, "dashboard-bff/internal/docs/pages") {
				return filepath.SkipDir // copies, made by the build
			}
			if err == nil && strings.HasSuffix(path, ".md") {
				pages = append(pages, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			seen++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), target)); err != nil {
				t.Errorf("%s links to %s, which is absent", page, target)
			}
		}
	}
	if seen < 10 {
		t.Fatalf("only %d links seen in %d pages; want seen >= 10", seen, len(pages))
	}
}
