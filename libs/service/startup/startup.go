// Package startup opens the foundation of every service with state, in one order and with one set
// of rules: database pool, schema check, coordinator, HTTP server, event relay. Main runs its
// binary.
package startup

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/otlp"
)

// Options describe one service.
type Options struct {
	// Name is the service's in logs, metrics and events, and the prefix of its keys in Redis.
	Name string
	// Schema is the service's own in Postgres; Migrations are its tables, those of outbox and
	// coordinator apart.
	Schema     string
	Migrations []postgres.Set
	// MaxConns limits the pool; 0 means the pool's own default.
	MaxConns int32
	// Base is the shared part of the configuration.
	Base service.Base
	// Addr is the API's listen address; Listener overrides it.
	Addr     string
	Listener net.Listener
	// Server configures the service's HTTP server; Name, Addr, Listener, Log and Drain are filled
	// from the fields above.
	Server service.Options
	Log    *slog.Logger
	// SoleProcess means that no other replica uses this schema. Leases that a dead predecessor
	// left behind then end at the start; otherwise its poller's would block this one's for minutes.
	SoleProcess bool
}

// Tables are the service's schema, with its migrations and those of the libraries that keep rows in it.
func (o Options) Tables() postgres.Schema {
	return postgres.Schema{Name: o.Schema, Sets: append([]postgres.Set{outbox.Migrations(), coord.Migrations()}, o.Migrations...)}
}

// Migrate brings the service's schema up to date.
func Migrate(ctx context.Context, o Options) error {
	return postgres.MigrateAfter(ctx, o.Base.StartTimeout, o.Base.DatabaseURL.Reveal(), o.Schema, o.Tables().Sets...)
}

// Foundation holds the parts that Open opened. Wire the service onto it, then Run; if wiring fails,
// Close.
type Foundation struct {
	Pool        *pgxpool.Pool
	Coordinator coord.Coordinator
	Server      *service.Server
	Relay       *outbox.Relay
	// Tracing makes spans; nil if no collector is configured.
	Tracing trace.TracerProvider

	opt Options

	mu      sync.Mutex // guards closers
	closers []func()
}

// Open connects to the database, checks that its schema is up to date, opens the coordinator and
// makes server and relay. It waits up to START_TIMEOUT for a database that does not answer yet; the
// server then listens already, and its probes report the wait. Otherwise nothing listens or
// publishes before Run. What was opened is closed again if a later step fails.
func Open(ctx context.Context, o Options) (_ *Foundation, err error) {
	f := &Foundation{opt: o}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	srv := o.Server
	srv.Name, srv.Addr, srv.Listener, srv.Log = o.Name, o.Addr, o.Listener, o.Log
	srv.DrainDelay = o.Base.DrainDelay
	var endTracing func()
	if srv.Tracing, endTracing, err = otlp.Open(ctx, o.Base.Tracing, o.Name, o.Log); err != nil {
		return nil, err
	}
	f.Tracing = srv.Tracing
	f.OnClose(endTracing)
	srv.Drain = time.Duration(o.Base.DrainSeconds) * time.Second
	f.Server = service.New(srv)
	if o.Base.DataDisk != "" {
		f.Server.CheckDisk(o.Base.DataDisk)
	}
	if err = f.openPool(ctx); err != nil {
		return nil, err
	}
	if err = f.CheckSchema(ctx); err != nil {
		return nil, err
	}
	if f.Coordinator, err = openCoordinator(o, f.Pool); err != nil {
		return nil, err
	}
	f.OnClose(func() {
		if err := f.Coordinator.Close(); err != nil {
			o.Log.Warn("coordinator not closed", slog.Any("err", err))
		}
	})
	if own, ok := f.Coordinator.(interface{ ExpireLeases(context.Context) error }); ok && o.SoleProcess {
		if err = own.ExpireLeases(ctx); err != nil {
			return nil, err
		}
	}
	f.Relay = outbox.NewRelay(outbox.RelayConfig{
		Service: o.Name, Schema: o.Schema, Pool: f.Pool,
		URL: o.Base.NATSURL.Reveal(), LogOnly: o.Base.EventPublisher == "log",
		Stream:      outbox.StreamConfig{Replicas: o.Base.NATSReplicas, MaxBytes: o.Base.NATSMaxBytes},
		MaxAttempts: o.Base.EventMaxAttempts,
	}, o.Log, f.Server.Registry)
	f.Server.CheckOptional("outbox", f.checkOutbox)
	return f, nil
}

// openPool connects to the database; probes answer while it waits.
func (f *Foundation) openPool(ctx context.Context) error {
	o, began := f.opt, time.Now()
	var logged time.Time
	var cannotListen error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := []postgres.Option{postgres.Wait(o.Base.StartTimeout, func(err error) {
		if logged.IsZero() {
			f.OnClose(func() { _ = f.Server.Close() })
		}
		if cannotListen = f.Server.Listen("the database does not answer yet"); cannotListen != nil {
			cancel()
			return
		}
		if time.Since(logged) >= logWaitingEvery {
			logged = time.Now()
			o.Log.WarnContext(ctx, "waiting for the database", slog.Any("err", err), slog.Duration("waited", time.Since(began)),
				slog.Duration("start_timeout", o.Base.StartTimeout))
		}
	})}
	if o.MaxConns > 0 {
		options = append(options, postgres.MaxConns(o.MaxConns))
	}
	pool, err := postgres.Open(ctx, o.Base.DatabaseURL.Reveal(), o.Schema, options...)
	switch {
	case cannotListen != nil:
		return cannotListen
	case err != nil && postgres.Unavailable(err):
		return fmt.Errorf("the database did not answer within %s (START_TIMEOUT): %w", o.Base.StartTimeout, err)
	case err != nil:
		return err
	}
	f.Pool = pool
	f.OnClose(pool.Close)
	if !logged.IsZero() {
		o.Log.InfoContext(ctx, "the database answers", slog.Duration("waited", time.Since(began)))
	}
	return nil
}

// logWaitingEvery is the interval at which a waiting service logs that it waits.
const logWaitingEvery = 10 * time.Second

// openCoordinator opens the coordinator of the configuration. Services may share one Redis: the
// keys of each begin with its name.
func openCoordinator(o Options, pool *pgxpool.Pool) (coord.Coordinator, error) {
	if o.Base.Coordinator != "redis" {
		return coord.NewPostgres(pool), nil
	}
	c, err := coord.NewRedis(o.Base.RedisURL.Reveal(), o.Name+":")
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return c, nil
}

// checkOutbox warns of events that wait, whichever replica is to publish them.
func (f *Foundation) checkOutbox(ctx context.Context) service.Check {
	if f.opt.Base.EventPublisher == "log" {
		return service.Check{Status: service.OK}
	}
	stats, err := f.Relay.Stats(ctx)
	if err != nil {
		return service.Check{Status: service.Warn, Detail: err.Error()}
	}
	if fault := stats.Fault(); fault != "" {
		return service.Check{Status: service.Warn, Detail: fault}
	}
	return service.Check{Status: service.OK}
}

// CheckSchema reports whether the schema is up to date; the error explains how to migrate.
func (f *Foundation) CheckSchema(ctx context.Context) error {
	return postgres.Check(ctx, f.Pool, f.opt.Tables().Sets...)
}

// ConnectNATS opens a connection for the service's consumers; it reconnects for ever and is closed
// with the foundation. It returns nil where EVENT_PUBLISHER=log: there is no broker then.
func (f *Foundation) ConnectNATS() (*nats.Conn, error) {
	if f.opt.Base.EventPublisher != "nats" {
		return nil, nil
	}
	nc, err := outbox.ConnectNATS(f.opt.Base.NATSURL.Reveal(), f.opt.Name)
	if err != nil {
		return nil, fmt.Errorf("NATS_URL: %w", err)
	}
	f.OnClose(nc.Close)
	return nc, nil
}

// OnClose adds a function that frees something; the last added runs first.
func (f *Foundation) OnClose(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closers = append(f.closers, fn)
}

// Close releases what Open opened, once. Run calls it; call it only if the service is not run.
func (f *Foundation) Close() {
	f.mu.Lock()
	fns := f.closers
	f.closers = nil
	f.mu.Unlock()
	for i := len(fns) - 1; i >= 0; i-- {
		fns[i]()
	}
}

// Run publishes events, unless EVENT_RELAY_ENABLED=false, and serves until ctx ends. It returns nil
// after an orderly stop.
func (f *Foundation) Run(ctx context.Context) error {
	defer f.Close()
	if f.opt.Base.EventRelayEnabled {
		f.Server.Go("event relay", f.Relay.Run)
	}
	return f.Server.Run(ctx)
}
