package outbox_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
)

// A node that hangs keeps its connections and sends nothing: the relay has to leave it
// unprompted.
func TestRelayLeavesAHungNode(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	u, err := url.Parse(b.broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	nodes := []*testenv.Proxy{testenv.NewProxy(t, u.Host), testenv.NewProxy(t, u.Host)}
	var urls []string
	for _, node := range nodes {
		u.Host = node.Addr()
		urls = append(urls, u.String())
	}
	r, _ := b.relay(t, func(cfg *outbox.RelayConfig) { cfg.URL = strings.Join(urls, ",") })
	events := numberedEvents(600)
	b.insert(t, events[0])
	b.published(t, events[:1])
	for _, node := range nodes {
		if node.Conns() > 0 {
			node.Hang()
		}
	}
	b.insert(t, events[1:]...)
	b.published(t, events)
	testenv.Eventually(t, 20*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.Pending != 0 || s.Fault() != "" {
			return fmt.Errorf("got %+v, %v; want nothing pending", s, err)
		}
		return nil
	})
}

func TestFaultTellsHowLongEventsWait(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]outbox.Stats{
		"": {Pending: 3, OldestPendingSeconds: 2},
		"3 events wait in the outbox, the oldest for 43s":               {Pending: 3, OldestPendingSeconds: 43.2},
		"no connection; 3 events wait in the outbox, the oldest for 2s": {Pending: 3, OldestPendingSeconds: 2, LastError: "no connection"},
		"the stream is full; events wait in the outbox":                 {LastError: "the stream is full"},
	} {
		if got := s.Fault(); got != want {
			t.Errorf("%+v: got %q, want %q", s, got, want)
		}
	}
}
