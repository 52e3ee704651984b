package audit

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// watchEvery is the interval at which a replica reads its report of the ledger.
const watchEvery = 5 * time.Second

// gauges are the last values this replica read; nil before the first. A value that cannot be read keeps its last value.
type gauges struct {
	mu       sync.Mutex // guards the fields below
	lag      *float64
	verified *float64
}

var (
	lagDesc      = prometheus.NewDesc("platform_audit_lag_events", "Audit facts in the stream that are not in the ledger yet.", nil, nil)
	verifiedDesc = prometheus.NewDesc("platform_audit_verified", "1 if every chain of the audit ledger was valid at its last verification, else 0.", nil, nil)
)

// Describe is part of prometheus.Collector.
func (l *Ledger) Describe(ch chan<- *prometheus.Desc) {
	ch <- lagDesc
	ch <- verifiedDesc
}

// Collect is part of prometheus.Collector.
func (l *Ledger) Collect(ch chan<- prometheus.Metric) {
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	for desc, v := range map[*prometheus.Desc]*float64{lagDesc: l.seen.lag, verifiedDesc: l.seen.verified} {
		if v != nil {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, *v)
		}
	}
}

// Watch keeps the metrics of this replica until ctx ends.
func (l *Ledger) Watch(ctx context.Context) error {
	away := false
	runEvery(ctx, watchEvery, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, watchEvery)
		defer cancel()
		verified, err := l.allVerified(ctx)
		if err == nil {
			l.seen.set(&l.seen.verified, verified)
			var lag *float64
			if lag, err = l.lag(ctx); err == nil {
				l.seen.set(&l.seen.lag, lag)
			}
		}
		if err != nil && !away {
			l.Log.WarnContext(ctx, "the state of the audit ledger is not readable", slog.Any("err", err))
		}
		away = err != nil
	})
	return nil
}

func (g *gauges) set(which **float64, v *float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v != nil {
		*which = v
	}
}

// allVerified returns nil until all chains have been verified once.
func (l *Ledger) allVerified(ctx context.Context) (*float64, error) {
	row, err := l.Store.AuditVerified(ctx)
	if store.None(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := 0.0
	if row.Verified {
		v = 1
	}
	return &v, nil
}

// lag counts the facts waiting in the stream; nil without a broker.
func (l *Ledger) lag(ctx context.Context) (*float64, error) {
	if l.Conn == nil || !l.Conn.IsConnected() {
		return nil, nil // health reports it
	}
	js, err := jetstream.New(l.Conn)
	if err != nil {
		return nil, err
	}
	c, err := js.Consumer(ctx, outbox.StreamName, Consumer)
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", Consumer, err)
	}
	info := c.CachedInfo() // just fetched
	v := float64(info.NumPending) + float64(info.NumAckPending)
	return &v, nil
}

// Check is the ledger's part of health. It never fails readiness: facts that cannot be recorded now wait in outbox and
// stream.
func (l *Ledger) Check(ctx context.Context) service.Check {
	warn := func(why string) service.Check { return service.Check{Status: service.Warn, Detail: why} }
	v, err := l.allVerified(ctx)
	switch {
	case err != nil:
		return warn("the audit ledger cannot be read: " + err.Error())
	case v != nil && *v == 0:
		return warn("the audit ledger does not verify: it was altered; see GET /audit/verify")
	case l.Conn == nil:
		return warn("EVENT_PUBLISHER is log: no audit fact reaches the ledger")
	case !l.Conn.IsConnected():
		return warn("no connection to NATS: audit facts wait")
	case l.key == nil && l.waitsForKey(ctx):
		return warn("AUDIT_SIGNING_KEY_FILE is not set, and the audit ledger is keyed: audit facts wait")
	case l.key == nil:
		return warn("AUDIT_SIGNING_KEY_FILE is not set: the audit ledger has no signed checkpoints")
	}
	return service.Check{Status: service.OK}
}

func (l *Ledger) waitsForKey(ctx context.Context) bool {
	sealed, err := l.sealedWithoutKey(ctx, l.Store.Queries)
	return err == nil && sealed
}

// keyID returns the id of the key this replica signs with, or empty.
func (l *Ledger) keyID() string {
	if l.key == nil {
		return ""
	}
	return chain.KeyID(l.key.Public().(ed25519.PublicKey))
}
