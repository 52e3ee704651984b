package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	readonlyKey = "ki-ro-of-the-tests"
	operatorKey = "ki-op-of-the-tests"
)

// assistantStandIn answers a question with a recorded stream and keeps the last request.
type assistantStandIn struct {
	*httptest.Server
	last atomic.Pointer[http.Request]
}

func startAssistant(t testing.TB) *assistantStandIn {
	t.Helper()
	stream, err := os.ReadFile("internal/copilot/testdata/proposal.stream")
	if err != nil {
		t.Fatal(err)
	}
	a := &assistantStandIn{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		a.last.Store(r.Clone(context.Background()))
		switch {
		case r.URL.Path == "/v1/chat/completions", strings.HasPrefix(r.URL.Path, "/v1/events/replay/"):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(stream)
		case strings.HasPrefix(r.URL.Path, "/v1/sessions/"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"items":[],"next_cursor":null}`)
		case r.URL.Path == "/v1/namespaces":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"namespaces":["shop"],"cluster":"east","clusters":["east","west"]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// TestContractCopilot walks "Copilot".
func TestContractCopilot(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	viewer := w.signIn(viewerPassword)
	a := w.want(200, viewer, "POST", "/api/v1/copilot/ask", `{"question": "why?", "context": {"page": "/models"}}`)
	sent := w.assistant.last.Load()
	t.Run("read-only key", func(t *testing.T) {
		if got := sent.Header.Get("Authorization"); got != "Bearer "+readonlyKey {
			t.Errorf("got another credential, want the read-only key")
		}
	})
	t.Run("whom it is for", func(t *testing.T) {
		claims := claimsOf(t, sent.Header.Get("X-PLATFORM-On-Behalf-Of"))
		if claims["sub"] != "local:viewer" || claims["aud"].([]any)[0] != "assistant" || claims["iss"] != "dashboard" {
			t.Errorf("got %v, want a delegation of local:viewer for the assistant", claims)
		}
	})
	t.Run("X-Session-ID", func(t *testing.T) {
		if got := sent.Header.Get("X-Session-ID"); len(got) != 35 || !strings.HasPrefix(got, "dc-") {
			t.Errorf("got %q, want dc- and 32 hex", got)
		}
	})
	t.Run("answer", func(t *testing.T) {
		if text, _ := a.at("answer").(string); text == "" {
			t.Errorf("got %s, want an answer", a.body)
		}
		for _, p := range a.at("proposals").([]any) {
			if p.(map[string]any)["command"] == "" {
				t.Errorf("got proposal %v, want its command", p)
			}
		}
	})
	t.Run("audit copilot.query", func(t *testing.T) {
		if n := len(w.on(t).audits("copilot.query")); n != 1 {
			t.Errorf("got %d facts, want 1", n)
		}
	})
	for name, body := range map[string]string{
		"no question": `{}`, "4,001 characters": `{"question": "` + strings.Repeat("x", 4001) + `"}`, "context over 8 KiB": `{"question": "x", "context": {"page": "` + strings.Repeat("x", 8<<10) + `"}}`,
	} {
		t.Run("422 "+name, func(t *testing.T) {
			w.on(t).refused(422, "validation_failed", viewer, "POST", "/api/v1/copilot/ask", body)
		})
	}
	t.Run("admins ask the drawer with the operator key", func(t *testing.T) {
		w := w.on(t)
		w.want(200, w.signIn(adminPassword), "POST", "/api/v1/assistant/chat", `{"question": "why?"}`)
		if got := w.assistant.last.Load().Header.Get("Authorization"); got != "Bearer "+operatorKey {
			t.Error("got another credential, want the operator key")
		}
	})
}

// TestContractSearch walks "Search": ranks and limits.
func TestContractSearch(t *testing.T) {
	t.Parallel()
	w := startForRows(t)
	viewer := w.signIn(viewerPassword)
	for q, score := range map[string]int{"JPCP": 100, "ｊｐｃｐ": 100, "external": 80, "model": 60, "xternal": 40, "xtmd": 20} {
		t.Run(q, func(t *testing.T) {
			w := w.on(t)
			a := w.want(200, viewer, "GET", "/api/v1/search?limit=100&q="+url.QueryEscape(q), "")
			best := 0.0
			for _, r := range a.at("search.results").([]any) {
				if memberAt(r, "source") == "tracker" {
					best = max(best, memberAt(r, "score").(float64))
				}
			}
			if int(best) != score {
				t.Errorf("got a best score of %v among the models, want %d: %s", best, score, a.body)
			}
			wantValue("search.query", q)(w, a)
		})
	}
	t.Run("blank", func(t *testing.T) {
		w := w.on(t)
		wantValue("search.count", 0)(w, w.want(200, viewer, "GET", "/api/v1/search?q=%20", ""))
		wantValue("search.results", []any{})(w, w.want(200, viewer, "GET", "/api/v1/search", ""))
	})
	for name, query := range map[string]string{"limit 0": "q=a&limit=0", "limit 101": "q=a&limit=101", "q over 200": "q=" + strings.Repeat("a", 201), "unknown parameter": "q=a&offset=1"} {
		t.Run("422 "+name, func(t *testing.T) {
			w.on(t).refused(422, "validation_failed", viewer, "GET", "/api/v1/search?"+query, "")
		})
	}
	t.Run("default limit 20", func(t *testing.T) {
		if n := len(w.on(t).want(200, viewer, "GET", "/api/v1/search?q=a", "").at("search.results").([]any)); n != 20 {
			t.Errorf("got %d results, want 20", n)
		}
	})
}

// TestContractDocs walks "Docs".
func TestContractDocs(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	viewer := w.signIn(viewerPassword)
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"README.md": {200, ""}, "docs/dashboard.md": {200, ""}, "": {422, "validation_failed"}, strings.Repeat("a", 501): {422, "validation_failed"},
		"../go.mod": {400, "bad_docs_path"}, "%2e%2e/x.md": {400, "bad_docs_path"}, "/etc/passwd.md": {400, "bad_docs_path"}, `docs\x.md`: {400, "bad_docs_path"}, "docs/\x00.md": {400, "bad_docs_path"},
		"go.mod": {400, "bad_docs_path"}, "docs/./security.md": {400, "bad_docs_path"}, "docs/absent.md": {404, "not_found"}, "services/x.md": {404, "not_found"},
	} {
		t.Run(fmt.Sprintf("%.20q", path), func(t *testing.T) {
			if a := w.on(t).call(viewer, "GET", "/api/docs/content?path="+url.QueryEscape(path), ""); a.status != want.status || a.code() != want.code {
				t.Errorf("got %d %s, want %d %s", a.status, a.code(), want.status, want.code)
			}
		})
	}
	t.Run("tree", func(t *testing.T) {
		w := w.on(t)
		a := w.want(200, viewer, "GET", "/api/docs/tree", "")
		var keys []string
		for _, s := range a.at("").([]any) {
			keys = append(keys, fmt.Sprint(memberAt(s, "key")))
		}
		if want := []string{"guides", "services", "reference", "decisions"}; !slices.Equal(keys, want) {
			t.Errorf("got sections %v, want %v", keys, want)
		}
		a.hasMembers("0.files.0", "path title")
	})
}
