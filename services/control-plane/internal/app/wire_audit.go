package app

import (
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
