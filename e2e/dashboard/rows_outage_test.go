//go:build e2e

package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// sourceTimeout is DASHBOARD_SOURCE_TIMEOUT of the outage's replica.
const sourceTimeout = time.Second

// views lists the services behind each view and its parts, as _partial names them.
var views = map[string]map[string][]string{
	"/api/v1/overview":            {"control plane": {"audit"}, "serving": {"drift", "traffic"}},
	"/api/v1/mlops/registry":      {"tracker": {"tracker"}, "serving": {"drift", "serving", "traffic"}, "control plane": {"freshness", "promotion"}},
	"/api/v1/mlops/model/MCBOUND": {"tracker": {"tracker"}, "serving": {"drift", "traffic"}, "control plane": {"cost", "promotion"}},
	"/api/v1/facility/overview":   {"control plane": {"jobs"}},
	"/api/v1/llmops/overview":     {"control plane": {"endpoints", "evals"}},
	"/api/v1/governance/overview": {"control plane": {"audit", "cards", "compliance", "posture"}},
	"/api/v1/finops/overview":     {"control plane": {"budget", "carbon", "cost"}},
	"/api/v1/alerts":              {"control plane": {"alerts"}},
}

// measuredAs is the name of a service in the health page and the self-observation.
var measuredAs = map[string]struct{ health, dependency string }{
	"tracker": {"tracker", "tracker"}, "serving": {"serving", "inference"}, "control plane": {"", "control_plane"}, "orchestrator": {"orchestrator", "orchestrator"},
	"assistant": {"", "assistant"},
}

// viewRead is one answer under load.
type viewRead struct {
	path    string
	asked   time.Time
	took    time.Duration
	status  int
	partial []string
}

// TestRow11EachServiceStopsInTurn runs alone: its time limits apply to a machine that does only this.
func TestRow11EachServiceStopsInTurn(t *testing.T) {
	w := sharedWorld(t)
	settings := map[string]string{"tracker": "TRACKING_URI", "serving": "SERVING_URL", "control plane": "CONTROL_PLANE_URL", "orchestrator": "ORCHESTRATOR_API_URL", "assistant": "ASSISTANT_URL"}
	gates, env := map[string]*harness.Proxy{}, []string{"DASHBOARD_SOURCE_TIMEOUT=" + sourceTimeout.String()}
	for name, variable := range settings {
		target, suffix := strings.TrimSuffix(w.Env[variable], "/api"), ""
		if target != w.Env[variable] {
			suffix = "/api"
		}
		gates[name] = harness.NewProxy(t, harness.FreePorts(t, 1)[0], target)
		env = append(env, variable+"="+gates[name].URL+suffix)
	}
	r := w.startReplica(t, env...)
	viewer := w.passwordLogin(t, "viewer")
	w.awaitWhole(t, r, viewer)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		t.Run(name+" hangs", func(t *testing.T) { w.playOutage(t, r, viewer, name, gates[name]) })
	}
}

// awaitWhole waits until no view is partial and no service is down.
func (w *world) awaitWhole(t *testing.T, r *replica, c who) {
	t.Helper()
	harness.Eventually(t, patience, func() error {
		for path := range views {
			if got := readView(r, path, c); got.status != http.StatusOK || len(got.partial) > 0 {
				return fmt.Errorf("%s: got %d with _partial %v, want all", path, got.status, got.partial)
			}
		}
		if down := w.listDown(t, r, c); len(down) > 0 {
			return fmt.Errorf("%v are down, want none", down)
		}
		return nil
	})
}

func readView(r *replica, path string, c who) viewRead {
	asked := time.Now()
	a, err := send(http.MethodGet, r.url+path, c, nil) // thousands: not recorded
	got := viewRead{path: path, asked: asked, took: time.Since(asked), status: a.Status}
	if err == nil && a.Status == http.StatusOK {
		got.partial = partialOf(a)
	}
	return got
}

// listDown returns the services that the replica reports as down, in the health page and in its own status.
func (w *world) listDown(t *testing.T, r *replica, c who) []string {
	t.Helper()
	var out []string
	health := decode[struct {
		Services map[string]struct{ Status string }
	}](t, w.want(t, http.StatusOK, http.MethodGet, r.url+"/api/health", who{}, nil))
	for name, s := range health.Services {
		if s.Status != "ok" && s.Status != "unknown" {
			out = append(out, "health:"+name+":"+s.Status)
		}
	}
	self := decode[struct {
		Dependencies []struct{ Name, Status string }
	}](t, w.want(t, http.StatusOK, http.MethodGet, r.url+"/api/v1/selfobs/status", c, nil))
	for _, d := range self.Dependencies {
		if d.Status != "up" {
			out = append(out, "self:"+d.Name+":"+d.Status)
		}
	}
	slices.Sort(out)
	return out
}

// playOutage stops a service under load, checks the views, and starts it again.
func (w *world) playOutage(t *testing.T, r *replica, c who, name string, gate *harness.Proxy) {
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex // guards reads
	var reads []viewRead
	var load sync.WaitGroup
	for path := range views {
		load.Go(func() { // one reader per view
			for ctx.Err() == nil {
				got := readView(r, path, c)
				mu.Lock()
				reads = append(reads, got)
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	defer load.Wait()
	defer stop()
	cut := time.Now()
	gate.Hang()
	defer gate.Forward()
	var want []string
	if m := measuredAs[name]; m.health != "" {
		want = append(want, "health:"+m.health+":down")
	}
	want = append(want, "self:"+measuredAs[name].dependency+":down")
	harness.Eventually(t, patience, func() error {
		if down := w.listDown(t, r, c); !slices.Equal(down, want) {
			return fmt.Errorf("down: got %v, want %v", down, want)
		}
		for path, sources := range views {
			if got := readView(r, path, c); !slices.Equal(got.partial, sources[name]) {
				return fmt.Errorf("%s: got _partial %v, want %v", path, got.partial, sources[name])
			}
		}
		return nil
	})
	steady := time.Now()
	const watched = 2 * time.Second // of all readers observing the outage
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for time.Since(steady) < watched {
		if down := w.listDown(t, r, c); !slices.Equal(down, want) {
			t.Errorf("down: got %v, want %v", down, want)
		}
		<-look.C
	}
	stop()
	load.Wait()
	slow, slowest, count := map[string]int{}, time.Duration(0), 0
	for _, got := range reads {
		if got.status != http.StatusOK {
			t.Errorf("%s %s after the cut: got %d, want 200", got.path, got.asked.Sub(cut), got.status)
		}
		if got.asked.After(steady) {
			count++
			slowest = max(slowest, got.took)
			if want := views[got.path][name]; !slices.Equal(got.partial, want) {
				t.Errorf("%s: got _partial %v, want %v", got.path, got.partial, want)
			}
		}
		if got.took > sourceTimeout*8/10 {
			slow[got.path]++
		}
	}
	for path, n := range slow {
		// Each source of a view pays the timeout once. Answers are shared until each is two seconds old, so sources of
		// one service may notice the outage one after the other. One more may be slow because the machine is.
		if most := len(views[path][name]) + 1; n > most {
			t.Errorf("%s paid the time-out of %s %d times, want at most %d", path, name, n, most)
		}
	}
	if slowest > sourceTimeout/2 {
		t.Errorf("once %s was known to be away a view took %s, want no time-out", name, slowest)
	}
	t.Logf("%d reads under load, none failed; %d after the time-outs, slowest %s; paid the time-out: %v", len(reads), count, slowest.Round(time.Millisecond), slow)
	gate.Forward()
	w.awaitWhole(t, r, c)
}

// partialOf returns _partial of a view.
func partialOf(a answer) []string {
	var out struct {
		Partial []string `json:"_partial"`
	}
	_ = json.Unmarshal(a.Body, &out)
	return out.Partial
}
