//go:build e2e && full

package stack

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// listener collects the data of a dashboard's streamed events.
type listener struct {
	mu     sync.Mutex // guards events
	events []string
}

// listen opens the stream of one replica. A notice recorded after it is open arrives.
func listen(t *testing.T, base, token string) *listener {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/stream?channels=approval", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "localhost"
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream of %s answers %d, want 200", base, resp.StatusCode)
	}
	l := &listener{}
	go func() {
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				l.mu.Lock()
				l.events = append(l.events, data)
				l.mu.Unlock()
			}
		}
	}()
	return l
}

// count returns how many events contain the text.
func (l *listener) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if strings.Contains(e, text) {
			n++
		}
	}
	return n
}

// notice records a change of a model at a control plane, and returns the id of its approval.
func notice(t testing.TB, base, model string) string {
	t.Helper()
	var a harness.Answer
	harness.Eventually(t, 2*time.Minute, func() (err error) {
		a, err = harness.TryCall(http.MethodPost, base+"/api/changes", environment["CONTROL_PLANE_TOKEN"], changeOf(model))
		if err == nil && a.Status == http.StatusTooManyRequests { // 120 a minute, on all replicas together
			err = fmt.Errorf("a notice of %s: %s", model, a.Body)
		}
		return err
	})
	var ids []string
	for _, key := range []string{"created", "existing"} {
		list, _ := a.JSON(t)[key].([]any)
		for _, id := range list {
			ids = append(ids, fmt.Sprint(id))
		}
	}
	if len(ids) != 1 {
		t.Fatalf("a notice of %s: %s; want one record", model, a.Body)
	}
	return ids[0]
}

func changeOf(model string) map[string]any {
	return map[string]any{"model_ids": []string{model}, "commit_sha": fmt.Sprintf("%040x", len(model)), "commit_msg": "change of " + model}
}

var names = time.Now().UTC().Format("0102T150405") // unique to a run on the same stack

// A browser on one replica of the dashboard sees an event recorded by another control plane, once, whichever replica it
// is on.
func TestEveryReplicaStreamsEvents(t *testing.T) {
	var listeners []*listener
	for _, base := range replicas(t, "dashboard") {
		listeners = append(listeners, listen(t, base, login(t, base, "viewer")))
	}
	const each = 8
	planes := replicas(t, "control-plane")
	for i := range each * len(planes) {
		notice(t, planes[i%len(planes)], fmt.Sprintf("STREAM-%s-%03d", names, i))
	}
	for n, l := range listeners {
		for i := range each * len(planes) {
			model := fmt.Sprintf("STREAM-%s-%03d", names, i)
			harness.Eventually(t, time.Minute, func() error {
				if l.count(model) == 0 {
					return fmt.Errorf("replica %d of the dashboard has not streamed the record of %s", n+1, model)
				}
				return nil
			})
			if got := l.count(model); got != 1 {
				t.Errorf("replica %d of the dashboard streamed %d events of %s, want 1", n+1, got, model)
			}
		}
	}
	t.Logf("%d notices on %d control planes, each streamed once by %d dashboards", each*len(planes), len(planes), len(listeners))
}

// A session is valid on every replica, and on none after the logout.
func TestSessionsHoldOnEveryReplica(t *testing.T) {
	all := replicas(t, "dashboard")
	token := login(t, all[0], "admin")
	for _, base := range all {
		if a := call(t, http.MethodGet, base+"/api/auth/me", token, nil); a.Status != http.StatusOK {
			t.Errorf("%s: %d %s; want 200 for a session of another replica", base, a.Status, a.Body)
		}
	}
	if a := call(t, http.MethodPost, all[len(all)-1]+"/api/auth/logout", token, nil); a.Status != http.StatusNoContent {
		t.Fatalf("logout: %d %s; want 204", a.Status, a.Body)
	}
	for _, base := range all {
		harness.Eventually(t, 20*time.Second, func() error {
			if a := call(t, http.MethodGet, base+"/api/auth/me", token, nil); a.Status != http.StatusUnauthorized {
				return fmt.Errorf("%s: %d after the logout, want 401", base, a.Status)
			}
			return nil
		})
	}
}

// Of two concurrent decisions of one record on two replicas, one wins and the other gets the conflict.
func TestOneDecisionHolds(t *testing.T) {
	planes := replicas(t, "control-plane")
	const records = 10
	for i := range records {
		id := notice(t, planes[i%len(planes)], fmt.Sprintf("DECIDE-%s-%03d", names, i))
		answers := make([]harness.Answer, len(planes))
		var wg sync.WaitGroup
		for n, base := range planes {
			wg.Go(func() {
				for answers[n].Status == 0 || answers[n].Status == http.StatusTooManyRequests {
					answers[n], _ = harness.TryCall(http.MethodPost, base+"/approvals/"+id+"/reject", environment["CONTROL_PLANE_TOKEN"], map[string]any{"reason": "one of several"})
					sleep(t, time.Second)
				}
			})
		}
		wg.Wait()
		var statuses []int
		for _, a := range answers {
			statuses = append(statuses, a.Status)
		}
		slices.Sort(statuses)
		want := append([]int{http.StatusOK}, slices.Repeat([]int{http.StatusConflict}, len(planes)-1)...)
		if !slices.Equal(statuses, want) {
			t.Errorf("record %s: statuses %v, want %v\n%s", id, statuses, want, answers[0].Body)
		}
	}
	t.Logf("%d records, each decided on %d control planes at once: one decision each", records, len(planes))
}

// The same notice on every replica at once opens one record.
func TestRepeatedNoticesOpenOneRecord(t *testing.T) {
	planes := replicas(t, "control-plane")
	for i := range 5 {
		model := fmt.Sprintf("REPEAT-%s-%03d", names, i)
		ids := make([]string, len(planes))
		var wg sync.WaitGroup
		for n, base := range planes {
			wg.Go(func() { ids[n] = notice(t, base, model) })
		}
		wg.Wait()
		if slices.Sort(ids); len(slices.Compact(slices.Clone(ids))) != 1 {
			t.Errorf("%s: records %v, want one", model, ids)
		}
	}
}

// A rate limit counts the requests of all replicas.
func TestRateLimitsCountAllReplicas(t *testing.T) {
	all := replicas(t, "dashboard")
	token := login(t, all[0], "viewer")
	limited, done := 0, 0
	for i := range 50 { // 30 comments a minute for one person
		a := call(t, http.MethodPost, all[i%len(all)]+"/api/v1/collab/model/limits-"+names+"/comments", token, map[string]string{"body": fmt.Sprintf("comment %d", i)})
		switch a.Status {
		case http.StatusOK:
			done++
		case http.StatusTooManyRequests:
			limited++
			if a.Header.Get("Retry-After") == "" {
				t.Errorf("429 without Retry-After")
			}
		default:
			t.Fatalf("comment %d: %d %s; want 200 or 429", i, a.Status, a.Body)
		}
	}
	// A new window may begin in between.
	if done < 30 || done > 45 || limited == 0 {
		t.Errorf("%d comments were taken and %d refused on %d replicas; want 30 a minute in all", done, limited, len(all))
	}
}

// The proxy spreads requests over the replicas.
func TestProxySpreadsRequests(t *testing.T) {
	before := map[string]float64{}
	planes := replicas(t, "control-plane")
	for _, base := range planes {
		before[base] = requests(t, base)
	}
	const sent = 120
	for range sent {
		hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
		resp, err := hc.Get(environment["CONTROL_PLANE_URL"] + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for _, base := range planes {
		if got := requests(t, base) - before[base]; got < sent/float64(len(planes))/4 {
			t.Errorf("%s answered %.0f of %d requests, want its part", base, got, sent)
		}
	}
}

// requests returns how many requests to /livez a control plane has answered.
func requests(t *testing.T, base string) (n float64) {
	t.Helper()
	for _, line := range strings.Split(string(call(t, http.MethodGet, base+"/metrics", environment["CONTROL_PLANE_TOKEN"], nil).Body), "\n") {
		if name, value, ok := strings.Cut(line, "} "); ok && strings.Contains(name, "_request") && strings.Contains(name, "_count") && strings.Contains(name, "/livez") {
			var v float64
			_, _ = fmt.Sscan(value, &v)
			n += v
		}
	}
	return n
}

// A client that connects past the proxy, as every user of the machine can, does not choose the address that limits
// count.
func TestOnlyTheProxyNamesTheCaller(t *testing.T) {
	base := replicas(t, "dashboard")[0]
	limited := 0
	for i := range 70 { // 30 a minute for one address; a window may begin anew on the way
		a := call(t, http.MethodGet, base+"/api/auth/sso/providers", "", nil, "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i+1))
		if a.Status == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited == 0 {
		t.Errorf("70 requests, each with another X-Forwarded-For, were all answered; want the limit of 30 a minute for the one that sent them")
	}
}
