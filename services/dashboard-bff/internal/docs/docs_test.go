package docs

import (
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/problem"
)

// writeFiles creates a directory with these files.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func openLibrary(t *testing.T, root string) *Library {
	t.Helper()
	l, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func get(l *Library, target string, header ...string) *httptest.ResponseRecorder {
	e := echo.New()
	e.HTTPErrorHandler = problem.Handler(slog.New(slog.NewTextHandler(io.Discard, nil)))
	e.GET("/api/docs/tree", l.ListPages)
	e.GET("/api/docs/content", l.GetPage)
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func contentOf(path string) string {
	return "/api/docs/content?" + url.Values{"path": {path}}.Encode()
}

// sample creates a project with everything that must not be shown.
func sample(t *testing.T) string {
	root := writeFiles(t, map[string]string{
		"README.md": "# The project\n", "go.mod": "module x", "secret.md": "# Secret\n", "docs/guide.md": "# A guide\n", "docs/a/b/deep.md": "# Deep\n",
		"docs/data.json": "{}", "docs/large.md": strings.Repeat("x", 1<<20+1), "docs/full.md": strings.Repeat("x", 1<<20), "services/x/README.md": "# x\n",
		"docs/dir.md/inner.txt": "x", "docs/.hidden.md": "# Hidden but allowed\n",
	})
	for link, target := range map[string]string{
		"docs/link.md": "../secret.md", "docs/inside.md": "guide.md", "docs/out.md": "/etc/passwd", "docs/folder": "a", "docs/loop.md": "loop.md",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "docs/pipe.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestPathRulesInTheirOrder(t *testing.T) {
	t.Parallel()
	l := openLibrary(t, sample(t))
	for _, tc := range []struct {
		path   string
		status int
		code   string
	}{
		{"README.md", 200, ""}, {"docs/guide.md", 200, ""}, {"docs/a/b/deep.md", 200, ""}, {"docs/full.md", 200, ""},
		{"", 422, "validation_failed"}, {strings.Repeat("x", 501), 422, "validation_failed"}, {"docs/" + strings.Repeat("é", 493) + ".md", 422, "validation_failed"},
		{"../" + strings.Repeat("x", 500), 422, "validation_failed"}, // the length is checked before the content
		{"docs/a\x00.md", 400, "bad_docs_path"}, {`docs\guide.md`, 400, "bad_docs_path"}, {`..\x.md`, 400, "bad_docs_path"},
		{"/etc/passwd", 400, "bad_docs_path"}, {"/docs/guide.md", 400, "bad_docs_path"}, {"../go.mod", 400, "bad_docs_path"},
		{"docs/../secret.md", 400, "bad_docs_path"}, {"./README.md", 400, "bad_docs_path"}, {"docs/./guide.md", 400, "bad_docs_path"}, {"..", 400, "bad_docs_path"},
		{"%2e%2e/x", 400, "bad_docs_path"}, {"docs/%2e%2e/secret.md", 400, "bad_docs_path"}, {"docs/100%.md", 400, "bad_docs_path"},
		{"go.mod", 400, "bad_docs_path"}, {"docs/data.json", 400, "bad_docs_path"}, {"docs", 400, "bad_docs_path"}, {"docs/guide.MD", 400, "bad_docs_path"}, {"docs/guide.md/", 400, "bad_docs_path"},
		{"secret.md", 404, "not_found"}, {"services/x/README.md", 404, "not_found"}, {"readme.md", 404, "not_found"}, {"docs//guide.md", 404, "not_found"},
		{"docs/absent.md", 404, "not_found"}, {"docs/guide.md/x.md", 404, "not_found"}, {"docs/dir.md", 404, "not_found"}, {"docs/large.md", 404, "not_found"},
		{"docs/link.md", 404, "not_found"}, {"docs/inside.md", 404, "not_found"}, {"docs/out.md", 404, "not_found"}, {"docs/folder/b/deep.md", 404, "not_found"},
		{"docs/loop.md", 404, "not_found"}, {"docs/pipe.md", 404, "not_found"}, {"docs/..hidden/x.md", 404, "not_found"},
		{"docs/" + strings.Repeat("x", 300) + ".md", 404, "not_found"}, // longer than a file's name may be
	} {
		w := get(l, contentOf(tc.path))
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.code) {
			t.Errorf("%.60q: got %d %.200s, want %d %s", tc.path, w.Code, w.Body, tc.status, tc.code)
		}
	}
}

// A path encoded once is a path like any other; one encoded twice is refused.
func TestEscapesOfTheQuery(t *testing.T) {
	t.Parallel()
	l := openLibrary(t, sample(t))
	for target, status := range map[string]int{
		"/api/docs/content?path=docs%2Fguide.md": 200, "/api/docs/content?path=%2e%2e%2fgo.mod": 400, "/api/docs/content?path=%252e%252e%252fx.md": 400,
		"/api/docs/content": 422, "/api/docs/content?path=README.md&path=x": 422, "/api/docs/content?path=README.md&raw=1": 422, "/api/docs/content?path=%ff.md": 422,
		"/api/docs/tree?x=1": 422,
	} {
		if w := get(l, target); w.Code != status {
			t.Errorf("%s: got %d %s, want %d", target, w.Code, w.Body, status)
		}
	}
}

func TestContentIsTheFileAsPlainText(t *testing.T) {
	t.Parallel()
	l := openLibrary(t, sample(t))
	w := get(l, contentOf("docs/guide.md"))
	if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" || w.Body.String() != "# A guide\n" {
		t.Errorf("got %q %q, want plain text %q", got, w.Body, "# A guide\n")
	}
	tag := w.Header().Get("ETag")
	if again := get(l, contentOf("docs/guide.md"), "If-None-Match", tag); tag == "" || again.Code != http.StatusNotModified {
		t.Errorf("with its own tag %q: got %d, want 304", tag, again.Code)
	}
}

func TestTreeListsWhatCanBeRead(t *testing.T) {
	t.Parallel()
	root := sample(t)
	for name, text := range map[string]string{
		"docs/inference.md": "Text first\n\n## Serving `models` *fast*\n", "docs/events.md": "```\n# no heading\n```\n\nEvents\n======\n",
		"docs/decisions/0001-x.md": "# 1. X\n", "docs/guides/start.md": "no heading\n", "docs/tours/train.md": "# I train models\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := openLibrary(t, root)
	w := get(l, "/api/docs/tree")
	var got []api.DocsSection
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	want := []api.DocsSection{
		{Key: "guides", Title: "Guides", Files: []api.DocsFile{
			{Path: "README.md", Title: "The project"}, {Path: "docs/tours/train.md", Title: "I train models"},
			{Path: "docs/.hidden.md", Title: "Hidden but allowed"}, {Path: "docs/a/b/deep.md", Title: "Deep"}, {Path: "docs/full.md", Title: "full"},
			{Path: "docs/guide.md", Title: "A guide"}, {Path: "docs/guides/start.md", Title: "start"},
		}},
		{Key: "services", Title: "Services and commands", Files: []api.DocsFile{{Path: "docs/inference.md", Title: "Serving models fast"}}},
		{Key: "reference", Title: "Reference", Files: []api.DocsFile{{Path: "docs/events.md", Title: "Events"}}},
		{Key: "decisions", Title: "Decisions", Files: []api.DocsFile{{Path: "docs/decisions/0001-x.md", Title: "1. X"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, section := range got {
		for _, file := range section.Files {
			if w := get(l, contentOf(file.Path)); w.Code != http.StatusOK {
				t.Errorf("%s is in the tree, but reading it is %d %s", file.Path, w.Code, w.Body)
			}
		}
	}
}

func TestBuildWithoutPagesHasAnEmptyTree(t *testing.T) {
	t.Parallel()
	l := &Library{tree: embedded{fstest.MapFS{".keep": {}}}, fixed: true}
	w := get(l, "/api/docs/tree")
	if got := w.Body.String(); w.Code != http.StatusOK || strings.Count(got, `"files":[]`) != 4 {
		t.Errorf("got %d %s, want four sections without files", w.Code, got)
	}
	if w := get(l, contentOf("README.md")); w.Code != http.StatusNotFound {
		t.Errorf("got %d %s, want 404", w.Code, w.Body)
	}
}

func TestEmbeddedPagesKeepTheSameRules(t *testing.T) {
	t.Parallel()
	l := &Library{tree: embedded{fstest.MapFS{
		"README.md": {Data: []byte("# R\n")}, "docs/a.md": {Data: []byte("# A\n")}, "other.md": {Data: []byte("x")}, "docs/big.md": {Data: make([]byte, 1<<20+1)},
		"docs/dir.md": {Mode: fs.ModeDir},
	}}, fixed: true}
	for path, status := range map[string]int{"README.md": 200, "docs/a.md": 200, "other.md": 404, "docs/big.md": 404, "docs/dir.md": 404, "docs/b.md": 404, "../a.md": 400} {
		if w := get(l, contentOf(path)); w.Code != status {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, status)
		}
	}
}

func TestRootThatIsNoDirectoryRefusesTheStart(t *testing.T) {
	t.Parallel()
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); err == nil || !strings.Contains(err.Error(), "PLATFORM_DOCS_ROOT") {
		t.Errorf("got %v, want an error that names the setting", err)
	}
}

func TestHeadingsHaveAnchorsAndTitles(t *testing.T) {
	t.Parallel()
	got := describePage("docs/x.md", []byte("# `platform`: all & more\n\n## Set-up\n\n## Set-up\n\n### Äpfel_x [link](y)\n\n> ## quoted\n\n## \n"))
	want := Page{Path: "docs/x.md", Section: Guides, Title: "platform: all & more", Headings: []Heading{
		{"platform: all & more", "platform-all--more"}, {"Set-up", "set-up"}, {"Set-up", "set-up-1"}, {"Äpfel_x link", "äpfel_x-link"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// No path leaves the allowed set, whatever it looks like.
func FuzzContentPath(f *testing.F) {
	for _, s := range []string{"README.md", "docs/a.md", "../x.md", "docs/../../x.md", "docs/%2e.md", "docs//a.md", "/docs/a.md", "docs/a.md\x00"} {
		f.Add(s)
	}
	root := f.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "in/docs"), 0o755); err != nil {
		f.Fatal(err)
	}
	for name, text := range map[string]string{"in/README.md": "shown", "in/docs/a.md": "shown", "in/x.md": "hidden", "x.md": "hidden"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	l, err := Open(filepath.Join(root, "in"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	f.Fuzz(func(t *testing.T, path string) {
		w := get(l, contentOf(path))
		switch {
		case w.Code == http.StatusOK && w.Body.String() != "shown":
			t.Fatalf("%q: got %q, want nothing outside of the documentation", path, w.Body)
		case w.Code == http.StatusOK && path != "README.md" && path != "docs/a.md":
			t.Fatalf("%q was shown, want one name for each page", path)
		case w.Code != http.StatusOK && w.Code/100 != 4:
			t.Fatalf("%q: got %d, want 200 or 4xx", path, w.Code)
		}
	})
}
