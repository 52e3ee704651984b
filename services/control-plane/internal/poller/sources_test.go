package poller_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// A folder that is a git repository is polled as is; no server is queried.
func TestLocalRepository(t *testing.T) {
	t.Parallel()
	repo, first := newSampleRepository(t)
	p := controlplanetest.Start(t, "MODELREPO_DIR="+repo.Dir, never)
	awaitHealth(t, p, "a poll, and a folder that blocks scaling", func(h health) bool {
		return h.Poller.LastOk != nil && h.Poller.Enabled && slices.Contains(h.Runtime.Blockers, "modelrepo_dir_not_shared")
	})
	if s := syncNow(t, p); s.New || s.Commit != first {
		t.Errorf("%+v; want !s.New && s.Commit == first", s)
	}
	// A checkout is in force without a poll.
	second := repo.Commit("second", map[string]string{jpcpText: "second\n"})
	awaitReadme(t, p, 10*time.Second, "second\n")
	if s := syncNow(t, p); !s.New || s.Commit != second || !slices.Equal(sortedCopy(s.Stale), all) {
		t.Errorf("%+v; want s.New && s.Commit == second && slices.Equal(sortedCopy(s.Stale), all)", s)
	}
	repo.Commit("broken", map[string]string{jpcpModel: "- no model\n", jpcpText: "broken\n"})
	syncNow(t, p)
	awaitHealth(t, p, "five models and a warning", func(h health) bool {
		return len(h.Models) == 5 && strings.Contains(h.StartupChecks["registry"], "the reading before stays")
	})
}

// A folder inside another repository is not a source, and neither is one outside any repository.
func TestNoSource(t *testing.T) {
	t.Parallel()
	repo, _ := newSampleRepository(t)
	dir := filepath.Join(repo.Dir, "inner")
	if err := os.CopyFS(dir, os.DirFS(controlplanetest.Samples())); err != nil {
		t.Fatal(err)
	}
	p := controlplanetest.Start(t, "MODELREPO_DIR="+dir)
	if h := healthOf(t, p); h.Poller.Enabled || h.Poller.Leader || h.Poller.Stale || h.Poller.LastOk != nil || len(h.Models) != 5 {
		t.Errorf("%+v; want !h.Poller.Enabled && !h.Poller.Leader && !h.Poller.Stale && h.Poller.LastOk == nil && len(h.Models) == 5", h)
	}
	if s := syncNow(t, p); s.New || !strings.Contains(s.Error, "MODELREPO_GIT_URL") {
		t.Errorf(`%+v; want !s.New && strings.Contains(s.Error, "MODELREPO_GIT_URL")`, s)
	}
	id := p.Notice("JPCP", strings.Repeat("ab", 20))
	p.Refused(404, "diff_unavailable", "GET", "/approvals/"+id+"/diff", controlplanetest.Reader, nil)
}

// GitLab's API reports heads and files; the folder is read again.
func TestGitLabSource(t *testing.T) {
	t.Parallel()
	const token = "glpat-0123456789-secret"
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(controlplanetest.Samples())); err != nil {
		t.Fatal(err)
	}
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	var head atomic.Value
	var handle atomic.Pointer[http.HandlerFunc]
	head.Store(one)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := handle.Load(); h != nil {
			(*h)(w, r)
			return
		}
		if r.Header.Get("PRIVATE-TOKEN") != token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch path := strings.TrimPrefix(r.URL.Path, "/api/v4/projects/7/repository"); {
		case path == "/commits":
			_ = json.NewEncoder(w).Encode([]any{map[string]any{"id": head.Load(), "author_name": "Ada", "message": "m"}})
		case path == "/compare" && r.URL.Query().Get("from") == one && r.URL.Query().Get("to") == two:
			_ = json.NewEncoder(w).Encode(map[string]any{"diffs": []any{map[string]any{"old_path": jpcpText, "new_path": jpcpText, "diff": "@@ -1 +1 @@\n-a\n+b\n"}}})
		case path == "/commits/"+two:
			_ = json.NewEncoder(w).Encode(map[string]any{"id": two, "parent_ids": []string{one}})
		case path == "/commits/"+one:
			_ = json.NewEncoder(w).Encode(map[string]any{"id": one, "parent_ids": []string{}})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	p := controlplanetest.Start(t, "MODELREPO_DIR="+dir, "GITLAB_URL="+srv.URL, "GITLAB_PROJECT_ID=7", "GITLAB_TOKEN="+token,
		"MODELREPO_GIT_URL=http://127.0.0.1:1/unused.git", never) // the first that is configured
	awaitFirstPoll(t, p)
	if s := syncNow(t, p); s.New || s.Commit != one {
		t.Errorf("%+v; want !s.New && s.Commit == one", s)
	}
	if err := os.WriteFile(filepath.Join(dir, jpcpText), []byte("two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	head.Store(two)
	if s := syncNow(t, p); !s.New || s.Commit != two || !slices.Equal(sortedCopy(s.Stale), all) || readmeOf(p, "JPCP") != "two\n" {
		t.Errorf("%+v %q; want s.New && s.Commit == two && slices.Equal(sortedCopy(s.Stale), all) && readmeOf(p, \"JPCP\") == \"two\\n\"", s, readmeOf(p, "JPCP"))
	}
	for _, m := range p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(t)["models"].([]any) {
		if m := m.(map[string]any); m["touched_by_last_push"] != (m["model_id"] == "JPCP") {
			t.Errorf(`%v; want m["touched_by_last_push"] == (m["model_id"] == "JPCP")`, m)
		}
	}
	d := p.Want(200, "GET", "/approvals/"+p.Notice("JPCP", two)+"/diff", controlplanetest.Reader, nil).Object(t)
	files := d["files"].([]any)
	if d["from_commit"] != one || d["to_commit"] != two || len(files) != 1 || files[0].(map[string]any)["patch"] != "@@ -1 +1 @@\n-a\n+b\n" {
		t.Errorf("%v; want d[\"from_commit\"] == one && d[\"to_commit\"] == two && len(files) == 1 && files[0].(map[string]any)[\"patch\"] == \"@@ -1 +1 @@\\n-a\\n+b\\n\"", d)
	}

	broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"message": %q}`, r.Header.Get("PRIVATE-TOKEN"))
	})
	handle.Store(&broken)
	if s := syncNow(t, p); s.New || !strings.Contains(s.Error, "GITLAB_TOKEN") || strings.Contains(s.Error, token) {
		t.Errorf(`%+v; want !s.New && strings.Contains(s.Error, "GITLAB_TOKEN") && !strings.Contains(s.Error, token)`, s)
	}
	if h := p.Want(200, "GET", "/health", "", nil); strings.Contains(string(h.Body), token) {
		t.Errorf("%s; want !strings.Contains(string(h.Body), token)", h.Body)
	}
	p.Refused(502, "modelrepo_unreachable", "GET", "/approvals/"+p.Notice("MACK", two)+"/diff", controlplanetest.Reader, nil)
}

// Reload reads the folder again, on every replica; a faulty one changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(controlplanetest.Samples())); err != nil {
		t.Fatal(err)
	}
	a := controlplanetest.Start(t, "MODELREPO_DIR="+dir)
	b, _ := startReplica(t, a)
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := os.ReadFile(filepath.Join(dir, jpcpModel))
	if err != nil {
		t.Fatal(err)
	}
	const added = "models/power_consumption_prediction/Another/model.yaml"
	another := regexp.MustCompile(`(?m)^bus_uuid:.*\n`).ReplaceAllString(strings.Replace(string(source), "name: JPCP", "name: Another", 1), "")
	write(added, another)
	var out struct {
		Reloaded       bool `json:"registry_reloaded"`
		Models, Errors []string
	}
	reload := func() {
		t.Helper()
		out.Errors = nil
		if err := json.Unmarshal(a.Want(200, "POST", "/admin/reload", controlplanetest.Trainer, nil).Body, &out); err != nil {
			t.Fatal(err)
		}
	}
	reload()
	want := append([]string{"ANOTHER"}, all...)
	if !out.Reloaded || !slices.Equal(out.Models, want) || len(out.Errors) != 0 {
		t.Errorf("%+v; want out.Reloaded && slices.Equal(out.Models, want) && len(out.Errors) == 0", out)
	}
	for _, p := range []*controlplanetest.Plane{a, b} {
		testenv.Eventually(t, 20*time.Second, func() error {
			if n := len(p.Want(200, "GET", "/models", "", nil).List(t)); n != 6 {
				return fmt.Errorf("%d models", n)
			}
			return nil
		})
		p.Want(200, "GET", "/promotion-policies/another", controlplanetest.Reader, nil) // of its Production rung
	}
	write(added, "name: Another\nnonsense: 1\n")
	reload()
	if out.Reloaded || !slices.Equal(out.Models, want) || len(out.Errors) == 0 || !strings.HasPrefix(out.Errors[0], added+":") {
		t.Errorf(`%+v; want !out.Reloaded && slices.Equal(out.Models, want) && len(out.Errors) != 0 && strings.HasPrefix(out.Errors[0], added+":")`, out)
	}
	awaitHealth(t, a, "a warning about the folder", func(h health) bool {
		return strings.HasPrefix(h.StartupChecks["registry"], "warn: the folder as it is now is not in force")
	})
	if err := os.RemoveAll(filepath.Join(dir, filepath.Dir(added))); err != nil {
		t.Fatal(err)
	}
	reload()
	if !out.Reloaded || !slices.Equal(out.Models, all) {
		t.Errorf("%+v; want out.Reloaded && slices.Equal(out.Models, all)", out)
	}
	if facts := a.Audits("registry.reloaded"); len(facts) != 3 || facts[0]["outcome"] != "ok" || facts[1]["outcome"] != "failed" || facts[2]["actor"] != "trainer" || facts[2]["tenant"] != "platform" || facts[2]["details"].(map[string]any)["actor_tenant"] != "default" {
		t.Errorf(`%v; want len(facts) == 3 && facts[0]["outcome"] == "ok" && facts[1]["outcome"] == "failed" && facts[2]["actor"] == "trainer" && facts[2]["tenant"] == "platform" && …`, facts)
	}
	if err := os.RemoveAll(filepath.Join(dir, "models")); err != nil {
		t.Fatal(err)
	}
	reload()
	if out.Reloaded || len(out.Models) != 5 || len(out.Errors) != 1 || !strings.Contains(out.Errors[0], "no folder models") {
		t.Errorf(`%+v; want !out.Reloaded && len(out.Models) == 5 && len(out.Errors) == 1 && strings.Contains(out.Errors[0], "no folder models")`, out)
	}
}

// A contradictory configuration prevents the start.
func TestConfig(t *testing.T) {
	t.Parallel()
	base := []string{"PLATFORM_DATABASE_URL=postgres://u@h/d"}
	for _, c := range []struct{ env, says string }{
		{"MODELREPO_GIT_URL=ssh://git@h/x", "http or https"},
		{"MODELREPO_GIT_URL=/srv/x", "http or https"},
		{"GITLAB_PROJECT_ID=7", "GITLAB_URL"},
		{"GITLAB_TOKEN=changeme", "GITLAB_TOKEN"},
	} {
		_, err := controlplane.LoadConfig(append(slices.Clone(base), c.env))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want an error && strings.Contains(err.Error(), c.says)", c.env, err)
		}
	}
	_, err := controlplane.LoadConfig(append(slices.Clone(base), "MODELREPO_GIT_URL=ftp://someone:s3cr3t@h/x"))
	if err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Error(err, `want an error && !strings.Contains(err.Error(), "s3cr3t")`)
	}
	if _, err := controlplane.LoadConfig(append(slices.Clone(base), "MODELREPO_GIT_URL=https://someone:s3cr3t@h/x")); err != nil {
		t.Error(err)
	}
}
