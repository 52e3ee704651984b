package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
)

const (
	batchRows    = 500              // rows a claim takes
	claimLease   = 30 * time.Second // then another relay may take them
	maxPending   = 512              // unacknowledged messages
	ackTimeout   = 10 * time.Second // well below the lease
	pollInterval = time.Second      // the net under LISTEN/NOTIFY, and the pace of a standby
	minBackoff   = 200 * time.Millisecond
	maxBackoff   = 30 * time.Second // for the broker, whose return ends the wait
	maxAway      = 3 * time.Second  // for the database, whose return is not signalled
	sweepEvery   = 10 * time.Minute
	lockedLong   = 5 * time.Second  // then a row that stays locked is a fault
	settleTime   = 10 * time.Second // to write outcomes down, also while stopping
)

// RelayConfig selects the rows to publish and their broker.
type RelayConfig struct {
	Service     string        // the name in the source of events, such as control-plane
	Schema      string        // of the outbox table; the pool's when empty
	Pool        *pgxpool.Pool // bound to that schema
	Conn        *nats.Conn    // or URL
	URL         string        // the relay then opens a separate connection
	Stream      StreamConfig
	LogOnly     bool          // events are logged instead of published; no broker is needed
	MaxAttempts int           // refusals that make a row poison; 0 means 5
	Retention   time.Duration // of published rows; 0 means 7 days
}

// Relay publishes the rows of one outbox.
type Relay struct {
	cfg       RelayConfig
	log       *slog.Logger
	id        uuid.UUID
	metrics   *metrics
	wake      chan struct{}          // rows may be due
	highest   uint64                 // stream sequence acknowledged since compare; of publish alone
	atomic    bool                   // the stream takes batches; of publish alone
	dueSince  time.Time              // since when rows are due and none could be claimed; of the one that leads
	lastError atomic.Pointer[string] // nil while all is well
	counted   atomic.Pointer[count]  // of published rows; nil before the first
}

// NewRelay makes a relay; it works while Run runs. The registerer gets the
// metrics platform_outbox_*; nil means none.
func NewRelay(cfg RelayConfig, log *slog.Logger, reg prometheus.Registerer) *Relay {
	if cfg.Schema == "" {
		cfg.Schema = cfg.Pool.Config().ConnConfig.RuntimeParams["search_path"]
	}
	cfg.MaxAttempts = orDefault(cfg.MaxAttempts, 5)
	cfg.Retention = orDefault(cfg.Retention, 7*24*time.Hour)
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Relay{cfg: cfg, log: log, id: uuid.New(), wake: make(chan struct{}, 1)}
	r.metrics = newMetrics(r, reg)
	return r
}

// Run publishes until ctx ends; then it waits for outstanding acknowledgements, records them and releases its claims.
// Faults of the database and the broker do not end it: it waits, and Stats reports them.
func (r *Relay) Run(ctx context.Context) error {
	var wait backoff
	move := r.logDue
	if !r.cfg.LogOnly {
		nc := r.cfg.Conn
		if nc == nil {
			var err error
			if nc, err = ConnectNATS(r.cfg.URL, r.cfg.Service+"-relay", nats.ReconnectBufSize(-1)); err != nil {
				return err
			}
			defer nc.Close()
		}
		js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(maxPending), jetstream.WithPublishAsyncTimeout(ackTimeout))
		if err != nil {
			return fmt.Errorf("outbox: %w", err)
		}
		defer js.CleanupPublisher()
		move = func(ctx context.Context) error { return r.publish(ctx, nc, js, &wait) }
	}
	for away := (backoff{most: maxAway}); ctx.Err() == nil; {
		begin := time.Now()
		err := r.lead(ctx, move)
		if ctx.Err() != nil {
			break
		}
		r.fault(ctx, err)
		if time.Since(begin) > 2*maxAway { // it worked, or waited for another that does
			away.reset()
		}
		away.sleep(ctx, nil)
	}
	return nil
}

// pingEvery and pingsMissed detect a broker that hangs, or whose machine is gone, within 6 s: the connection itself
// stays silent then. flushTimeout limits a write to one, which delays the pings.
const (
	pingEvery    = 2 * time.Second
	pingsMissed  = 2
	flushTimeout = 3 * time.Second
)

// ConnectNATS connects under a name and retries for ever: it waits for a broker that is down, and leaves one that hangs
// for the next of the list.
func ConnectNATS(url, name string, options ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(url, append([]nats.Option{
		nats.Name(name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(minBackoff), nats.ReconnectJitter(minBackoff, minBackoff), nats.Timeout(brokerTimeout),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsMissed), nats.FlusherTimeout(flushTimeout),
	}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("outbox: NATS: %w", err)
	}
	return nc, nil
}

func (r *Relay) fault(ctx context.Context, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	if old := r.lastError.Swap(&text); old == nil || *old != text {
		r.log.WarnContext(ctx, "event relay waits", slog.Any("err", err))
	}
}

func (r *Relay) well(ctx context.Context) {
	if r.lastError.Swap(nil) != nil {
		r.log.InfoContext(ctx, "event relay works again")
	}
}

// lead waits until no other relay works on this outbox and then moves rows. The connection that listens also holds the
// advisory lock that keeps others out: it is released with the process, however that ends.
func (r *Relay) lead(ctx context.Context, move func(context.Context) error) error {
	cfg := r.cfg.Pool.Config().ConnConfig
	cfg.RuntimeParams["statement_timeout"] = "5000"
	// A server must notice that this relay's machine has gone, or no other could follow.
	cfg.RuntimeParams["tcp_keepalives_idle"] = "10"
	cfg.RuntimeParams["tcp_keepalives_interval"] = "5"
	cfg.RuntimeParams["tcp_keepalives_count"] = "3"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("outbox: database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := r.takeLock(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{"outbox_" + r.cfg.Schema}.Sanitize()); err != nil {
		return fmt.Errorf("outbox: listen: %w", err)
	}
	// No relay holds the claims of a predecessor any more. If it is still alive without its lock, the message ids
	// prevent duplicate events.
	if err := r.queries().ReleaseAllClaims(ctx); err != nil {
		return fmt.Errorf("outbox: take over: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				return fmt.Errorf("outbox: listen: %w", err)
			}
			select {
			case r.wake <- struct{}{}:
			default:
			}
		}
	})
	g.Go(func() error { return move(ctx) })
	g.Go(func() error { return r.sweep(ctx) })
	return g.Wait()
}

func (r *Relay) takeLock(ctx context.Context, conn *pgx.Conn) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		got, err := store.New(conn).TryRelayLock(ctx, "platform.outbox."+r.cfg.Schema)
		if err != nil {
			return fmt.Errorf("outbox: lock: %w", err)
		}
		if got {
			return nil
		}
		r.well(ctx) // another one works
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// publish moves due rows until ctx ends or the database fails.
func (r *Relay) publish(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, wait *backoff) error {
	status := nc.StatusChanged(nats.CONNECTED)
	defer nc.RemoveStatusListener(status)
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	compared := false
	var reconnects uint64
	for {
		if now := nc.Stats().Reconnects; !compared || now != reconnects {
			err := r.compare(ctx, nc, js)
			if err != nil && ctx.Err() == nil {
				if isOutage(err) {
					r.fault(ctx, err)
					wait.sleep(ctx, status)
					continue
				}
				return err
			}
			compared, reconnects = err == nil, now
		}
		err := r.drain(ctx, nc, js)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isOutage(err):
			compared = false // in any case the stream may be another one now
			r.fault(ctx, err)
			wait.sleep(ctx, status)
			continue
		case err != nil:
			return err
		}
		if err := r.checkLocked(ctx); err != nil {
			return err
		}
		wait.reset()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wake:
		case <-poll.C:
		}
	}
}

// outage is a fault that no row is to blame for.
type outage struct{ cause error }

func (o *outage) Error() string { return "outbox: the broker does not take events: " + o.cause.Error() }
func (o *outage) Unwrap() error { return o.cause }

func isOutage(err error) bool {
	var o *outage
	return errors.As(err, &o)
}

// backoff is the wait before the next try: 0.2 s doubling to the most, ± 50 %, so
// that relays of a fleet do not return at once.
type backoff struct {
	next time.Duration
	most time.Duration // 0 means 30 s
}

func (b *backoff) reset() { b.next = 0 }

// sleep waits; a value on early ends the wait.
func (b *backoff) sleep(ctx context.Context, early <-chan nats.Status) {
	b.next = min(max(2*b.next, minBackoff), orDefault(b.most, maxBackoff))
	t := time.NewTimer(b.next/2 + rand.N(b.next))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-early:
	}
}
