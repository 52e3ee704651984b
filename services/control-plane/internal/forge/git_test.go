package forge_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge/forgetest"
)

func openRemote(t *testing.T, url, cache string) *forge.Remote {
	t.Helper()
	r, err := forge.OpenRemote(service.Secret(url), cache, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func headOf(t *testing.T, s forge.Source, branch string) forge.Commit {
	t.Helper()
	c, err := s.Head(t.Context(), branch)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A remote and a folder report the same history.
func TestHistory(t *testing.T) {
	t.Parallel()
	p := forgetest.New(t)
	first := p.Commit("first", map[string]string{"models/a/b/model.yaml": "x: 1\ny: 2\n", "gone": "g\n", "data/raw": "a\x00b"})
	second := p.Commit("second\n\nwith a body", map[string]string{
		"models/a/b/model.yaml": "x: 1\ny: 3\nz: 4\n", "gone": "", "new é.txt": "no end of line", "data/raw": "a\x00c",
	})
	srv := p.Serve()
	local, ok := forge.OpenLocal(p.Dir)
	if !ok {
		t.Fatal("no local repository")
	}
	rem := openRemote(t, srv.Address(), t.TempDir())
	headOf(t, rem, "main")
	for _, s := range []forge.Source{local, rem} {
		t.Run(s.Kind(), func(t *testing.T) {
			c := headOf(t, s, "main")
			if c.SHA != second || c.Author != "Ada" || c.Message != "second\n\nwith a body\n" {
				t.Errorf("head %+v, want %s", c, second)
			}
			files, err := s.Files(t.Context(), first, second)
			slices.Sort(files)
			if want := []string{"data/raw", "gone", "models/a/b/model.yaml", "new é.txt"}; err != nil || !slices.Equal(files, want) {
				t.Errorf("files %q %v, want %q", files, err, want)
			}
			for _, from := range []string{first, "", first[:9], strings.ToUpper(first)} {
				d, err := s.Diff(t.Context(), from, second[:7])
				if err != nil {
					t.Fatal(err)
				}
				want := []forge.File{
					{Path: "data/raw", Status: forge.Modified},
					{Path: "gone", Status: forge.Removed, Deletions: 1, Patch: "@@ -1 +0,0 @@\n-g\n"},
					{Path: "models/a/b/model.yaml", Status: forge.Modified, Additions: 2, Deletions: 1, Patch: "@@ -1,2 +1,3 @@\n x: 1\n-y: 2\n+y: 3\n+z: 4\n"},
					{Path: "new é.txt", Status: forge.Added, Additions: 1, Patch: "@@ -0,0 +1 @@\n+no end of line\n\\ No newline at end of file\n"},
				}
				if d.From != first || d.To != second || d.Truncated || !slices.Equal(d.Files, want) {
					t.Errorf("diff from %q: %+v; want d.From == first && d.To == second && !d.Truncated && slices.Equal(d.Files, want)", from, d)
				}
			}
			d, err := s.Diff(t.Context(), "", first)
			if err != nil || d.From != "" || len(d.Files) != 3 || d.Files[0].Status != forge.Added {
				t.Errorf(`diff of the first commit: %+v %v; want d.From == "" && len(d.Files) == 3 && d.Files[0].Status == forge.Added`, d, err)
			}
			if _, err := s.Head(t.Context(), "nosuch"); !errors.Is(err, forge.ErrNoBranch) {
				t.Errorf("head of no branch: %v; want errors.Is(err, forge.ErrNoBranch)", err)
			}
			for _, sha := range []string{"main", "HEAD~1", "../../etc", "", strings.Repeat("0", 40), "abc", "deadbeef", first + "0", "-n1234567"} {
				if _, err := s.Diff(t.Context(), first, sha); !errors.Is(err, forge.ErrUnknown) {
					t.Errorf("diff to %q: %v; want errors.Is(err, forge.ErrUnknown)", sha, err)
				}
				if _, err := s.Files(t.Context(), sha, second); !errors.Is(err, forge.ErrUnknown) {
					t.Errorf("files from %q: %v; want errors.Is(err, forge.ErrUnknown)", sha, err)
				}
			}
		})
	}
}

// A text file too large to compare, and more files than are listed, are reported as left out; a rename is one file.
func TestDiffBounds(t *testing.T) {
	t.Parallel()
	p := forgetest.New(t)
	first := p.Commit("first", map[string]string{"a": "same\ncontent\n"})
	p.Git("mv", "a", "b")
	p.Commit("renamed", map[string]string{"big": strings.Repeat("line\n", 100_000)})
	local, _ := forge.OpenLocal(p.Dir)
	d, err := local.Diff(t.Context(), first, headOf(t, local, "main").SHA)
	want := []forge.File{{Path: "b", Status: forge.Renamed}, {Path: "big", Status: forge.Added}}
	if slices.SortFunc(d.Files, func(a, b forge.File) int { return strings.Compare(a.Path, b.Path) }); err != nil || !d.Truncated || !slices.Equal(d.Files, want) {
		t.Errorf("%+v %v; want d.Truncated && slices.Equal(d.Files, want)", d, err)
	}
	many := map[string]string{}
	for i := range 1001 {
		many[filepath.Join("m", strings.Repeat("x", i%7+1), string(rune('a'+i%26))+strings.Repeat("y", i/26))] = "x\n"
	}
	before := headOf(t, local, "main").SHA
	if d, err = local.Diff(t.Context(), before, p.Commit("many", many)); err != nil || !d.Truncated || len(d.Files) != 1000 {
		t.Errorf("%d files, truncated %v, %v; want d.Truncated && len(d.Files) == 1000", len(d.Files), d.Truncated, err)
	}
}

// Without a branch, the checked-out commit is the head, and a branch without a commit is no error.
func TestLocal(t *testing.T) {
	t.Parallel()
	p := forgetest.New(t)
	local, ok := forge.OpenLocal(p.Dir)
	if !ok || headOf(t, local, "main").SHA != "" {
		t.Fatal("an empty repository")
	}
	sha := p.Commit("first", map[string]string{"sub/f": "x\n"})
	if _, err := local.Head(t.Context(), "other"); !errors.Is(err, forge.ErrNoBranch) {
		t.Error(err, "want errors.Is(err, forge.ErrNoBranch)")
	}
	p.Git("checkout", "-q", "--detach")
	if got := headOf(t, local, "other").SHA; got != sha {
		t.Errorf("detached: %q; want %v", got, sha)
	}
	for _, dir := range []string{"", filepath.Join(p.Dir, "sub"), t.TempDir()} {
		if _, ok := forge.OpenLocal(dir); ok {
			t.Errorf("%q is taken for a repository; want !ok", dir)
		}
	}
	if err := os.RemoveAll(filepath.Join(p.Dir, ".git")); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Head(t.Context(), "main"); err == nil {
		t.Error("a repository that went")
	}
}

// Changes at the server arrive: new commits, a rewritten history, a deleted branch, and no change.
func TestRemoteFollows(t *testing.T) {
	t.Parallel()
	p := forgetest.New(t)
	srv := p.Serve()
	cache := t.TempDir()
	r := openRemote(t, srv.Address(), cache)
	if c := headOf(t, r, "main"); c.SHA != "" {
		t.Fatalf(`empty repository: %+v; want c.SHA == ""`, c)
	}
	first := p.Commit("first", map[string]string{"models/x/m/model.yaml": "a\n"})
	if c := headOf(t, r, "main"); c.SHA != first {
		t.Fatalf("%+v, want %s", c, first)
	}
	before := srv.Requests.Load()
	headOf(t, r, "main")
	if n := srv.Requests.Load() - before; n != 1 {
		t.Errorf("%d requests to see that nothing is new; want 1", n)
	}
	var last string
	for i := range 5 {
		last = p.Commit("more", map[string]string{"models/x/m/model.yaml": strings.Repeat("b\n", i+1)})
		if c := headOf(t, r, "main"); c.SHA != last {
			t.Fatalf("%+v, want %s", c, last)
		}
	}
	p.Git("reset", "-q", "--hard", first)
	rewritten := p.Commit("rewritten", map[string]string{"models/x/m/model.yaml": "c\n"})
	if c := headOf(t, r, "main"); c.SHA != rewritten {
		t.Fatalf("%+v, want %s", c, rewritten)
	}
	if files, err := r.Files(t.Context(), last, rewritten); err != nil || !slices.Equal(files, []string{"models/x/m/model.yaml"}) {
		t.Errorf(`over the rewrite: %q %v; want slices.Equal(files, []string{"models/x/m/model.yaml"})`, files, err)
	}
	p.Git("push", "-q", "origin", "HEAD:other")
	p.Run(p.Bare, "git", "update-ref", "-d", "refs/heads/main")
	if _, err := r.Head(t.Context(), "main"); !errors.Is(err, forge.ErrNoBranch) {
		t.Errorf("deleted branch: %v; want errors.Is(err, forge.ErrNoBranch)", err)
	}
	if c := headOf(t, r, "other"); c.SHA != rewritten { // nothing to fetch
		t.Errorf("other branch: %+v; want c.SHA == %v", c, rewritten)
	}

	// A damaged repository is fetched again, by this process and by its successor.
	packs, err := filepath.Glob(filepath.Join(cache, "*", "*", "repo.git", "objects", "pack", "*"))
	if err != nil || len(packs) == 0 {
		t.Fatal(packs, err, "want len(packs) != 0")
	}
	for _, f := range packs {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if c := headOf(t, r, "other"); c.SHA != rewritten {
		t.Errorf("after damage: %+v; want c.SHA == %v", c, rewritten)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again := openRemote(t, srv.Address(), cache)
	before = srv.Requests.Load()
	if c := headOf(t, again, "other"); c.SHA != rewritten || srv.Requests.Load()-before != 1 {
		t.Errorf("after a restart: %+v, %d requests; want c.SHA == rewritten && srv.Requests.Load() - before == 1", c, srv.Requests.Load()-before)
	}
	second := openRemote(t, srv.Address(), cache) // another process beside it
	if c := headOf(t, second, "other"); c.SHA != rewritten {
		t.Errorf("second process: %+v; want c.SHA == %v", c, rewritten)
	}
	slots, err := filepath.Glob(filepath.Join(cache, "*", "*", "repo.git"))
	if err != nil || len(slots) != 2 {
		t.Errorf("folders %q %v; want len(slots) == 2", slots, err)
	}
}

// A checkout has the files that the registry reads, and nothing outside its folder.
func TestExport(t *testing.T) {
	t.Parallel()
	p := forgetest.New(t)
	if err := os.MkdirAll(filepath.Join(p.Dir, "models/x/m"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(p.Dir, "models/x/m/README.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/tmp", filepath.Join(p.Dir, "datasets")); err != nil {
		t.Fatal(err)
	}
	p.Git("add", ".")
	first := p.Commit("first", map[string]string{"models/x/m/model.yaml": "a\n", "data/large": "d\n", "registries/base.yaml": "r\n", "models/x/m/huge": strings.Repeat("x", 9<<20)})
	r := openRemote(t, p.Serve().Address(), t.TempDir())
	headOf(t, r, "main")
	dir, err := r.Export(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			got = append(got, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"models/x/m/model.yaml", "registries/base.yaml"}; !slices.Equal(got, want) || filepath.Base(dir) != first {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
	if again, err := r.Export(t.Context(), first); err != nil || again != dir {
		t.Errorf("%q %v; want again == dir", again, err)
	}
	if _, err := r.Export(t.Context(), strings.Repeat("1", 40)); !errors.Is(err, forge.ErrUnknown) {
		t.Error(err, "want errors.Is(err, forge.ErrUnknown)")
	}
	second := p.Commit("second", map[string]string{"models/x/m/model.yaml": "b\n"})
	headOf(t, r, "main")
	next, err := r.Export(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Prune(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the old checkout stays: %v; want os.IsNotExist(err)", err)
	}
	if b, err := os.ReadFile(filepath.Join(next, "models/x/m/model.yaml")); err != nil || string(b) != "b\n" {
		t.Errorf("%q %v; want string(b) == \"b\\n\"", b, err)
	}
}

// Trees that no git command makes, and that a checkout must not follow.
func TestExportRefuses(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(p *forgetest.Project, blob string) string{
		"parent": func(p *forgetest.Project, b string) string {
			return p.Tree("40000", "models", p.Tree("100644", "..", b))
		},
		"dot": func(p *forgetest.Project, b string) string {
			return p.Tree("40000", "models", p.Tree("100644", ".", b))
		},
		"slash": func(p *forgetest.Project, b string) string {
			return p.Tree("40000", "models", p.Tree("100644", "../../../x", b))
		},
		"absolute": func(p *forgetest.Project, b string) string {
			return p.Tree("40000", "models", p.Tree("100644", "/tmp/x", b))
		},
		"backslash": func(p *forgetest.Project, b string) string {
			return p.Tree("40000", "models", p.Tree("100644", `..\x`, b))
		},
		"top": func(p *forgetest.Project, b string) string { return p.Tree("40000", "..", p.Tree("100644", "x", b)) },
		"git": func(p *forgetest.Project, b string) string {
			return p.Tree("40000", "models", p.Tree("100644", ".GIT", b))
		},
		"long": func(p *forgetest.Project, b string) string {
			return p.Tree("40000", "models", p.Tree("100644", strings.Repeat("n", 300), b))
		},
		"twice": func(p *forgetest.Project, b string) string {
			return p.Tree("40000", "models", p.Tree("100644", "a", b, "100644", "a", b))
		},
		"deep": func(p *forgetest.Project, b string) string {
			t := p.Tree("100644", "f", b)
			for range 20 {
				t = p.Tree("40000", "d", t)
			}
			return p.Tree("40000", "models", t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := forgetest.New(t)
			sha := p.Point(make(p, p.Object("blob", "evil\n")))
			cache := t.TempDir()
			r := openRemote(t, p.Serve().Address(), cache)
			if got := headOf(t, r, "main").SHA; got != sha {
				t.Fatalf("head %s, want %s", got, sha)
			}
			_, err := r.Export(t.Context(), sha)
			if !errors.Is(err, forge.ErrMalformed) {
				t.Errorf("%v; want errors.Is(err, forge.ErrMalformed)", err)
			}
			left, err := filepath.Glob(filepath.Join(cache, "*", "*", "trees", "*"))
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %q %v; want len(left) == 0", left, err)
			}
		})
	}
}

// Whatever the server does, the error comes in time and contains no secret.
func TestRemoteMisbehaves(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed: %s, credentials %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for name, h := range map[string]http.HandlerFunc{
		"unauthorized": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"absent":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"broken":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"garbage":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello</html>")) },
		"hang":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drop":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path+"?"+r.URL.RawQuery, http.StatusFound)
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("001e# service=git-upload-pack\n0000"))
			line := []byte(strings.Repeat("003d"+strings.Repeat("1", 40)+" refs/heads/xxxxx\n", 1000))
			for r.Context().Err() == nil {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := forgetest.New(t)
			p.Commit("first", map[string]string{"models/x": "x\n"})
			srv := p.Serve()
			srv.Handle.Store(&h)
			url := strings.Replace(srv.Address(), "http://", "http://someone:s3cr3t-pass@", 1)
			r := openRemote(t, url, t.TempDir())
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := r.Head(ctx, "main")
			if err == nil || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "someone") || len(err.Error()) > 300 {
				t.Fatalf(`%v; want an error && !strings.Contains(err.Error(), "s3cr3t") && !strings.Contains(err.Error(), "someone") && len(err.Error()) <= 300`, err)
			}
			srv.Handle.Store(nil)
			headOf(t, r, "main") // the fault is not permanent
		})
	}
	for _, url := range []string{"", "/srv/models", "file:///srv/models", "ssh://git@host/x", "git@host:x", "https://", "http://h/x?y=1", "ftp://h/x"} {
		if _, err := forge.OpenRemote(service.Secret(url), t.TempDir(), time.Second); err == nil {
			t.Errorf("%q is taken; want an error", url)
		}
	}
}
