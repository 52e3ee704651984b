package drawer_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant/assistanttest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/drawer"
)

// checkEnd expects the frames sent, then the error event, then the end.
func checkEnd(t *testing.T, got, sent, code string) {
	t.Helper()
	rest, ok := strings.CutPrefix(got, sent)
	if !ok {
		t.Fatalf("got %q, want it to begin with %q", got, sent)
	}
	if !strings.HasPrefix(rest, `data: {"id":"dashboard","object":"chat.completion.chunk"`) || !strings.HasSuffix(rest, "\n\ndata: [DONE]\n\n") ||
		!strings.Contains(rest, `"ki_event":{"type":"error","fatal":true,"code":"`+code+`"`) || strings.Count(rest, "\n\n") != 2 {
		t.Errorf("got %q after that, want one fatal error event %s and [DONE]", rest, code)
	}
}

const half = `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Half ","role":"assistant"},"finish_reason":null}]}` + "\n\n"

func TestAssistantKilledMidAnswerEndsTheStreamInWords(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{"between frames": "", "within a frame": `data: {"object":"chat.compl`} {
		b := newBench(t, assistanttest.Start(t, func(w http.ResponseWriter, _ *http.Request) {
			assistanttest.BeginStream(w)
			assistanttest.Send(w, assistanttest.Token("Half "))
			_, _ = io.WriteString(w, last)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}), nil)
		resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", ask)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d, want 200", name, resp.StatusCode)
		}
		checkEnd(t, got, handshake+half, "interrupted")
	}
}

func TestAnswerWithoutItsEndIsInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t, assistanttest.Start(t, func(w http.ResponseWriter, _ *http.Request) { assistanttest.BeginStream(w) }), nil)
	_, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", ask)
	checkEnd(t, got, handshake, "interrupted")
}

// An earlier answer may have broken off, so a replay may end without [DONE].
func TestReplayEndsAsTheAssistantEndsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, assistanttest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			answerDone(w, r)
			return
		}
		assistanttest.BeginStream(w)
	}), nil)
	if _, got := b.read(t, http.MethodGet, "/api/v1/assistant/sessions/"+b.beginSession(t)+"/replay", ""); got != handshake {
		t.Errorf("got %q, want the handshake alone", got)
	}
}

// hang serves before, and then sends nothing until its caller gives up, which it reports.
func hang(before http.HandlerFunc) (handler http.HandlerFunc, ended chan struct{}) {
	ended = make(chan struct{})
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		before(w, r)
		<-r.Context().Done()
		close(ended)
	}, ended
}

func waitFor(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s goes on", what)
	}
}

func beginStream(w http.ResponseWriter, _ *http.Request) { assistanttest.BeginStream(w) }

func TestSilentStreamEnds(t *testing.T) {
	t.Parallel()
	handler, ended := hang(beginStream)
	b := newBench(t, assistanttest.Start(t, handler), func(c *drawer.Config) { c.Limits.Idle = 200 * time.Millisecond })
	_, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", ask)
	checkEnd(t, got, handshake, "timeout")
	waitFor(t, "the call", ended)
}

func TestHeartbeatsKeepAStreamOpenUpToItsWholeTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, assistanttest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		assistanttest.BeginStream(w)
		for beat := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-r.Context().Done():
				return
			case <-beat.C:
				_, _ = io.WriteString(w, ": heartbeat\n\n")
				_ = http.NewResponseController(w).Flush()
			}
		}
	}), func(c *drawer.Config) { c.Limits.Idle, c.Limits.Whole = 500*time.Millisecond, 1500*time.Millisecond })
	_, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", ask)
	beats := strings.Count(got, ": heartbeat\n\n")
	if beats < 10 {
		t.Errorf("%d heartbeats before the end, want more than fit into the idle time", beats)
	}
	checkEnd(t, got, handshake+strings.Repeat(": heartbeat\n\n", beats), "timeout")
}

func TestAssistantWithoutAnswerIsATimeout(t *testing.T) {
	t.Parallel()
	handler, ended := hang(func(http.ResponseWriter, *http.Request) {})
	b := newBench(t, assistanttest.Start(t, handler), func(c *drawer.Config) { c.Limits.Answer = 200 * time.Millisecond })
	resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", ask)
	if resp.StatusCode != http.StatusGatewayTimeout || !strings.Contains(got, "upstream_timeout") {
		t.Errorf("got %d %s, want 504 upstream_timeout", resp.StatusCode, got)
	}
	waitFor(t, "the call", ended)
}

func TestStreamEndsWithTheSession(t *testing.T) {
	t.Parallel()
	handler, ended := hang(beginStream)
	logout := make(chan struct{})
	b := newBench(t, assistanttest.Start(t, handler), func(c *drawer.Config) {
		c.FollowSession = func(ctx context.Context, _ caller.Caller) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			go func() { <-logout; cancel(errors.New("logged out")) }()
			return ctx, func() { cancel(nil) }
		}
	})
	resp := b.call(t, http.MethodPost, "/api/v1/assistant/chat", ask)
	body := bufio.NewReader(resp.Body)
	if _, err := io.ReadFull(body, make([]byte, len(handshake))); err != nil {
		t.Fatal(err)
	}
	close(logout)
	rest, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	checkEnd(t, string(rest), "", "session_ended")
	waitFor(t, "the call", ended)
}

func TestStreamEndsWhenTheDashboardShutsDown(t *testing.T) {
	t.Parallel()
	handler, ended := hang(beginStream)
	b := newBench(t, assistanttest.Start(t, handler), nil)
	resp := b.call(t, http.MethodPost, "/api/v1/assistant/chat", ask)
	body := bufio.NewReader(resp.Body)
	if _, err := io.ReadFull(body, make([]byte, len(handshake))); err != nil {
		t.Fatal(err)
	}
	b.drawer.Close()
	rest, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	checkEnd(t, string(rest), "", "shutting_down")
	waitFor(t, "the call", ended)
	if resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", ask); resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(got, "draining") {
		t.Errorf("afterwards: got %d %s, want 503 draining", resp.StatusCode, got)
	}
}

func TestCallEndsWhenTheBrowserIsGone(t *testing.T) {
	t.Parallel()
	handler, ended := hang(beginStream)
	b := newBench(t, assistanttest.Start(t, handler), nil)
	resp := b.call(t, http.MethodPost, "/api/v1/assistant/chat", ask)
	if _, err := io.ReadFull(resp.Body, make([]byte, len(handshake))); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	waitFor(t, "the call", ended)
}

func TestRefusalsOfTheAssistantArePassedOnAndItsCredentialsAreNot(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		status  int
		want    []string
	}{
		"key refused":   {refuse(401, "unauthenticated"), 502, []string{`"code":"upstream_credentials"`, "ASSISTANT_READONLY_KEY"}},
		"busy":          {refuse(409, "turn_active"), 409, []string{`"code":"turn_active"`, "Said by the assistant."}},
		"forbidden":     {refuse(403, "forbidden"), 403, []string{`"code":"forbidden"`}},
		"draining":      {refuse(503, "draining"), 503, []string{`"code":"draining"`}},
		"fault":         {refuse(500, "internal"), 502, []string{`"code":"upstream_unavailable"`}},
		"redirect":      {refuse(304, "x"), 502, []string{`"code":"upstream_unavailable"`}},
		"not its place": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, 502, []string{`"code":"upstream_unavailable"`, "ASSISTANT_URL"}},
	} {
		b := newBench(t, assistanttest.Start(t, tc.handler), nil)
		resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", ask)
		if resp.StatusCode != tc.status {
			t.Errorf("%s: got %d %s, want %d", name, resp.StatusCode, got, tc.status)
		}
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s in it", name, got, want)
			}
		}
		if auth := resp.Header.Get("WWW-Authenticate"); auth != "" {
			t.Errorf("%s: got WWW-Authenticate %q, want none: the person is signed in", name, auth)
		}
		if name == "key refused" && resp.Header.Get("X-Upstream-Status") != "401" {
			t.Errorf("got X-Upstream-Status %q, want 401", resp.Header.Get("X-Upstream-Status"))
		}
	}
}

func TestAssistantThatCannotBeCalled(t *testing.T) {
	t.Parallel()
	noKey, err := assistant.New(assistant.Config{Addresses: assistanttest.Address("http://127.0.0.1:1")})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		clients *assistant.Clients
		status  int
		code    string
	}{
		"nobody listens": {assistanttest.Connect(t, "http://127.0.0.1:1"), 502, "upstream_unavailable"},
		"no address":     {assistanttest.Connect(t, ""), 503, "service_not_configured"},
		"no key":         {noKey, 503, "service_not_configured"},
	} {
		b := newBench(t, tc.clients, nil)
		resp, got := b.read(t, http.MethodPost, "/api/v1/assistant/chat", ask)
		if resp.StatusCode != tc.status || !strings.Contains(got, `"code":"`+tc.code+`"`) {
			t.Errorf("%s: got %d %s, want %d %s", name, resp.StatusCode, got, tc.status, tc.code)
		}
	}
}
