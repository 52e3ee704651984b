package drawer_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant/assistanttest"
)

func TestClusterOfAQuestionReachesTheAssistant(t *testing.T) {
	t.Parallel()
	var sent []string
	b := newBench(t, assistanttest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Values("X-Cluster")
		answerDone(w, r)
	}), nil)
	for body, want := range map[string]string{
		`{"question":"why?"}`:                                           "",
		`{"question":"why?","cluster":""}`:                              "",
		`{"question":"why?","cluster":"west"}`:                          "west",
		`{"question":"why?","cluster":"arn:aws:eks:eu:1:cluster/west"}`: "arn:aws:eks:eu:1:cluster/west",
	} {
		resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", body)
		if resp.StatusCode != http.StatusOK || strings.Join(sent, ", ") != want {
			t.Errorf("%s: got %d %s, sent %q; want 200 and %q", body, resp.StatusCode, got, sent, want)
		}
	}
}

func TestClusterThatFitsNoHeaderIsRefusedHere(t *testing.T) {
	t.Parallel()
	var calls assistanttest.Calls
	b := newBench(t, assistanttest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add()
		answerDone(w, r)
	}), nil)
	for _, name := range []string{`a b`, `a\r\nAuthorization: x`, `wést`, `\u0000`, strings.Repeat("x", 254)} {
		resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", `{"question":"why?","cluster":"`+name+`"}`)
		if resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got, `["body","cluster"]`) {
			t.Errorf("%q: got %d %s, want a 422 for body.cluster", name, resp.StatusCode, got)
		}
	}
	if calls.Count() != 0 {
		t.Errorf("the assistant got %d calls, want none", calls.Count())
	}
}

// The bodies are those of the assistant.
func TestRefusalsOfAClusterArePassedOn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		want   []string
	}{
		"unknown": {
			422, `{"status":422,"code":"validation_error","detail":"x","errors":[{"loc":["header","X-Cluster"],"msg":"must be one of east, west"}]}`,
			[]string{`["body","cluster"]`, "must be one of east, west"},
		},
		"another's": {
			409, `{"status":409,"code":"other_cluster","detail":"This session is of the cluster west, and stays so.","cluster":"west"}`,
			[]string{`"other_cluster"`, "is of the cluster west"},
		},
		"another fault": {
			422, `{"status":422,"code":"validation_error","detail":"x","errors":[{"loc":["header","Last-Event-ID"],"msg":"must be TURN.N"}]}`,
			[]string{`"validation_error"`, `["header","Last-Event-ID"]`},
		},
	} {
		b := newBench(t, assistanttest.Start(t, answerWith(tc.status, tc.body)), nil)
		resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", `{"question":"why?","cluster":"north"}`)
		if resp.StatusCode != tc.status {
			t.Errorf("%s: got %d, want %d", name, resp.StatusCode, tc.status)
		}
		for _, piece := range tc.want {
			if !strings.Contains(got, piece) {
				t.Errorf("%s: got %s, want it to contain %s", name, got, piece)
			}
		}
	}
}

// answerWith gives every request the same answer.
func answerWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestListOfClusters(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int // of the assistant
		body   string
		want   int
		answer string // its start
	}{
		"several":              {200, `{"namespaces":["shop"],"cluster":"east","clusters":["east","west"]}`, 200, `{"clusters":["east","west"]}`},
		"one without a name":   {200, `{"namespaces":["shop"]}`, 200, `{"clusters":[]}`},
		"the default is down":  {503, `{"status":503,"code":"cluster_unavailable","detail":"east: x","cluster":"east","clusters":["east","west"]}`, 200, `{"clusters":["east","west"]}`},
		"the only one is down": {503, `{"status":503,"code":"cluster_unavailable","detail":"The cluster does not answer."}`, 503, `{"type":`},
		"no rights":            {403, `{"status":403,"code":"forbidden","detail":"x","clusters":["east","west"]}`, 403, `{"type":`},
		"the key is refused":   {401, `{"status":401,"code":"unauthenticated","detail":"x"}`, 502, `{"type":`},
	} {
		b := newBench(t, assistanttest.Start(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/v1/namespaces" || r.Header.Get("Authorization") != "Bearer "+assistanttest.ReadOnlyKey {
				t.Errorf("%s: got %s %s, want the namespaces with the viewer's key", name, r.Method, r.URL)
			}
			answerWith(tc.status, tc.body)(w, r)
		}), nil)
		resp, got := b.read(t, http.MethodGet, "/api/v1/assistant/clusters", "")
		if resp.StatusCode != tc.want || !strings.HasPrefix(got, tc.answer) {
			t.Errorf("%s: got %d %s, want %d %s", name, resp.StatusCode, got, tc.want, tc.answer)
		}
		if resp, got := b.read(t, http.MethodGet, "/api/v1/assistant/clusters?cluster=west", ""); resp.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d %s for a parameter, want 422", name, resp.StatusCode, got)
		}
	}
}
