package testenv

import (
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/libs/embedded/natsd"
)

// NATS is the URL of a server with JetStream that only this test uses.
func NATS(t testing.TB) (url string) {
	t.Helper()
	return NewBroker(t).URL()
}

// Broker is a NATS server that a test may stop and start again at the same
// address, with its streams or without.
type Broker struct {
	t      testing.TB
	url    string
	synced bool

	mu     sync.Mutex // guards what follows
	dir    string
	port   int
	server *natsd.Server
	inside *brokerContainer // in place of server where containers are forced
}

// NewBroker starts a server for this test; it stops with the test. Like the
// database of tests, it does not wait for the disk.
func NewBroker(t testing.TB) *Broker {
	t.Helper()
	return newBroker(t, false)
}

// NewSyncedBroker is NewBroker with the shipped setting, by which each message is
// on the disk before it is acknowledged.
func NewSyncedBroker(t testing.TB) *Broker {
	t.Helper()
	return newBroker(t, true)
}

func newBroker(t testing.TB, synced bool) *Broker {
	t.Helper()
	b := &Broker{t: t, dir: t.TempDir(), synced: synced}
	t.Cleanup(b.end) // first: a container may be there although the start failed
	b.Start()
	return b
}

// URL is the server's address, also after Start.
func (b *Broker) URL() string { return b.url }

// Start starts a stopped server at its address with its streams.
func (b *Broker) Start() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if containersForced() {
		b.startContainer()
		return
	}
	if b.server != nil {
		return
	}
	s, err := natsd.Start(natsd.Config{Dir: b.dir, Port: b.port, Throwaway: !b.synced})
	if err != nil {
		b.t.Fatalf("testenv: NATS: %v", err)
	}
	b.server, b.url = s, s.URL()
	u, err := url.Parse(b.url)
	if err != nil {
		b.t.Fatalf("testenv: NATS: %v", err)
	}
	if b.port, err = strconv.Atoi(u.Port()); err != nil {
		b.t.Fatalf("testenv: NATS: %v", err)
	}
}

// Stop stops the server; a stopped one stays stopped.
func (b *Broker) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside != nil {
		if err := b.inside.stop(); err != nil {
			b.t.Errorf("testenv: stop the container of NATS: %v", err)
		}
	}
	if b.server != nil {
		b.server.Stop()
		b.server = nil
	}
}

// end stops the server permanently.
func (b *Broker) end() {
	b.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside != nil {
		b.inside.remove(b.t)
		b.inside = nil
	}
}

// Wipe makes the next Start begin without streams, as after the loss of a disk.
func (b *Broker) Wipe() {
	b.t.Helper()
	b.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside != nil {
		b.inside.remove(b.t)
		b.inside = nil
	}
	b.dir = filepath.Join(b.t.TempDir(), "wiped")
}
