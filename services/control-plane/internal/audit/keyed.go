package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// epochBook stores this key's epochs beside it, out of reach of the owner of the database: it reveals that MACs and
// every trace of them were removed. A nil pointer has no epochs.
type epochBook struct {
	path string
	mu   sync.Mutex // guards the fields below, and serialises writes to the file
	mine []chain.Epoch
	told bool // the write failure was already logged
}

// openEpochBook reads the file at path, if there is one.
func openEpochBook(path string) (*epochBook, error) {
	mine, err := chain.ReadEpochs(path)
	return &epochBook{path: path, mine: mine}, err
}

func (b *epochBook) list() []chain.Epoch {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.mine)
}

// has reports whether a trusted key has signed an epoch of the tenant here.
func (b *epochBook) has(keys chain.Keys, tenant string) bool {
	return slices.ContainsFunc(b.list(), func(e chain.Epoch) bool { return e.Tenant == tenant && keys.Signed(e) })
}

// noteEpoch stores an epoch in this process and in the file. A folder that cannot be written is logged once; the
// database has the epoch all the same.
func (l *Ledger) noteEpoch(ctx context.Context, e chain.Epoch) {
	b := l.epochs
	b.mu.Lock()
	b.mine = append(b.mine, e)
	err := chain.AddEpochs(b.path, e)
	first := err != nil && !b.told
	b.told = err != nil
	b.mu.Unlock()
	if first {
		l.Log.WarnContext(ctx, "audit epochs are not stored beside the signing key", slog.Any("err", err))
	}
}

// keyedChain determines which entries of a chain must carry a MAC, and of which key.
type keyedChain struct {
	ledger *Ledger
	epochs chain.Epochs
	sealed bool // a chain without an epoch was inserted by hand
}

// keyedChains returns the keyedChain of each tenant. An epoch counts if a trusted key signed it, wherever it is stored.
func (l *Ledger) keyedChains(ctx context.Context, q *store.Queries, keys chain.Keys, tenants ...string) (map[string]*keyedChain, error) {
	rows, err := q.ListAuditEpochs(ctx, append([]string{""}, tenants...))
	if err != nil {
		return nil, err
	}
	all := l.epochs.list()
	for _, r := range rows {
		all = append(all, chain.Epoch{Tenant: r.Tenant, FromSeq: r.FromSeq, TS: chain.Time(r.Ts), KeyID: r.KeyID, Signature: r.Signature})
	}
	out := make(map[string]*keyedChain, len(tenants))
	for _, t := range tenants {
		out[t] = &keyedChain{ledger: l}
	}
	for _, e := range all {
		if !keys.Signed(e) {
			continue
		}
		if e.Tenant == "" {
			for _, c := range out {
				c.sealed = true
			}
		} else if c := out[e.Tenant]; c != nil {
			c.epochs = append(c.epochs, e)
		}
	}
	return out, nil
}

// keyed reports whether an entry must carry a MAC.
func (c *keyedChain) keyed(seq int64) bool {
	_, ok := c.epochs.At(seq)
	return ok || c.sealed && len(c.epochs) == 0
}

// check recomputes hash and MAC of an entry; it needs no other entry.
func (c *keyedChain) check(link chain.Link) *chain.Fault {
	e, ok := c.epochs.At(link.Seq)
	switch {
	case !ok && c.sealed && len(c.epochs) == 0:
		return chain.First(link.CheckHash(), &chain.Fault{Seq: link.Seq, Reason: chain.BadForged, Detail: "the ledger has never appended to this chain"})
	case !ok:
		return link.CheckHash()
	case c.ledger.macKey != nil && e.KeyID == c.ledger.keyID():
		return link.CheckKeyed(c.ledger.macKey)
	}
	return link.CheckForeignKeyed()
}

// checkConsumed reports the first entry of a page whose event did not come from the stream. Entries from before MACs
// are skipped: their ids were not recorded.
func (c *keyedChain) checkConsumed(ctx context.Context, db outbox.Querier, page []chain.Link) (*chain.Fault, error) {
	ids := make([]uuid.UUID, 0, len(page))
	for _, link := range page {
		if c.keyed(link.Seq) {
			ids = append(ids, link.EventID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	missing, err := outbox.ListUnconsumed(ctx, db, Consumer, ids)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	i := slices.IndexFunc(page, func(link chain.Link) bool { return slices.Contains(missing, link.EventID) })
	return &chain.Fault{Seq: page[i].Seq, Reason: chain.BadForged, Detail: "its event never came from the stream"}, nil
}

// sealChains begins an epoch for each chain without one, after its last entry, and then records permanently that there
// are no others. It does so once, under the lease.
func (l *Ledger) sealChains(ctx context.Context) error {
	if l.key == nil {
		return nil
	}
	keys, err := l.keys(ctx)
	if err != nil {
		return err
	}
	var made []chain.Epoch
	err = l.Store.InTx(ctx, func(tx store.Tx) error {
		made = nil
		n, err := tx.FenceAuditWriter(ctx, store.FenceAuditWriterParams{Coordinator: l.Coordinator, Fence: fenceFrom(ctx)})
		if err != nil || n == 0 { // another replica leads now, and does it
			return err
		}
		tenants, err := tx.AuditTenants(ctx)
		if err != nil {
			return err
		}
		chains, err := l.keyedChains(ctx, tx.Queries, keys, append(tenants, "")...)
		if err != nil || chains[""].sealed {
			return err
		}
		for _, t := range tenants {
			if len(chains[t].epochs) > 0 {
				continue
			}
			end, err := tx.AuditEnd(ctx, t)
			if err != nil {
				return err
			}
			e := chain.SignEpoch(l.key, t, max(end.HeadSeq, end.LastSeq)+1, l.Now())
			if err := l.putEpoch(ctx, tx.Queries, e); err != nil {
				return err
			}
			made = append(made, e)
		}
		seal := chain.Seal(l.key, l.Now())
		made = append(made, seal)
		return l.putEpoch(ctx, tx.Queries, seal)
	})
	if err == nil {
		for _, e := range made {
			l.noteEpoch(ctx, e)
		}
	}
	return err
}

func (l *Ledger) putEpoch(ctx context.Context, q *store.Queries, e chain.Epoch) error {
	ts, err := chain.ParseTime(e.TS)
	if err != nil {
		return err
	}
	return q.PutAuditEpoch(ctx, store.PutAuditEpochParams{Tenant: e.Tenant, FromSeq: e.FromSeq, Ts: ts, KeyID: e.KeyID, Signature: e.Signature})
}

// beginEpoch makes an entry the first of an epoch of this key, unless it is already in one.
func (l *Ledger) beginEpoch(ctx context.Context, q *store.Queries, c *keyedChain, tenant string, seq int64) error {
	if e, ok := c.epochs.At(seq); ok && e.KeyID == l.keyID() {
		return nil
	}
	e := chain.SignEpoch(l.key, tenant, seq, l.Now())
	if err := l.putEpoch(ctx, q, e); err != nil {
		return err
	}
	c.epochs = append(c.epochs, e)
	// Even if the transaction fails: whatever this key appends from seq on is keyed anyway.
	l.noteEpoch(ctx, e)
	return nil
}

// awaitKey waits, in a process without the signing key, while the ledger is keyed: entries it appended would be
// indistinguishable from ones inserted by hand. The facts wait in the stream. It returns false when ctx ends.
func (l *Ledger) awaitKey(ctx context.Context) bool {
	for told := false; ctx.Err() == nil; {
		sealed, err := l.sealedWithoutKey(ctx, l.Store.Queries)
		if err == nil && !sealed {
			return true
		}
		if !told {
			l.Log.WarnContext(ctx, "audit facts wait: the ledger is keyed, and AUDIT_SIGNING_KEY_FILE is not set", slog.Any("err", err))
			told = true
		}
		waitFor(ctx, checkpointTick)
	}
	return false
}

// sealUntilDone seals the chains and retries on failure: a database that is briefly unavailable must not end the
// service. It returns false when ctx ends first.
func (l *Ledger) sealUntilDone(ctx context.Context) bool {
	for told := false; ctx.Err() == nil; {
		err := l.sealChains(ctx)
		if err == nil {
			return true
		}
		if !told && ctx.Err() == nil {
			l.Log.WarnContext(ctx, "audit facts wait: the ledger could not be sealed; trying again", slog.Any("err", err))
			told = true
		}
		waitFor(ctx, sealRetry)
	}
	return false
}

// sealRetry is how long sealUntilDone waits between attempts.
const sealRetry = time.Second

// sealedWithoutKey reports whether this process must not append: it has no key, and others did. It checks no signature,
// since it may have no public key either.
func (l *Ledger) sealedWithoutKey(ctx context.Context, q *store.Queries) (bool, error) {
	if l.key != nil {
		return false, nil
	}
	rows, err := q.ListAuditEpochs(ctx, []string{""})
	return len(rows) > 0, err
}
