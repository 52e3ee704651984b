// Package forgetest serves real git repositories to tests: git makes the commits, and git's own server serves them.
package forgetest

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

// Project is a real git repository, with git's own server in front of it.
type Project struct {
	t    testing.TB
	Dir  string // a working tree
	Bare string
}

// New creates an empty repository, and a bare one that it pushes to.
func New(t testing.TB) *Project {
	t.Helper()
	p := &Project{t: t, Dir: t.TempDir(), Bare: filepath.Join(t.TempDir(), "models.git")}
	p.Git("init", "-q", "-b", "main")
	p.Run(p.Dir, "git", "init", "-q", "--bare", "-b", "main", p.Bare)
	p.Git("remote", "add", "origin", p.Bare)
	return p
}

// Git runs git in the working tree.
func (p *Project) Git(args ...string) string { p.t.Helper(); return p.Run(p.Dir, "git", args...) }

// Run runs a command in dir and returns its output.
func (p *Project) Run(dir, name string, args ...string) string {
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

// Commit writes files (empty content removes) and pushes; it returns the commit.
func (p *Project) Commit(message string, files map[string]string) string {
	p.t.Helper()
	for name, content := range files {
		path := filepath.Join(p.Dir, name)
		if content == "" {
			p.Git("rm", "-q", name)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			p.t.Fatal(err)
		}
		p.Git("add", name)
	}
	p.Git("commit", "-q", "--allow-empty", "-m", message)
	p.Git("push", "-q", "--force", "origin", "HEAD:main")
	return p.Git("rev-parse", "HEAD")
}

// Server is git http-backend behind net/http.
type Server struct {
	*httptest.Server
	Requests atomic.Int64
	Handle   atomic.Pointer[http.HandlerFunc] // replaces git, if set
}

// Serve serves the bare repository until the test ends.
func (p *Project) Serve() *Server {
	p.t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(p.Run(p.Dir, "git", "--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(p.Bare), "GIT_HTTP_EXPORT_ALL=1"},
	}
	s := &Server{}
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

// Address is the URL of the repository.
func (s *Server) Address() string { return s.URL + "/models.git" }

// Tree writes git objects that no git command would: entries may have any name.
func (p *Project) Tree(entries ...string) string {
	p.t.Helper()
	var raw strings.Builder
	for i := 0; i+2 < len(entries); i += 3 {
		fmt.Fprintf(&raw, "%s %s\x00%s", entries[i], entries[i+1], decodeHex(p.t, entries[i+2]))
	}
	return p.Object("tree", raw.String())
}

// Object writes a git object into the bare repository.
func (p *Project) Object(kind, content string) string {
	p.t.Helper()
	cmd := exec.Command("git", "hash-object", "-t", kind, "-w", "--stdin", "--literally")
	cmd.Dir, cmd.Stdin = p.Bare, strings.NewReader(content)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("hash-object: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// Point sets main of the served repository to a commit of the tree.
func (p *Project) Point(tree string) string {
	p.t.Helper()
	sha := p.Run(p.Bare, "git", "commit-tree", tree, "-m", "made by hand")
	p.Run(p.Bare, "git", "update-ref", "refs/heads/main", sha)
	return sha
}

func decodeHex(t testing.TB, sha string) string {
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
