package cli

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// renewingEnv returns the environment of a command that runs once the sign-in of s has expired.
func renewingEnv(t *testing.T, s *signInWorld, client *http.Client) *remote {
	t.Helper()
	s.write(t, s.expired())
	env := &Env{Out: io.Discard, Err: io.Discard, Getenv: func(k string) string { return s.vars[k] }, Now: time.Now, HTTP: client}
	r, err := env.Config()
	if err != nil {
		t.Fatal(err)
	}
	return env.dashboard(r)
}

// hang answers the first request after its client has gone away.
func hang(before func()) func(http.ResponseWriter, *http.Request) bool {
	var asked atomic.Int32
	return func(_ http.ResponseWriter, r *http.Request) bool {
		_ = r.ParseForm() // the server notices a lost client once the body is read
		if asked.Add(1) > 1 {
			return false
		}
		before()
		<-r.Context().Done()
		return true
	}
}

// A renewal ends with the request that needs it, and the next request renews.
func TestRenewalIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newSignInWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.token = hang(cancel)
	dashboard := renewingEnv(t, s, httpClient())
	var me map[string]any
	if err := dashboard.get(ctx, "/api/auth/me", &me); err == nil || fault.From(err).Code != "interrupted" {
		t.Fatalf("got %v, want the code interrupted", err)
	}
	if err := dashboard.get(t.Context(), "/api/auth/me", &me); err != nil || me["sub"] != "ada" {
		t.Errorf("got %v and %v from the next request, want the identity", me, err)
	}
}

// A provider that answers too slowly is not reported as unreachable, nor as a sign-in that timed out.
func TestRenewalTakesTooLong(t *testing.T) {
	t.Parallel()
	s := newSignInWorld(t)
	s.token = hang(func() {})
	client := httpClient()
	client.Timeout = 200 * time.Millisecond
	var me map[string]any
	err := renewingEnv(t, s, client).get(t.Context(), "/api/auth/me", &me)
	if err == nil || fault.From(err).Code != "renewal_timeout" {
		t.Errorf("got %v, want the code renewal_timeout", err)
	}
}
