package drawer_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant/assistanttest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/drawer"
)

// decideAs answers chats, and decisions by decide.
func decideAs(decide http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/actions/") {
			decide(w, r)
			return
		}
		answerDone(w, r)
	}
}

func refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"title":"T","detail":"Said by the assistant.","code":"`+code+`"}`)
	}
}

func (b *bench) decide(t *testing.T, session, body string) (int, string) {
	t.Helper()
	resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/sessions/"+session+"/actions/"+actionID, body)
	return resp.StatusCode, got
}

func TestDecisionIsOnRecordBeforeItIsMade(t *testing.T) {
	t.Parallel()
	var b *bench
	var recorded []announce.Fact
	var sent map[string]any
	var key string
	b = newBench(t, assistanttest.Start(t, decideAs(func(w http.ResponseWriter, r *http.Request) {
		recorded, key = b.facts.all(), r.Header.Get("Authorization")
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"state":"approved"}`)
	})), nil)
	b.who = admin
	session := b.beginSession(t)
	status, body := b.decide(t, session, `{"decision":"approve","reason":"launch day"}`)
	if status != http.StatusOK || body != `{"state":"approved"}` {
		t.Fatalf("got %d %s, want the assistant's answer", status, body)
	}
	want := []announce.Fact{{Action: "assistant.decide", Target: "action:" + actionID, Outcome: "ok", Details: map[string]any{
		"decision": "approve", "reason": "launch day", "session": session,
	}}}
	if diff := cmp.Diff(want, recorded); diff != "" {
		t.Errorf("recorded before the call -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"decision": "approve", "reason": "launch day"}, sent); diff != "" || key != "Bearer "+assistanttest.OperatorKey {
		t.Errorf("sent with %q, want the operator key; body -want +got:\n%s", key, diff)
	}
	if n := len(b.facts.all()); n != 1 {
		t.Errorf("%d facts, want 1", n)
	}
}

func TestViewersDecideNothing(t *testing.T) {
	t.Parallel()
	var calls assistanttest.Calls
	b := newBench(t, assistanttest.Start(t, decideAs(func(http.ResponseWriter, *http.Request) { calls.Add() })), nil)
	status, body := b.decide(t, b.beginSession(t), `{"decision":"deny"}`)
	if status != http.StatusForbidden || !strings.Contains(body, "role_required") || calls.Count() != 0 || len(b.facts.all()) != 0 {
		t.Errorf("got %d %s, %d calls, %d facts; want 403 role_required, none", status, body, calls.Count(), len(b.facts.all()))
	}
}

func TestDecisionThatCannotBeRecordedIsNotMade(t *testing.T) {
	t.Parallel()
	var calls assistanttest.Calls
	b := newBench(t, assistanttest.Start(t, decideAs(func(http.ResponseWriter, *http.Request) { calls.Add() })), func(c *drawer.Config) {
		c.Recorder = &recorder{err: errBroken}
	})
	b.who = admin
	status, body := b.decide(t, b.beginSession(t), `{"decision":"approve"}`)
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "store_unavailable") || calls.Count() != 0 {
		t.Errorf("got %d %s after %d calls; want 503 store_unavailable after none", status, body, calls.Count())
	}
}

func TestRefusedDecisionIsOnRecordAsSuch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status        int
		code, outcome string
	}{
		{http.StatusForbidden, "forbidden", "denied"}, {http.StatusGone, "action_stale", "failed"},
		{http.StatusConflict, "already_decided", "failed"}, {http.StatusNotFound, "action_not_found", "failed"},
	} {
		b := newBench(t, assistanttest.Start(t, decideAs(refuse(tc.status, tc.code))), nil)
		b.who = admin
		status, body := b.decide(t, b.beginSession(t), `{"decision":"approve"}`)
		if status != tc.status || !strings.Contains(body, `"code":"`+tc.code+`"`) || !strings.Contains(body, "Said by the assistant.") {
			t.Errorf("%s: got %d %s, want %d in the assistant's words", tc.code, status, body, tc.status)
		}
		facts := b.facts.all()
		if len(facts) != 2 || facts[1].Outcome != tc.outcome || facts[1].Details["error_code"] != tc.code {
			t.Errorf("%s: got %+v, want a second fact with outcome %s", tc.code, facts, tc.outcome)
		}
	}
}

func TestInvalidDecisionsReachNobody(t *testing.T) {
	t.Parallel()
	var calls assistanttest.Calls
	b := newBench(t, assistanttest.Start(t, decideAs(func(http.ResponseWriter, *http.Request) { calls.Add() })), nil)
	b.who = admin
	session := b.beginSession(t)
	for _, body := range []string{`{}`, `{"decision":"yes"}`, `{"decision":"approve","auto_approve":true}`, `{"decision":"approve","reason":"` + strings.Repeat("x", 1001) + `"}`} {
		if status, got := b.decide(t, session, body); status != http.StatusUnprocessableEntity {
			t.Errorf("%.50s: got %d %s, want 422", body, status, got)
		}
	}
	if resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/sessions/"+session+"/actions/7", `{"decision":"deny"}`); resp.StatusCode != http.StatusNotFound {
		t.Errorf("action 7: got %d %s, want 404", resp.StatusCode, got)
	}
	if calls.Count() != 0 || len(b.facts.all()) != 0 {
		t.Errorf("%d calls, %d facts; want none", calls.Count(), len(b.facts.all()))
	}
}
