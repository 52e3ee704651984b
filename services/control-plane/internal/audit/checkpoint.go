package audit

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// sign stores a checkpoint of an entry; false if it already has one.
func (l *Ledger) sign(ctx context.Context, q *store.Queries, tenant string, seq int64, hash string) (bool, error) {
	now := l.Now().UTC().Truncate(time.Microsecond)
	c := chain.Sign(l.key, tenant, seq, hash, now)
	public := l.key.Public().(ed25519.PublicKey)
	if err := q.PutAuditKey(ctx, store.PutAuditKeyParams{KeyID: c.KeyID, PublicKey: public, Now: now}); err != nil {
		return false, err
	}
	n, err := q.PutAuditCheckpoint(ctx, store.PutAuditCheckpointParams{
		Tenant: tenant, Seq: c.Seq, Hash: c.Hash, Ts: now, KeyID: c.KeyID, Signature: c.Signature,
	})
	if err != nil {
		return false, err
	}
	// The log is a copy out of reach of an attacker who alters the database.
	l.Log.InfoContext(ctx, "audit checkpoint", slog.String("tenant", tenant), slog.Int64("seq", c.Seq), slog.String("hash", c.Hash),
		slog.String("ts", c.TS), slog.String("key_id", c.KeyID), slog.Any("signature", c.Signature))
	return n == 1, nil
}

// signDue signs the heads of chains that have waited long enough.
func (l *Ledger) signDue(ctx context.Context) {
	if l.key == nil {
		return
	}
	tenants, err := l.Store.AuditHeadsToSign(ctx, l.Now().Add(-checkpointAge))
	for _, t := range tenants {
		_, _, one := l.signHead(ctx, t, nil)
		err = errors.Join(err, one)
	}
	if err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "audit checkpoint not made", slog.Any("err", err))
	}
}

// signHead signs a chain's last entry, after verifying all entries that no checkpoint covers: a checkpoint must not
// vouch for altered ones. If the entry already has a checkpoint, it is returned. by is the requester, nil for the
// ledger itself.
func (l *Ledger) signHead(ctx context.Context, tenant string, by *string) (c chain.Checkpoint, made bool, err error) {
	if l.key == nil {
		return c, false, fault.AuditKeyMissing.New("This control plane has no signing key: set AUDIT_SIGNING_KEY_FILE.")
	}
	end, err := l.Store.AuditEnd(ctx, tenant)
	if err != nil {
		return c, false, err
	}
	v, err := l.Verify(ctx, tenant, max(end.CheckpointSeq, 1), 0)
	if err != nil {
		return c, false, err
	}
	if v.Fault != nil {
		return c, false, fault.AuditUnverified.New("The chain does not verify, so it is not signed; see GET /audit/verify. A failure remains one until two people acknowledge it: POST /audit/acknowledgements.").WithCause(v.Fault)
	}
	if end.HeadSeq == 0 && end.LastSeq == 0 {
		return c, false, fault.AuditEmpty.New("The chain has no entry yet, so there is nothing to sign.")
	}
	err = l.Store.InTx(ctx, func(tx store.Tx) error {
		// Entries appended while there was no key: after the first checkpoint none may be left out.
		for _, e := range v.unsigned {
			if _, err := l.sign(ctx, tx.Queries, tenant, e.Seq, e.Hash); err != nil {
				return err
			}
		}
		if made, err = l.sign(ctx, tx.Queries, tenant, v.HeadSeq, v.Head); err != nil {
			return err
		}
		row, err := tx.AuditCheckpoint(ctx, store.AuditCheckpointParams{Tenant: tenant, Seq: v.HeadSeq})
		if err != nil {
			return err
		}
		if c = checkpointOf(row); !made || by == nil {
			return nil
		}
		return tx.Emit(ctx, event.Audit(tenant, *by, "audit.checkpoint", "audit:"+tenant, event.OK,
			map[string]any{"seq": c.Seq, "hash": c.Hash, "key_id": c.KeyID}))
	})
	if err == nil {
		l.anchor(ctx, chain.Anchors{tenant: c})
	}
	return c, made, err
}
