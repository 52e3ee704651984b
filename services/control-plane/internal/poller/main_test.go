package poller_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge/forgetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// newSampleRepository returns a served repository with the sample models as its first commit.
func newSampleRepository(t *testing.T) (*forgetest.Project, string) {
	t.Helper()
	p := forgetest.New(t)
	for _, dir := range []string{"models", "datasets", "registries"} {
		if err := os.CopyFS(filepath.Join(p.Dir, dir), os.DirFS(filepath.Join(controlplanetest.Samples(), dir))); err != nil {
			t.Fatal(err)
		}
	}
	p.Git("add", ".")
	return p, p.Commit("samples", map[string]string{"README.md": "models\n"})
}

// never sets an interval that ends after the test, so the poller does not poll again after its first time.
const never = "MODELREPO_POLL_SECONDS=86400"

// startFollowing starts a control plane that polls the served repository and has no folder.
func startFollowing(t *testing.T, srv *forgetest.Server, env ...string) *controlplanetest.Plane {
	t.Helper()
	return controlplanetest.Start(t, append([]string{"MODELREPO_DIR=", "MODELREPO_GIT_URL=" + srv.Address(), "MODELREPO_CACHE_DIR=" + t.TempDir(), never}, env...)...)
}

// startReplica starts another replica on the database of p.
func startReplica(t *testing.T, p *controlplanetest.Plane) (*controlplanetest.Plane, func()) {
	t.Helper()
	q := *p
	q.Env = slices.Clone(p.Env)
	q.Setenv("MODELREPO_CACHE_DIR=" + t.TempDir())
	return &q, q.Serve()
}

type pollerBlock struct {
	Enabled, Stale, Leader bool
	LastOk                 *float64 `json:"last_ok_seconds_ago"`
	LastError              string   `json:"last_error"`
}

type health struct {
	Poller        pollerBlock
	StartupChecks map[string]string `json:"startup_checks"`
	Models        map[string][]string
	Runtime       struct {
		Blockers []string `json:"horizontal_scaling_blockers"`
	}
}

func healthOf(t *testing.T, p *controlplanetest.Plane) (h health) {
	t.Helper()
	if err := json.Unmarshal(p.Want(200, "GET", "/health", "", nil).Body, &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// awaitHealth waits for a matching health report: /health lags behind by up to about a second.
func awaitHealth(t *testing.T, p *controlplanetest.Plane, want string, wanted func(health) bool) (h health) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, func() error {
		if h = healthOf(t, p); !wanted(h) {
			return fmt.Errorf("got %+v, want %s", h, want)
		}
		return nil
	})
	return h
}

type syncResult struct {
	New    bool     `json:"new_commit"`
	Commit string   `json:"commit_sha"`
	Stale  []string `json:"models_marked_stale"`
	Error  string
}

// syncNow polls; it waits for a poll of the leader in progress.
func syncNow(t *testing.T, p *controlplanetest.Plane) (out syncResult) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, func() error {
		r := p.Call("POST", "/modelrepo/sync", controlplanetest.Operator, nil)
		if r.Code() == "sync_in_progress" {
			return fmt.Errorf("%s", r.Body)
		}
		if r.Status != http.StatusOK {
			t.Fatalf("%d %s; want r.Status == %v", r.Status, r.Body, http.StatusOK)
		}
		out = syncResult{}
		return json.Unmarshal(r.Body, &out)
	})
	return out
}

// awaitFirstPoll waits for the first successful poll of any replica.
func awaitFirstPoll(t *testing.T, p *controlplanetest.Plane) {
	t.Helper()
	testenv.Eventually(t, 20*time.Second, func() error {
		if h := healthOf(t, p); h.Poller.LastOk == nil {
			return fmt.Errorf("%+v", h.Poller)
		}
		return nil
	})
}

func readmeOf(p *controlplanetest.Plane, model string) string {
	r := p.Call("GET", "/models/"+model+"/readme", "", nil)
	var out struct{ Text string }
	_ = json.Unmarshal(r.Body, &out)
	return out.Text
}

// awaitReadme waits until the replica shows the README.
func awaitReadme(t *testing.T, p *controlplanetest.Plane, within time.Duration, want string) {
	t.Helper()
	testenv.Eventually(t, within, func() error {
		if got := readmeOf(p, "JPCP"); got != want {
			return fmt.Errorf("README is %.40q, want %.40q; registry: %s", got, want, healthOf(t, p).StartupChecks["registry"])
		}
		return nil
	})
}

const (
	jpcp      = "models/power_consumption_prediction/JPCP/"
	jpcpText  = jpcp + "README.md"
	jpcpModel = jpcp + "model.yaml"
)

var all = []string{"JPCP", "MACK", "MCBOUND", "RUNTIMECLASS", "RUNTIMEREGRESSOR"}

func sortedCopy(list []string) []string { return slices.Sorted(slices.Values(list)) }
