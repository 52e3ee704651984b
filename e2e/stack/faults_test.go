//go:build e2e && full && ha

package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// outage is how long a killed container stays away.
const outage = 30 * time.Second

// accepted holds everything the platform acknowledged as stored, each piece by the name that finds it again.
type accepted struct {
	mu        sync.Mutex // guards the fields below
	approvals map[string]string
	comments  map[string]bool
	facts     map[string]bool
	times     []time.Time    // when a notice was accepted
	refused   map[string]int // attempts that were not accepted, by reason
}

func newAccepted() *accepted {
	return &accepted{approvals: map[string]string{}, comments: map[string]bool{}, facts: map[string]bool{}, refused: map[string]int{}}
}

func (a *accepted) note(what string, answer harness.Answer, err error, store func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && answer.Status/100 == 2 {
		store()
		return
	}
	reason := fmt.Sprint(answer.Status)
	if err != nil {
		reason = "no answer"
	}
	a.refused[what+": "+reason]++
}

// count returns how many notices were accepted.
func (a *accepted) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.times)
}

// longestGap returns the longest time after a moment between two accepted notices.
func (a *accepted) longestGap(from time.Time) (longest time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.times {
		if at.After(from) {
			longest = max(longest, at.Sub(from))
			from = at
		}
	}
	return longest
}

// write sends notices, comments and audit facts until the context ends. It repeats nothing: writes that were not
// accepted are counted, and their storage was not promised.
func (a *accepted) write(ctx context.Context, run, dashboardToken string) {
	var wg sync.WaitGroup
	every := func(pause time.Duration, do func(n int)) {
		wg.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					do(n)
				}
			}
		})
	}
	plane, token := environment["CONTROL_PLANE_URL"], environment["CONTROL_PLANE_TOKEN"]
	// 120 writes a minute are allowed.
	every(time.Second, func(n int) {
		model := fmt.Sprintf("%s-%05d", run, n)
		answer, err := harness.TryCall(http.MethodPost, plane+"/api/changes", token, changeOf(model))
		a.note("notice", answer, err, func() {
			a.approvals[model] = string(answer.Body)
			a.times = append(a.times, time.Now())
		})
	})
	every(2*time.Second, func(n int) {
		fact := fmt.Sprintf("model:%s-FACT-%05d", run, n)
		answer, err := harness.TryCall(http.MethodPost, plane+"/audit/events", token, map[string]any{"source": "cli", "action": "e2e.fact", "target": fact})
		a.note("audit fact", answer, err, func() { a.facts[fact] = true })
	})
	every(2500*time.Millisecond, func(n int) { // 30 a minute are allowed
		comment := fmt.Sprintf("%s-comment-%05d", run, n)
		answer, err := harness.TryCall(http.MethodPost, environment["DASHBOARD_URL"]+"/api/v1/collab/model/"+run+"/comments", dashboardToken, map[string]string{"body": comment})
		a.note("comment", answer, err, func() { a.comments[comment] = true })
	})
	wg.Wait()
}

// check finds everything that was accepted again: records, comments and audit facts. It does not check whether the
// dashboards streamed the events, since a stream may end with a killed container.
func (a *accepted) check(t *testing.T, run, dashboardToken string) {
	t.Helper()
	// Requests that fail right after the database's return are retried until the services have reconnected.
	want := func(url, token string) (answer harness.Answer) {
		harness.Eventually(t, 2*time.Minute, func() (err error) {
			if answer, err = harness.TryCall(http.MethodGet, url, token, nil); err == nil && answer.Status != http.StatusOK {
				err = fmt.Errorf("%s: %d %s", url, answer.Status, answer.Body)
			}
			return err
		})
		return answer
	}
	for model, body := range a.approvals {
		var ids map[string][]string
		if err := json.Unmarshal([]byte(body), &ids); err != nil {
			t.Fatal(err)
		}
		for _, id := range append(ids["created"], ids["existing"]...) {
			if answer := want(environment["CONTROL_PLANE_URL"]+"/approvals/"+id, environment["CONTROL_PLANE_TOKEN"]); !strings.Contains(string(answer.Body), model) {
				t.Errorf("the record %s of %s is %s", id, model, answer.Body)
			}
		}
	}
	found := map[string]bool{}
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		var page struct {
			Comments []struct{ Body string }
			Next     string `json:"next_cursor"`
		}
		url := environment["DASHBOARD_URL"] + "/api/v1/collab/model/" + run + "/comments?limit=100"
		if cursor != "" {
			url += "&cursor=" + cursor
		}
		if err := json.Unmarshal(want(url, dashboardToken).Body, &page); err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Comments {
			found[c.Body] = true
		}
		cursor = page.Next
	}
	for c := range a.comments {
		if !found[c] {
			t.Errorf("the comment %q is lost", c)
		}
	}
	harness.Eventually(t, 3*time.Minute, func() error {
		missing := 0
		for fact := range a.facts {
			if answer := want(environment["CONTROL_PLANE_URL"]+"/audit/events?model="+strings.TrimPrefix(fact, "model:"), environment["CONTROL_PLANE_TOKEN"]); !strings.Contains(string(answer.Body), fact) {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d audit facts are not in the ledger", missing, len(a.facts))
		}
		return nil
	})
	t.Logf("found again: %d approvals, %d comments, %d audit facts; not accepted: %v", len(a.approvals), len(a.comments), len(a.facts), a.refused)
}

// Whichever container dies for half a minute, nothing that was accepted is lost.
func TestKilledContainersLoseNothing(t *testing.T) {
	for _, service := range []string{"control-plane", "dashboard", "inference", "assistant", "bus-bridge", "redis", "nats", "postgres", "proxy"} {
		t.Run(service, func(t *testing.T) { killUnderLoad(t, service) })
	}
}

func killUnderLoad(t *testing.T, service string) {
	t.Helper()
	run := strings.ToUpper("KILL-" + service + "-" + names)
	token := login(t, environment["DASHBOARD_URL"], "admin")
	victim := harness.Containers(t, service)[0]
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	a := newAccepted()
	wg.Go(func() { a.write(ctx, run, token) })
	sleep(t, 5*time.Second)
	docker(t, "kill", victim.ID)
	sleep(t, outage)
	docker(t, "start", victim.ID)
	sleep(t, 10*time.Second)
	stop()
	wg.Wait()
	if len(a.approvals) == 0 || len(a.facts) == 0 || len(a.comments) == 0 {
		t.Fatalf("accepted %d approvals, %d facts, %d comments, refused %v; want some of each", len(a.approvals), len(a.facts), len(a.comments), a.refused)
	}
	a.check(t, run, token)
}

func sleepFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Every replica is restarted in turn, and no request fails: a connection that is reset is retried once.
func TestRollingRestartFailsNoRequest(t *testing.T) {
	token := login(t, environment["DASHBOARD_URL"], "viewer")
	var total, again, failed atomic.Int64
	var mu sync.Mutex // guards failures
	failures := map[string]int{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for _, target := range []struct {
		method, url, token string
		pause              time.Duration // 120 notices, and 120 requests to a replica of the assistant, are allowed a minute
	}{
		// Forty requests a second to each hit every moment of a restart; more would only measure the machine.
		{http.MethodGet, environment["CONTROL_PLANE_URL"] + "/approvals?limit=1", environment["CONTROL_PLANE_TOKEN"], 50 * time.Millisecond},
		{http.MethodPost, environment["CONTROL_PLANE_URL"] + "/api/changes", environment["CONTROL_PLANE_TOKEN"], 1500 * time.Millisecond},
		{http.MethodGet, environment["DASHBOARD_URL"] + "/api/auth/me", token, 50 * time.Millisecond},
		{http.MethodGet, environment["SERVING_URL"] + "/models", environment["SERVING_TOKEN"], 50 * time.Millisecond},
		{http.MethodGet, environment["ASSISTANT_URL"] + "/v1/models", environment["ASSISTANT_READONLY_KEY"], 1500 * time.Millisecond},
	} {
		for client := range 2 {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					sleepFor(ctx, target.pause)
					var body any
					if target.method == http.MethodPost {
						body = changeOf(fmt.Sprintf("ROLL-%s-%d-%06d", names, client, n))
					}
					total.Add(1)
					answer, err := harness.TryCall(target.method, target.url, target.token, body)
					if err != nil {
						again.Add(1)
						answer, err = harness.TryCall(target.method, target.url, target.token, body)
					}
					if err != nil || answer.Status != http.StatusOK {
						failed.Add(1)
						mu.Lock()
						failures[fmt.Sprintf("%s %s: %d %v %.80s", target.method, target.url, answer.Status, err, answer.Body)]++
						mu.Unlock()
					}
				}
			})
		}
	}
	for _, service := range slices.Sorted(maps.Keys(replicated)) {
		all := harness.Containers(t, service)
		for _, c := range all {
			docker(t, "restart", "-t", "60", c.ID)
			waitReady(t, service, len(all))
		}
	}
	stop()
	wg.Wait()
	t.Logf("%d requests while every replica was restarted, %d sent once more after a reset, %d failed", total.Load(), again.Load(), failed.Load())
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed, want none: %v", failed.Load(), total.Load(), failures)
	}
}
