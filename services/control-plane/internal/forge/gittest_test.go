package forge_test

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// project is a real git repository, with git's own server in front of it.
type project struct {
	t    *testing.T
	dir  string // a working tree
	bare string
}

func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), bare: filepath.Join(t.TempDir(), "models.git")}
	p.git("init", "-q", "-b", "main")
	p.run(p.dir, "git", "init", "-q", "--bare", "-b", "main", p.bare)
	p.git("remote", "add", "origin", p.bare)
	return p
}

func (p *project) git(args ...string) string { p.t.Helper(); return p.run(p.dir, "git", args...) }

func (p *project) run(dir, name string, args ...string) string {
	p.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files (nil content removes) and pushes; it returns the commit.
func (p *project) commit(message string, files map[string]string) string {
	p.t.Helper()
	for name, content := range files {
		path := filepath.Join(p.dir, name)
		if content == "" {
			p.git("rm", "-q", name)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			p.t.Fatal(err)
		}
		p.git("add", name)
	}
	p.git("commit", "-q", "--allow-empty", "-m", message)
	p.git("push", "-q", "--force", "origin", "HEAD:main")
	return p.git("rev-parse", "HEAD")
}

// server is git http-backend behind net/http.
type server struct {
	*httptest.Server
	Requests atomic.Int64
	Handle   atomic.Pointer[http.HandlerFunc] // instead of git, if set
}

func (p *project) serve() *server {
	p.t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(p.run(p.dir, "git", "--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(p.bare), "GIT_HTTP_EXPORT_ALL=1"},
	}
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		if h := s.Handle.Load(); h != nil {
			(*h)(w, r)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	p.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *server) url() string { return s.URL + "/models.git" }

// tree writes git objects as no git command would: entries may have any name.
func (p *project) tree(entries ...string) string {
	p.t.Helper()
	var raw strings.Builder
	for i := 0; i+2 < len(entries); i += 3 {
		fmt.Fprintf(&raw, "%s %s\x00%s", entries[i], entries[i+1], unhex(p.t, entries[i+2]))
	}
	return p.object("tree", raw.String())
}

func (p *project) object(kind, content string) string {
	p.t.Helper()
	cmd := exec.Command("git", "hash-object", "-t", kind, "-w", "--stdin", "--literally")
	cmd.Dir, cmd.Stdin = p.bare, strings.NewReader(content)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("hash-object: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// point makes main of the served repository a commit of the tree.
func (p *project) point(tree string) string {
	p.t.Helper()
	sha := p.run(p.bare, "git", "commit-tree", tree, "-m", "made by hand")
	p.run(p.bare, "git", "update-ref", "refs/heads/main", sha)
	return sha
}

func unhex(t *testing.T, sha string) string {
	t.Helper()
	var out []byte
	for i := 0; i < len(sha); i += 2 {
		var b byte
		if _, err := fmt.Sscanf(sha[i:i+2], "%02x", &b); err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return string(out)
}
