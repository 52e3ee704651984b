package poller_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge/forgetest"
)

// An unreadable head is a property of the commit: the platform starts, is ready, keeps polling and reports the reason.
func TestHostileHeadKeepsNobodyFromStarting(t *testing.T) {
	t.Parallel()
	pack := forgetest.Pack(0, forgetest.Object{Type: forgetest.Commit, Zeros: 64 << 20})
	sha := fmt.Sprintf("%040x", 7)
	p := controlplanetest.Start(t, "MODELREPO_GIT_URL="+forgetest.ServePack(t, sha, pack), "MODELREPO_CACHE_DIR="+t.TempDir(), never)
	out := syncNow(t, p)
	if out.New || out.Commit != sha || out.Error != "" {
		t.Fatalf("sync %+v; want no new commit, %s, no error", out, sha)
	}
	awaitHealth(t, p, "a success, five models and a warning that names the size", func(h health) bool {
		return h.Poller.LastOk != nil && !h.Poller.Stale && h.Poller.LastError == "" && len(h.Models) == 5 && strings.Contains(h.StartupChecks["registry"], "67108864 bytes")
	})
	p.Want(200, "GET", "/readyz", "", nil)
	if got := p.Audits("modelrepo.pushed"); len(got) != 0 {
		t.Fatalf("pushes %v; want none", got)
	}
}

// A bomb among the files of a commit is refused cheaply, and the models in force stay.
func TestHostileFileKeepsTheModels(t *testing.T) {
	t.Parallel()
	project, _ := newSampleRepository(t)
	srv := project.Serve()
	p := startFollowing(t, srv)
	awaitFirstPoll(t, p)
	project.Commit("bomb", map[string]string{jpcpModel: strings.Repeat("[", 50_000)})
	if out := syncNow(t, p); !out.New {
		t.Fatalf("sync %+v; want a new commit", out)
	}
	awaitHealth(t, p, "five models and a warning about the line", func(h health) bool {
		return len(h.Models) == 5 && strings.Contains(h.StartupChecks["registry"], "has a line of 50000 bytes")
	})
	p.Want(200, "GET", "/readyz", "", nil)
}
