package stream

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// Config of New. Numbers and durations that are 0 take their default.
type Config struct {
	// Conn is the connection to the broker; nil where there is none: every stream is then refused.
	Conn *nats.Conn `part:"optional"`
	// Watch returns a context that ends with the session of who, and a function that then returns why: TokenExpired or
	// LoggedOut, or nothing if only ctx has ended.
	Watch      func(ctx context.Context, who caller.Caller) (context.Context, func() string)
	Log        *slog.Logger
	Registerer prometheus.Registerer

	Stream     outbox.StreamConfig // for when this service comes before any that publishes
	MaxClients int                 // of this replica, 5,000; one session may have half of them
	Queue      int                 // events that wait for one client, 256
	History    int                 // events kept for clients that resume, 10,000
	Replay     int                 // events that one client gets when it resumes, 1,000

	KeepAlive    time.Duration // between comments when nothing happens, 15 s
	WriteTimeout time.Duration // after which a client that does not read is closed, 30 s
	BusGrace     time.Duration // how long clients are kept while the broker is away, 3 s
}

// historyBytes limits the frames kept for clients that resume; an event may have a megabyte.
const historyBytes = 64 << 20

func (c *Config) setDefaults() {
	for _, d := range []struct {
		value    *int
		standard int
	}{{&c.MaxClients, 5000}, {&c.Queue, 256}, {&c.History, 10_000}, {&c.Replay, 1000}} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&c.KeepAlive, 15 * time.Second}, {&c.WriteTimeout, 30 * time.Second}, {&c.BusGrace, 3 * time.Second}} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
}

// Stream sends events to clients. Run it as a worker, and Close it when the service drains.
type Stream struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	hub     *hub
	js      jetstream.JetStream // nil without a broker
	up      atomic.Bool

	// Only Run uses those below.
	read       uint64    // sequence of the last message read
	streamMade time.Time // of the stream that read counts in
}

// New returns a stream that accepts clients once Run has read what the broker holds.
func New(cfg Config) (*Stream, error) {
	if err := service.RequireParts("stream", cfg); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	s := &Stream{cfg: cfg, log: cfg.Log, metrics: m}
	if cfg.Conn != nil {
		if s.js, err = jetstream.New(cfg.Conn); err != nil {
			return nil, fmt.Errorf("stream: %w", err)
		}
	}
	s.hub = &hub{
		queue: cfg.Queue, replay: cfg.Replay, maxClients: cfg.MaxClients, metrics: m,
		history: history{maxEvents: cfg.History, maxBytes: historyBytes},
		groups:  map[string]*group{}, persons: map[string]int{},
	}
	return s, nil
}

// Close ends every stream with bye draining and admits no more; it does not wait for them.
func (s *Stream) Close() { s.hub.drain() }

// Check returns a warning while clients have to poll.
func (s *Stream) Check(context.Context) service.Check {
	switch {
	case s.js == nil:
		return service.Check{Status: service.Warn, Detail: "no broker is configured; clients poll"}
	case !s.up.Load():
		return service.Check{Status: service.Warn, Detail: "the events of the platform cannot be read now; clients poll"}
	}
	return service.Check{Status: service.OK}
}
