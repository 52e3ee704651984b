package mcpclient_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// childEnv makes the test binary a server over stdin and stdout.
const childEnv = "MCPCLIENT_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	testenv.Main(m)
}

// noArguments is the schema of a tool without arguments.
var noArguments = map[string]any{"type": "object"}

// addTool adds a tool that returns a text.
func addTool(s *mcp.Server, t mcp.Tool, answer func(ctx context.Context, arguments string) (string, bool)) {
	if t.InputSchema == nil {
		t.InputSchema = noArguments
	}
	s.AddTool(&t, func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, failed := answer(ctx, string(q.Params.Arguments))
		return &mcp.CallToolResult{IsError: failed, Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	})
}

func says(text string) func(context.Context, string) (string, bool) {
	return func(context.Context, string) (string, bool) { return text, false }
}

func newServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "other", Version: "1"}, nil)
}

// serve runs a server over HTTP until the test ends.
func serve(t *testing.T, s *mcp.Server) *httptest.Server {
	t.Helper()
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { end(h, s) })
	return h
}

// end stops a server over HTTP, including sessions left by its clients.
func end(h *httptest.Server, s *mcp.Server) {
	h.CloseClientConnections()
	for session := range s.Sessions() {
		_ = session.Close() // its client may be gone
	}
	h.Close()
}

// logged is a log that a test can read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// bundle is a client with the servers of a test.
type bundle struct {
	*mcpclient.Client
	t    *testing.T
	log  *logged
	pool *store.Store
	stop func()
}

func setup(t *testing.T, servers ...mcpclient.Server) *bundle {
	t.Helper()
	b := &bundle{t: t, log: &logged{}, pool: store.Open(assistanttest.OpenPool(t, assistanttest.NewDatabase(t)))}
	for i := range servers {
		if servers[i].Timeout == 0 {
			servers[i].Timeout = 20 * time.Second
		}
	}
	var err error
	b.Client, err = mcpclient.New(servers, mcpclient.Deps{Store: b.pool, Now: time.Now, Log: slog.New(slog.NewTextHandler(b.log, nil)), Pause: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { b.stop() })
	return b
}

// wait waits until the tools with these names are offered, and no others.
func (b *bundle) wait(names ...string) {
	b.t.Helper()
	testenv.Eventually(b.t, 60*time.Second, func() error {
		if got := b.names(); !slices.Equal(got, names) {
			return fmt.Errorf("the tools are %v; want %v; log: %s", got, names, b.log)
		}
		return nil
	})
}

func (b *bundle) names() (names []string) {
	for _, t := range b.Offered() {
		names = append(names, t.Name)
	}
	return names
}

// tool returns an offered tool.
func (b *bundle) tool(name string) mcpclient.Tool {
	b.t.Helper()
	all := b.Offered()
	i := slices.IndexFunc(all, func(t mcpclient.Tool) bool { return t.Name == name })
	if i < 0 {
		b.t.Fatalf("there is no tool %s in %v; want it", name, b.names())
	}
	return all[i]
}

// call calls a tool that reads.
func (b *bundle) call(name, arguments string) (turn.Output, error) {
	b.t.Helper()
	op, err := b.tool(name).Operation([]byte(arguments))
	if err != nil {
		return turn.Output{}, err
	}
	return b.run(op)
}

func (b *bundle) run(op operation.Operation) (turn.Output, error) {
	return b.Tools(nil).Run(b.t.Context(), turn.Turn{Session: "s-1", Who: event.Who{Principal: "ann", Role: guard.Readonly}}, op)
}

// read calls a tool that must succeed.
func (b *bundle) read(name, arguments string) turn.Output {
	b.t.Helper()
	out, err := b.call(name, arguments)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// refused calls a tool whose failure must contain a text.
func (b *bundle) refused(name, arguments, want string) {
	b.t.Helper()
	if out, err := b.call(name, arguments); err == nil || !strings.Contains(err.Error(), want) {
		b.t.Errorf("%s with %s: got %q, %v; want an error with %q", name, arguments, out.Text, err, want)
	}
}

// waitLog waits for a text in the log.
func (b *bundle) waitLog(want string) {
	b.t.Helper()
	testenv.Eventually(b.t, 60*time.Second, func() error {
		if !strings.Contains(b.log.String(), want) {
			return fmt.Errorf("the log lacks %q: %s", want, b.log)
		}
		return nil
	})
}
