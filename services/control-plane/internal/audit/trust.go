package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// anchors are stored beside the signing key, out of reach of the owner of the database: the end of a chain is known
// even if all its rows were removed. A nil pointer has no anchors.
type anchors struct {
	path string
	mu   sync.Mutex // serialises writes to the file
	told bool       // guarded by mu: the write failure was already logged
}

func (a *anchors) read() (chain.Anchors, error) {
	if a == nil {
		return chain.Anchors{}, nil
	}
	return chain.ReadAnchors(a.path)
}

// of returns a tenant's anchor; Seq 0 if there is none.
func (a *anchors) of(tenant string) (chain.Checkpoint, error) {
	all, err := a.read()
	return all[tenant], err
}

// anchor records committed checkpoints. A folder that cannot be written, such as a mounted secret, is logged once; the
// chain is signed all the same.
func (l *Ledger) anchor(ctx context.Context, with chain.Anchors) {
	if l.anchors == nil || len(with) == 0 {
		return
	}
	l.anchors.mu.Lock()
	defer l.anchors.mu.Unlock()
	err := chain.RaiseAnchors(l.anchors.path, with)
	if err != nil && !l.anchors.told {
		l.Log.WarnContext(ctx, "audit checkpoints are not stored beside the signing key: the removal of a whole chain cannot be detected", slog.Any("err", err))
	}
	l.anchors.told = err != nil
}

// anchorDue records the last checkpoint of each chain: those of appended entries are committed by the consumer, outside
// the ledger's control. A row counts only with a trusted signature.
func (l *Ledger) anchorDue(ctx context.Context) {
	if l.anchors == nil {
		return
	}
	keys, err := l.keys(ctx)
	if err != nil {
		return // health reports the database
	}
	rows, err := l.Store.LastAuditCheckpoints(ctx)
	if err != nil {
		return
	}
	with := chain.Anchors{}
	for _, r := range rows {
		if c := checkpointOf(r); keys.Check(r.Tenant, c) == nil {
			with[r.Tenant] = c
		}
	}
	l.anchor(ctx, with)
}

// listed returns the keys of the tables, newest first, with those who vouch for them.
func (l *Ledger) listed(ctx context.Context, q *store.Queries) ([]chain.BundleKey, error) {
	rows, err := q.ListAuditKeys(ctx)
	if err != nil {
		return nil, err
	}
	vouches, err := q.ListAuditVouches(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string][]chain.Vouch{}
	for _, v := range vouches {
		by[v.KeyID] = append(by[v.KeyID], chain.Vouch{By: v.VouchedBy, Signature: v.Signature})
	}
	out := make([]chain.BundleKey, len(rows))
	for i, r := range rows {
		out[i] = chain.BundleKey{KeyID: r.KeyID, PublicKey: r.PublicKey, CreatedAt: chain.Time(r.CreatedAt), Vouches: by[r.KeyID]}
	}
	return out, nil
}

// keys returns the keys whose checkpoints count: those from outside the database, and those they vouch for. A row of
// audit_keys alone proves nothing, since an attacker who can rewrite a chain can add one.
func (l *Ledger) keys(ctx context.Context) (chain.Keys, error) {
	return l.trustedKeys(ctx, l.Store.Queries)
}

// trustedKeys is keys within a transaction.
func (l *Ledger) trustedKeys(ctx context.Context, q *store.Queries) (chain.Keys, error) {
	if len(l.roots) == 0 {
		return nil, nil
	}
	rows, err := l.listed(ctx, q)
	if err != nil {
		return nil, err
	}
	return l.roots.Reach(rows), nil
}

// vouchDue makes the signing key vouch for configured retired keys, so that they need not stay in the configuration.
func (l *Ledger) vouchDue(ctx context.Context) {
	if l.key == nil || len(l.roots) == 1 {
		return
	}
	rows, err := l.listed(ctx, l.Store.Queries)
	for _, k := range rows {
		done := slices.ContainsFunc(k.Vouches, func(v chain.Vouch) bool { return v.By == l.keyID() })
		if k.KeyID == l.keyID() || done || !l.roots.Has(k.PublicKey) {
			continue
		}
		v := chain.VouchFor(l.key, k.PublicKey, k.CreatedAt)
		if err = l.Store.PutAuditVouch(ctx, store.PutAuditVouchParams{KeyID: k.KeyID, VouchedBy: v.By, Signature: v.Signature}); err != nil {
			break
		}
		l.Log.InfoContext(ctx, "audit key vouched for", slog.String("key_id", k.KeyID), slog.String("vouched_by", v.By))
	}
	if err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "retired audit keys not vouched for", slog.Any("err", err))
	}
}

// tenants returns all tenants that have or had a chain.
func (l *Ledger) tenants(ctx context.Context) ([]string, error) {
	rows, err := l.Store.AuditTenants(ctx)
	if err != nil {
		return nil, err
	}
	anchored, err := l.anchors.read()
	if err != nil {
		return nil, err
	}
	for t := range anchored {
		rows = append(rows, t)
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}
