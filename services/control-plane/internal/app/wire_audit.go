package app

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// wireAudit makes the audit ledger.
func (p *parts) wireAudit(db *store.Store, nc *nats.Conn, server *service.Server, log *slog.Logger) error {
	ledger := &audit.Ledger{
		Store: db, Conn: nc, Stream: outbox.StreamConfig{Replicas: p.cfg.NATSReplicas, MaxBytes: p.cfg.NATSMaxBytes},
		Coordinator: p.cfg.Coordinator, Now: time.Now, Log: log,
	}
	if err := ledger.Open(p.cfg.AuditKeyFile, p.cfg.AuditTrustedKeys); err != nil {
		return err
	}
	server.Registry.MustRegister(ledger)
	server.Check("audit", ledger.Check)
	p.audit = audit.API{Ledger: ledger}
	return nil
}

// broker connects this replica's consumers; nil where events are only logged. A
// broker that is down is waited for.
func broker(cfg Config, server *service.Server) (*nats.Conn, error) {
	if cfg.EventPublisher == "log" {
		return nil, nil
	}
	nc, err := nats.Connect(cfg.NATSURL.Reveal(), nats.Name(name+" consumers"), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(500*time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond), nats.Timeout(5*time.Second))
	if err != nil {
		return nil, fmt.Errorf("NATS: %w", err)
	}
	server.OnClose(nc.Close)
	return nc, nil
}
