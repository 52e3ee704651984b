package upstream

import (
	"testing"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// A tool's token is sent to the address that it was configured with, never to one that was stored later.
func TestTokensGoToTheirAddressAlone(t *testing.T) {
	t.Parallel()
	settings := fixed{"tracker_url": "http://127.0.0.1:15000", "orchestrator_url": "http://127.0.0.1:14200/api"}
	c, err := New(Config{Settings: settings, Tokens: map[Service]Token{
		Tracker:      {Address: "http://127.0.0.1:15000", Secret: service.Secret("of the tracker")},
		Orchestrator: {Address: "http://127.0.0.1:14200/api", Secret: service.Secret("of the orchestrator")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := func(s Service, token string) {
		t.Helper()
		got, err := c.Bearer(s, caller.Caller{})
		if err != nil || got != token {
			t.Errorf("%s: got %q, %v, want %q", s, got, err, token)
		}
	}
	want(Tracker, "of the tracker")
	want(Orchestrator, "of the orchestrator")
	settings["tracker_url"] = "http://127.0.0.1:9"
	want(Tracker, "")
	want(MetricsStore, "")
}
