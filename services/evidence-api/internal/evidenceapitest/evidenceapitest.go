// Package evidenceapitest runs the evidence API on a real socket for tests and sends it exact bytes. Every answer that
// it reads is checked for the headers common to all answers, and against its schema, its digest and the OpenAPI
// document.
package evidenceapitest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/store"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
)

// Token is the token of every tower.
const Token = "evidenceapitest-Token.0123456789_abcdefghij~"

// Patience bounds everything that a test waits for.
const Patience = 30 * time.Second

// Tower is a running server.
type Tower struct {
	t      testing.TB
	Addr   string // 127.0.0.1:PORT
	Store  string // path, or ""
	Launch func() string
	Log    *Log

	stop  context.CancelFunc
	abort func()
	ended chan error
}

// Option changes the configuration of a tower.
type Option func(*evidenceapi.Config)

// NoStore starts a tower without a store.
func NoStore(c *evidenceapi.Config) { c.StorePath = "" }

// At starts a tower on this store instead of a new one.
func At(path string) Option { return func(c *evidenceapi.Config) { c.StorePath = path } }

// Fixtures creates a store of the sample rows and returns its path.
func Fixtures(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.sqlite")
	if err := store.WriteFixtures(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Start runs a tower over a store of the sample rows until the test ends.
func Start(t testing.TB, options ...Option) *Tower {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	abort := make(chan struct{})
	started := make(chan evidenceapi.Tower, 1)
	tw := &Tower{t: t, Log: &Log{}, stop: stop, abort: sync.OnceFunc(func() { close(abort) }), ended: make(chan error, 1)}
	cfg := evidenceapi.Config{Token: Token, StorePath: "-", Version: "1.2.3-test", Abort: abort,
		Started: func(t evidenceapi.Tower) { started <- t }}
	for _, o := range options {
		o(&cfg)
	}
	if cfg.StorePath == "-" {
		cfg.StorePath = Fixtures(t)
	}
	tw.Store = cfg.StorePath
	go func() { tw.ended <- evidenceapi.Run(ctx, cfg, slog.New(slog.NewTextHandler(tw.Log, nil))) }()
	select {
	case s := <-started:
		tw.Addr, tw.Launch = strings.TrimPrefix(s.URL, "http://"), s.Launch
	case err := <-tw.ended:
		t.Fatal(err)
	case <-time.After(Patience):
		t.Fatal("the tower does not start")
	}
	t.Cleanup(func() {
		stop()
		tw.abort()
		if err := tw.Wait(); err != nil {
			t.Errorf("the tower ended with %v", err)
		}
	})
	return tw
}

// Attach speaks to a server that the test runs itself.
func Attach(t testing.TB, addr string) *Tower { return &Tower{t: t, Addr: addr} }

// Drain stops the tower as SIGTERM does.
func (tw *Tower) Drain() { tw.stop() }

// Abort stops the tower as a second signal does.
func (tw *Tower) Abort() { tw.abort() }

// Wait waits for the end of the tower and gives its outcome; it may be called again.
func (tw *Tower) Wait() error {
	select {
	case err := <-tw.ended:
		tw.ended <- err
		return err
	case <-time.After(Patience):
		return errors.New("the tower does not end")
	}
}

// Log keeps a server's log.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// dial opens a connection with the deadline of all.
func (tw *Tower) dial() net.Conn {
	tw.t.Helper()
	c, err := net.DialTimeout("tcp4", tw.Addr, Patience)
	if err != nil {
		tw.t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(Patience)); err != nil {
		tw.t.Fatal(err)
	}
	return c
}
