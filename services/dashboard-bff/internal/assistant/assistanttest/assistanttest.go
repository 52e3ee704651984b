// Package assistanttest runs stand-ins for the assistant that misbehave as a test wants.
package assistanttest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// The keys of [Start].
const (
	ReadOnlyKey = "ki-ro-for-tests"
	OperatorKey = "ki-op-for-tests"
)

// Address is an assistant at this URL; empty for none.
type Address string

// Address implements assistant.Addresses.
func (a Address) Address(upstream.Service) (string, error) {
	if a == "" {
		return "", upstream.ErrNotConfigured
	}
	return string(a), nil
}

// Start serves handler until the test ends, and returns clients that call it.
func Start(t testing.TB, handler http.HandlerFunc) *assistant.Clients {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return Connect(t, server.URL)
}

// Connect returns clients of the assistant at a URL.
func Connect(t testing.TB, url string) *assistant.Clients {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	clients, err := assistant.New(assistant.Config{
		Addresses: Address(url), ReadOnlyKey: ReadOnlyKey, OperatorKey: OperatorKey, RoundTripper: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// BeginStream sends the header of a stream and its handshake.
func BeginStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	Send(w, `{"protocol_version":"1.0","object":"stream.start","session_id":"s"}`)
}

// Send sends frames with these data, and flushes.
func Send(w http.ResponseWriter, data ...string) {
	for _, d := range data {
		_, _ = w.Write([]byte("data: " + d + "\n\n"))
	}
	_ = http.NewResponseController(w).Flush()
}

// Token returns the data of an answer token; text must not need JSON escapes.
func Token(text string) string {
	return `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + text + `","role":"assistant"},"finish_reason":null}]}`
}

// Calls counts calls.
type Calls struct {
	mu sync.Mutex
	n  int // guarded by mu
}

// Add counts one.
func (c *Calls) Add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// Count returns the number of calls.
func (c *Calls) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
