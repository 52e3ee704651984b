package poller_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// The first head is not news; each later one is a push, once, and in force.
func TestPollOfAGitServer(t *testing.T) {
	t.Parallel()
	repo, first := newSampleRepository(t)
	srv := repo.Serve()
	p := startFollowing(t, srv)
	if h := healthOf(t, p); len(h.Models) != 5 || slices.Contains(h.Runtime.Blockers, "modelrepo_dir_not_shared") {
		t.Fatalf(`ready without the models: %+v; want len(h.Models) == 5 && !slices.Contains(h.Runtime.Blockers, "modelrepo_dir_not_shared")`, h)
	}
	awaitHealth(t, p, "a leader that has polled and a registry in order", func(h health) bool {
		return h.Poller.LastOk != nil && h.Poller.Enabled && h.Poller.Leader && !h.Poller.Stale && h.StartupChecks["registry"] == "ok"
	})
	if s := syncNow(t, p); s.New || s.Commit != first || s.Stale != nil || s.Error != "" {
		t.Errorf(`up to date: %+v; want !s.New && s.Commit == first && s.Stale == nil && s.Error == ""`, s)
	}
	if n := len(p.Events("event.push")); n != 0 {
		t.Errorf("%d pushes for the first head; want 0", n)
	}

	second := repo.Commit("better", map[string]string{jpcpText: "better\n"})
	if s := syncNow(t, p); !s.New || s.Commit != second || !slices.Equal(sortedCopy(s.Stale), all) {
		t.Errorf("a new head: %+v; want s.New && s.Commit == second && slices.Equal(sortedCopy(s.Stale), all)", s)
	}
	if got := readmeOf(p, "JPCP"); got != "better\n" {
		t.Errorf("README %q; want \"better\\n\"", got)
	}
	if s := syncNow(t, p); s.New || s.Commit != second {
		t.Errorf("once more: %+v; want !s.New && s.Commit == second", s)
	}
	events := p.Want(200, "GET", "/modelrepo/events", controlplanetest.Reader, nil).List(t)
	if len(events) != 1 || events[0]["source"] != "poll" || events[0]["commit_sha"] != second || events[0]["pushed_by"] != "Ada" || events[0]["branch"] != "main" {
		t.Errorf(`%v; want len(events) == 1 && events[0]["source"] == "poll" && events[0]["commit_sha"] == second && events[0]["pushed_by"] == "Ada" && events[0]["branch"] == "main"`, events)
	}
	for _, m := range p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(t)["models"].([]any) {
		if m := m.(map[string]any); m["status"] != "stale" || m["latest_modelrepo_commit"] != second || m["touched_by_last_push"] != (m["model_id"] == "JPCP") {
			t.Errorf(`%v; want m["status"] == "stale" && m["latest_modelrepo_commit"] == second && m["touched_by_last_push"] == (m["model_id"] == "JPCP")`, m)
		}
	}
	swaps := p.Audits("registry.swapped")
	if len(swaps) != 1 || swaps[0]["actor"] != "system:modelrepo" || swaps[0]["tenant"] != "platform" || swaps[0]["details"].(map[string]any)["new"] != second {
		t.Errorf(`%v; want len(swaps) == 1 && swaps[0]["actor"] == "system:modelrepo" && swaps[0]["tenant"] == "platform" && swaps[0]["details"].(map[string]any)["new"] == second`, swaps)
	}
	if syncs := p.Audits("modelrepo.synced"); len(syncs) < 3 || syncs[0]["actor"] != "operator" || syncs[0]["outcome"] != "ok" || syncs[0]["tenant"] != "platform" || syncs[0]["details"].(map[string]any)["actor_tenant"] != "default" {
		t.Errorf(`%v; want len(syncs) >= 3 && syncs[0]["actor"] == "operator" && syncs[0]["outcome"] == "ok" && syncs[0]["tenant"] == "platform" && …`, syncs)
	}

	// A rewritten history is a new head like any other.
	repo.Git("reset", "-q", "--hard", first)
	third := repo.Commit("rewritten", map[string]string{jpcpText: "rewritten\n"})
	if s := syncNow(t, p); !s.New || s.Commit != third || readmeOf(p, "JPCP") != "rewritten\n" {
		t.Errorf("rewritten: %+v, %q; want s.New && s.Commit == third && readmeOf(p, \"JPCP\") == \"rewritten\\n\"", s, readmeOf(p, "JPCP"))
	}

	// A deleted branch changes nothing, and is reported.
	repo.Run(repo.Bare, "git", "update-ref", "-d", "refs/heads/main")
	repo.Git("push", "-q", "origin", "HEAD:other")
	if s := syncNow(t, p); s.New || !strings.Contains(s.Error, `no such branch: "main"`) {
		t.Errorf("no branch: %+v; want !s.New && strings.Contains(s.Error, `no such branch: \"main\"`)", s)
	}
	awaitHealth(t, p, "five models and the missing branch", func(h health) bool {
		return !h.Poller.Stale && strings.Contains(h.Poller.LastError, "no such branch") && len(h.Models) == 5
	})
	p.Want(200, "GET", "/readyz", "", nil)
}

// Polling an empty repository succeeds; its first commit comes into force when it arrives.
func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	repo, _ := newSampleRepository(t)
	repo.Run(repo.Bare, "git", "update-ref", "-d", "refs/heads/main")
	srv := repo.Serve()
	p := startFollowing(t, srv)
	if s := syncNow(t, p); s.New || s.Commit != "" || s.Error != "" {
		t.Errorf(`%+v; want !s.New && s.Commit == "" && s.Error == ""`, s)
	}
	awaitHealth(t, p, "a success without models", func(h health) bool {
		return h.Poller.LastOk != nil && len(h.Models) == 0 && strings.HasPrefix(h.StartupChecks["registry"], "warn: ")
	})
	repo.Git("push", "-q", "origin", "HEAD:main")
	syncNow(t, p)
	awaitHealth(t, p, "five models and a registry in order", func(h health) bool {
		return len(h.Models) == 5 && h.StartupChecks["registry"] == "ok"
	})
	if policies := p.Want(200, "GET", "/promotion-policies", controlplanetest.Reader, nil).Object(t)["items"].([]any); len(policies) != 5 {
		t.Errorf("%d policies; want 5", len(policies))
	}
}

// A head that cannot be read is recorded with a warning; the previous one stays in force, even on a replica that starts
// later.
func TestFaultyHead(t *testing.T) {
	t.Parallel()
	repo, _ := newSampleRepository(t)
	srv := repo.Serve()
	p := startFollowing(t, srv)
	awaitFirstPoll(t, p)
	good := readmeOf(p, "JPCP")
	bad := repo.Commit("broken", map[string]string{jpcpModel: "name: JPCP\nnonsense: 1\n", jpcpText: "broken\n"})
	if s := syncNow(t, p); !s.New || s.Commit != bad || s.Error != "" {
		t.Errorf(`%+v; want s.New && s.Commit == bad && s.Error == ""`, s)
	}
	warns := func(p *controlplanetest.Plane, parts ...string) {
		t.Helper()
		testenv.Eventually(t, 10*time.Second, func() error {
			h := healthOf(t, p)
			for _, part := range append(parts, "warn: ") {
				if !strings.Contains(h.StartupChecks["registry"], part) {
					return fmt.Errorf("registry: %q, want %q", h.StartupChecks["registry"], part)
				}
			}
			if len(h.Models) != 5 || readmeOf(p, "JPCP") != good {
				return fmt.Errorf("%d models, README %.20q", len(h.Models), readmeOf(p, "JPCP"))
			}
			return nil
		})
		p.Want(200, "GET", "/readyz", "", nil)
	}
	warns(p, bad, "model.yaml", "the reading before stays")
	later, _ := startReplica(t, p)
	warns(later, bad)

	evil := repo.Point(repo.Tree("40000", "models", repo.Tree("100644", "../../evil", repo.Object("blob", "x"))))
	if s := syncNow(t, p); !s.New || s.Commit != evil {
		t.Errorf("%+v; want s.New && s.Commit == evil", s)
	}
	warns(p, evil, "leads out of its folder")
	warns(later, evil)
	if swaps := p.Audits("registry.swapped"); len(swaps) != 2 || swaps[1]["outcome"] != "failed" {
		t.Errorf(`%v; want len(swaps) == 2 && swaps[1]["outcome"] == "failed"`, swaps)
	}

	repo.Git("checkout", "-q", "HEAD~1", "--", jpcpModel)
	repo.Commit("mended", map[string]string{jpcpText: "mended\n"})
	if s := syncNow(t, p); !s.New {
		t.Errorf("%+v; want s.New", s)
	}
	for _, q := range []*controlplanetest.Plane{p, later} {
		awaitReadme(t, q, 10*time.Second, "mended\n")
		testenv.Eventually(t, 20*time.Second, func() error {
			if got := healthOf(t, q).StartupChecks["registry"]; got != "ok" {
				return fmt.Errorf("registry: %q", got)
			}
			return nil
		})
	}
}

// One replica polls, all follow; when it goes, another takes over.
func TestReplicas(t *testing.T) {
	t.Parallel()
	repo, _ := newSampleRepository(t)
	srv := repo.Serve()
	a := controlplanetest.Neighbours(t, "MODELREPO_DIR=", "MODELREPO_GIT_URL="+srv.Address(), "MODELREPO_CACHE_DIR="+t.TempDir(), "MODELREPO_POLL_SECONDS=10")
	kill := a.Spawn("child")
	awaitFirstPoll(t, a)
	b, _ := startReplica(t, a)
	awaitHealth(t, a, "the leader", func(h health) bool { return h.Poller.Leader })
	awaitHealth(t, b, "a follower that knows of a success", func(h health) bool {
		return !h.Poller.Leader && h.Poller.LastOk != nil && h.Poller.Enabled
	})
	repo.Commit("two", map[string]string{jpcpText: "two\n"})
	awaitReadme(t, a, 20*time.Second, "two\n") // by its own interval
	awaitReadme(t, b, 5*time.Second, "two\n")

	// The leader sees a sync of the follower.
	repo.Commit("three", map[string]string{jpcpText: "three\n"})
	if s := syncNow(t, b); s.Error != "" {
		t.Errorf(`%+v; want s.Error == ""`, s)
	}
	awaitReadme(t, b, 5*time.Second, "three\n")
	awaitReadme(t, a, 5*time.Second, "three\n")

	// One poll at a time, wherever it runs.
	asked := make(chan struct{}, 100)
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	srv.Handle.Store(&hang)
	ended := make(chan controlplanetest.Response, 1)
	go func() {
		r, err := a.Try("POST", "/modelrepo/sync", controlplanetest.Operator, nil)
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("the repository was not asked")
	}
	r := b.Refused(409, "sync_in_progress", "POST", "/modelrepo/sync", controlplanetest.Operator, nil)
	if r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	begin := time.Now()
	if r := <-ended; r.Code() != "sync_in_progress" && !strings.Contains(string(r.Body), "in time") {
		t.Errorf(`a hanging server: %d %s; want (r.Code() == "sync_in_progress" || strings.Contains(string(r.Body), "in time"))`, r.Status, r.Body)
	}
	if took := time.Since(begin); took > 12*time.Second {
		t.Errorf("given up after %s; want took <= 12 * time.Second", took)
	}
	srv.Handle.Store(nil)
	syncNow(t, b)

	// A killed leader keeps its lease for seconds, however long the interval is.
	kill()
	repo.Commit("four", map[string]string{jpcpText: "four\n"})
	testenv.Eventually(t, 60*time.Second, func() error {
		h := healthOf(t, b)
		if h.Poller.Stale {
			t.Fatalf("stale for want of a leader: %+v", h.Poller)
		}
		if got := readmeOf(b, "JPCP"); got != "four\n" {
			return fmt.Errorf("README %.20q, %+v", got, h.Poller)
		}
		return nil
	})
	testenv.Eventually(t, 60*time.Second, func() error {
		if h := healthOf(t, b); !h.Poller.Leader || h.Poller.Stale {
			return fmt.Errorf("%+v", h.Poller)
		}
		return nil
	})
}

// If the lease's length followed the interval, no replica would poll for a quarter of an hour.
func TestASuccessorPollsSoonWhateverTheInterval(t *testing.T) {
	t.Parallel()
	repo, _ := newSampleRepository(t)
	srv := repo.Serve()
	a := controlplanetest.Neighbours(t, "MODELREPO_DIR=", "MODELREPO_GIT_URL="+srv.Address(), "MODELREPO_CACHE_DIR="+t.TempDir(), "MODELREPO_POLL_SECONDS=300")
	kill := a.Spawn("child")
	awaitFirstPoll(t, a)
	b, _ := startReplica(t, a)
	awaitHealth(t, a, "the leader", func(h health) bool { return h.Poller.Leader })
	kill()
	testenv.Eventually(t, 60*time.Second, func() error {
		if h := healthOf(t, b); !h.Poller.Leader {
			return fmt.Errorf("got %+v, want a leader", h.Poller)
		}
		return nil
	})
}

// A repository that is unavailable for three intervals makes every replica unready, and ready on its return. One
// failure is only shown.
func TestStale(t *testing.T) {
	t.Parallel()
	repo, _ := newSampleRepository(t)
	srv := repo.Serve()
	a := startFollowing(t, srv, "MODELREPO_POLL_SECONDS=10")
	awaitFirstPoll(t, a)
	b, _ := startReplica(t, a)
	broken := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	srv.Handle.Store(&broken)
	if s := syncNow(t, a); s.New || s.Error != "the git server answered 500" {
		t.Errorf(`%+v; want !s.New && s.Error == "the git server answered 500"`, s)
	}
	for _, p := range []*controlplanetest.Plane{a, b} {
		p.Want(200, "GET", "/readyz", "", nil)
		awaitHealth(t, p, "five models and the failure of the newest poll", func(h health) bool {
			return !h.Poller.Stale && h.Poller.LastError != "" && len(h.Models) == 5
		})
	}
	for _, p := range []*controlplanetest.Plane{a, b} {
		testenv.Eventually(t, 60*time.Second, func() error {
			if r := p.Call("GET", "/readyz", "", nil); r.Status != 503 || !strings.Contains(string(r.Body), "three intervals") {
				return fmt.Errorf("%d %s", r.Status, r.Body)
			}
			return nil
		})
		if h := healthOf(t, p); !h.Poller.Stale || *h.Poller.LastOk < 30 {
			t.Errorf("%+v; want h.Poller.Stale && *h.Poller.LastOk >= 30", h.Poller)
		}
	}
	srv.Handle.Store(nil)
	if s := syncNow(t, b); s.Error != "" {
		t.Errorf(`%+v; want s.Error == ""`, s)
	}
	a.Ready()
	b.Ready()
}

// Another branch and another interval take effect within a second, on a leader that would have slept for a day.
func TestSettings(t *testing.T) {
	t.Parallel()
	repo, first := newSampleRepository(t)
	repo.Git("checkout", "-q", "-b", "next")
	repo.Commit("next", map[string]string{jpcpText: "next\n"})
	next := repo.Git("rev-parse", "HEAD")
	repo.Git("push", "-q", "origin", "next")
	repo.Run(repo.Bare, "git", "update-ref", "refs/heads/main", first)
	p := startFollowing(t, repo.Serve())
	awaitFirstPoll(t, p)
	if readmeOf(p, "JPCP") == "next\n" {
		t.Fatal("main has the text of next")
	}
	p.Want(200, "PUT", "/modelrepo/config", controlplanetest.Operator, map[string]any{"watch_branch": "next"})
	awaitReadme(t, p, 5*time.Second, "next\n")
	testenv.Eventually(t, 20*time.Second, func() error {
		events := p.Want(200, "GET", "/modelrepo/events", controlplanetest.Reader, nil).List(t)
		if len(events) != 1 || events[0]["branch"] != "next" || events[0]["commit_sha"] != next {
			return fmt.Errorf("%v", events)
		}
		return nil
	})
	p.Want(200, "PUT", "/modelrepo/config", controlplanetest.Operator, map[string]any{"poll_interval_seconds": 0})
	testenv.Eventually(t, 20*time.Second, func() error {
		if h := healthOf(t, p); h.Poller.Enabled || h.Poller.Leader || h.Poller.Stale {
			return fmt.Errorf("%+v", h.Poller)
		}
		return nil
	})
	repo.Git("checkout", "-q", "next")
	repo.Commit("by hand", map[string]string{jpcpText: "by hand\n"})
	repo.Git("push", "-q", "origin", "HEAD:next")
	if s := syncNow(t, p); !s.New || readmeOf(p, "JPCP") != "by hand\n" { // off, but on request
		t.Errorf("%+v; want s.New && readmeOf(p, \"JPCP\") == \"by hand\\n\"", s)
	}
	p.Want(200, "PUT", "/modelrepo/config", controlplanetest.Operator, map[string]any{"poll_interval_seconds": 10})
	testenv.Eventually(t, 20*time.Second, func() error {
		if h := healthOf(t, p); !h.Poller.Enabled || !h.Poller.Leader {
			return fmt.Errorf("%+v", h.Poller)
		}
		return nil
	})
}

// A webhook makes all registries fetch at once, whichever replica received it.
func TestWebhookNudges(t *testing.T) {
	t.Parallel()
	repo, _ := newSampleRepository(t)
	const secret = "webhook-0123456789abcdef"
	a := startFollowing(t, repo.Serve(), "MODELREPO_WEBHOOK_SECRET="+secret)
	awaitFirstPoll(t, a)
	b, _ := startReplica(t, a)
	sha := repo.Commit("pushed", map[string]string{jpcpText: "pushed\n"})
	out := b.Want(200, "POST", "/webhooks/modelrepo/forge-a", "", map[string]any{
		"object_kind": "push", "ref": "refs/heads/main", "checkout_sha": sha, "after": sha, "user_name": "ada", "total_commits_count": 1,
		"commits": []any{map[string]any{"id": sha, "message": "pushed", "added": []string{}, "modified": []string{jpcpText}, "removed": []string{}}},
	}, "X-Gitlab-Token", secret, "X-Gitlab-Event", "Push Hook").Object(t)
	if out["duplicate"] != false || out["event_id"] == nil {
		t.Fatalf(`%v; want out["duplicate"] == false && out["event_id"] != nil`, out)
	}
	awaitReadme(t, a, 10*time.Second, "pushed\n")
	awaitReadme(t, b, 10*time.Second, "pushed\n")
	events := a.Want(200, "GET", "/modelrepo/events", controlplanetest.Reader, nil).List(t)
	if len(events) != 1 || events[0]["source"] != "webhook" {
		t.Errorf(`the poll told of it again: %v; want len(events) == 1 && events[0]["source"] == "webhook"`, events)
	}
}
