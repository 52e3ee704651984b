package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// serveSequence serves a control plane with the given answers by method and path; the last of each repeats.
func serveSequence(t *testing.T, answers map[string][]string) string {
	t.Helper()
	asked := map[string]*atomic.Int64{}
	for route := range answers {
		asked[route] = new(atomic.Int64)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := r.Method + " " + r.URL.Path
		bodies := answers[route]
		if len(bodies) == 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		body := bodies[min(int(asked[route].Add(1)), len(bodies))-1]
		w.Header().Set("Content-Type", "application/json")
		if body == "" {
			w.WriteHeader(http.StatusServiceUnavailable) // as of one that restarts
			return
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestFollowOfPromotion(t *testing.T) {
	t.Parallel()
	const id = "01930000-0000-7000-8000-000000000001"
	promotion := func(state, reason string) string {
		return fmt.Sprintf(`{"id":%q,"model":"JPCP","version":"4","from":"Staging","to":"Production","state":%q,"reason":%s}`, id, state, reason)
	}
	for _, c := range []struct {
		name    string
		answers []string
		code    int
		out     string
	}{
		{"approved by another person", []string{promotion("pending", "null"), promotion("approved", "null"), promotion("promoted", "null")}, 0, `"state": "promoted"`},
		{"control plane restarts", []string{"", promotion("promoted", "null")}, 0, `"state": "promoted"`},
		{"rejected", []string{promotion("pending", "null"), promotion("rejected", `"too slow"`)}, 1, "is rejected: too slow"},
		{"superseded", []string{promotion("superseded", "null")}, 1, `"code": "promotion_failed"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cp := serveSequence(t, map[string][]string{
				"GET /promotion-policies/JPCP": {`{"model":"JPCP","metric":"rmse","operator":"lte","threshold":50,"from_alias":"Staging","to_alias":"Production","enabled":true}`},
				"POST /promotions":             {fmt.Sprintf(`{"id":%q,"model":"JPCP","version":"4","from":"Staging","to":"Production","state":"pending","allowed":true,"reasons":[],"checks":[]}`, id)},
				"GET /promotions/" + id:        c.answers,
			})
			tracker := serveSequence(t, map[string][]string{
				"GET /api/2.0/mlflow/registered-models/search": {`{"registered_models":[{"name":"JPCP","aliases":[{"alias":"Staging","version":"4"}]}]}`},
				"GET /api/2.0/mlflow/registered-models/get":    {`{"registered_model":{"name":"JPCP","aliases":[{"alias":"Staging","version":"4"}]}}`},
			})
			r := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": cp, "CONTROL_PLANE_TOKEN": "t", "TRACKING_URI": tracker}, "", "--json", "pipeline", "promote", "JPCP", "--follow")
			if r.code != c.code || !strings.Contains(r.out, c.out) {
				t.Errorf("got exit %d\n%s\nwant exit %d and %s", r.code, r.out, c.code, c.out)
			}
		})
	}
}

func TestFollowOfTrigger(t *testing.T) {
	t.Parallel()
	const dispatched = `{"results":[{"model":"JPCP","outcome":"dispatched","flow_run_id":"f1","z_score":4.5},{"model":"MACK","outcome":"below_threshold","z_score":0.1}]}`
	run := func(terminal bool, state string) string {
		return fmt.Sprintf(`{"flow_run_id":"f1","is_terminal":%t,"state_type":%q,"model_version":"4"}`, terminal, state)
	}
	for _, c := range []struct {
		name    string
		answers []string
		code    int
		out     []string
	}{
		{"completed", []string{run(false, "RUNNING"), run(true, "COMPLETED")}, 0, []string{`"state": "COMPLETED"`, `"model_version": "4"`, `"state": null`}},
		{"failed", []string{run(true, "FAILED")}, 1, []string{`"code": "run_failed"`, `"run": "f1"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := serveSequence(t, map[string][]string{"POST /drift/trigger": {dispatched}, "GET /retrain/f1": c.answers})
			env := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "CONTROL_PLANE_TOKEN": "t"}
			r := runMLP(t, env, "", "--json", "drift", "trigger", "--follow")
			for _, want := range c.out {
				if r.code != c.code || r.err != "" || !strings.Contains(r.out, want) {
					t.Errorf("got exit %d\n%s%s\nwant exit %d and %s", r.code, r.out, r.err, c.code, want)
				}
			}
			if r := runMLP(t, env, "", "drift", "trigger", "--follow"); r.code != c.code || !strings.Contains(r.out, "STATE") || !strings.Contains(r.err, "JPCP run f1 is") {
				t.Errorf("table: got exit %d\n%s%s\nwant exit %d, the column STATE and the states on stderr", r.code, r.out, r.err, c.code)
			}
		})
	}
}

// The result of a trigger is shown, also when it cannot be followed.
func TestTriggerShowsRunsThatItCannotFollow(t *testing.T) {
	t.Parallel()
	url := serveSequence(t, map[string][]string{"POST /drift/trigger": {`{"results":[{"model":"JPCP","outcome":"dispatched","flow_run_id":"f1","z_score":4.5}]}`}})
	env := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "CONTROL_PLANE_TOKEN": "t"}
	if r := runMLP(t, env, "", "--json", "drift", "trigger", "--follow"); r.code != 1 || !strings.Contains(r.out, `"run": "f1"`) {
		t.Errorf("got exit %d\n%s%s\nwant exit 1 and the run f1", r.code, r.out, r.err)
	}
	if r := runMLP(t, env, "", "drift", "trigger", "--follow"); r.code != 1 || !strings.Contains(r.out, "f1") || r.err == "" {
		t.Errorf("table: got exit %d\n%s%s\nwant exit 1, the run f1 and an error", r.code, r.out, r.err)
	}
}

// The tracker did not answer, so the control plane moves the alias later.
func TestFollowOfRollback(t *testing.T) {
	t.Parallel()
	holders := func(versions ...string) string {
		items := make([]string, len(versions))
		for i, v := range versions {
			items[i] = fmt.Sprintf(`{"model":"JPCP","alias":"Production","version":%q,"from":"2026-01-02T03:04:05Z","actor":"a","via":"promotion"}`, v)
		}
		return `{"items":[` + strings.Join(items, ",") + `],"next_cursor":null}`
	}
	moves := func(entries ...string) string {
		return fmt.Sprintf(`{"count":%d,"items":[%s],"next_cursor":null}`, len(entries), strings.Join(entries, ","))
	}
	otherMoves := moves(`{"outcome":"failed","details":{"alias":"Staging","version":"3","reason":"x"}}`, `{"outcome":"failed","details":{"alias":"Production","version":"2","reason":"x"}}`,
		`{"outcome":"ok","details":{"alias":"Production","version":"3"}}`)
	for _, c := range []struct {
		name    string
		history []string
		ledger  string
		code    int
		out     string
	}{
		{"moved later", []string{holders("4", "3"), holders("4", "3"), holders("3", "4")}, otherMoves, 0, `"state": "moved"`},
		{"moved elsewhere meanwhile", []string{holders("4", "3"), holders("5", "4", "3")}, otherMoves, 1, `"code": "alias_moved"`},
		{"failed for good", []string{holders("4", "3")}, moves(`{"outcome":"failed","details":{"alias":"Production","version":"3","reason":"version 3 is archived"}}`), 1, "version 3 is archived"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := serveSequence(t, map[string][]string{"GET /alias-history": c.history, "GET /audit/events": {c.ledger},
				"POST /aliases/JPCP/Production/rollback": {`{"id":"01930000-0000-7000-8000-000000000001","model":"JPCP","alias":"Production","version":"3","previous_version":"4","state":"moving","actor":"a","reason":"slow"}`}})
			r := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "CONTROL_PLANE_TOKEN": "t"}, "", "--json", "models", "rollback", "JPCP", "--reason", "slow", "--follow")
			if r.code != c.code || !strings.Contains(r.out, c.out) {
				t.Errorf("got exit %d\n%s\nwant exit %d and %s", r.code, r.out, c.code, c.out)
			}
		})
	}
}
