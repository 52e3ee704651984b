package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// pageRows limits the rows read at a time: a chain is never held in memory.
const pageRows = 1000

// Verdict is the result of a verification.
type Verdict struct {
	Checked int64 // entries whose hash was recomputed
	HeadSeq int64 // 0 for an empty chain
	Head    string
	Fault   *chain.Fault // nil: the chain is valid
	At      time.Time
	Whole   bool // from the first entry to the last
	// SignedSeq is the last entry before any fault with a trusted signature; 0: none.
	SignedSeq int64
	// LastSeq is the last entry that the chain ever had, even if it was removed; 0: none.
	LastSeq int64
	// Memory is the knowledge of the chain beyond its tables, and State reports whether it is stored.
	Memory chain.Memory
	State  string

	unsigned []chain.Head // entries beyond the last checkpoint that are due for their number
}

// Verified reports whether the chain is valid.
func (v Verdict) Verified() bool { return v.Fault == nil }

// errBeyond reports that a range begins after the chain's end.
var errBeyond = errors.New("the range begins after the last entry")

// Verify recomputes a tenant's chain from one sequence to another; 0 is the first and the last. It sees the chain as it
// was when it began. The result is stored: a failure remains one until two people acknowledge it.
func (l *Ledger) Verify(ctx context.Context, tenant string, from, to int64) (Verdict, error) {
	if err := l.busy.Acquire(ctx, 1); err != nil {
		return Verdict{}, err
	}
	defer l.busy.Release(1)
	keys, err := l.keys(ctx)
	if err != nil {
		return Verdict{}, err
	}
	for {
		r, err := l.recall(ctx, l.Store.Queries, keys, tenant)
		if err != nil {
			return Verdict{}, err
		}
		v, err := l.verifyChain(ctx, chainRange{tenant, from, to}, keys, r.Memory)
		if err != nil {
			return Verdict{}, err
		}
		err = l.memorize(ctx, keys, &v, r, to == 0 && from <= max(r.High.Seq, 1))
		if errors.Is(err, errAcknowledged) {
			continue
		}
		return v, err
	}
}

// chainRange is a range of a tenant's chain.
type chainRange struct {
	tenant   string
	from, to int64
}

// verifyChain checks the tables for consistency, and against the memory.
func (l *Ledger) verifyChain(ctx context.Context, which chainRange, keys chain.Keys, memory chain.Memory) (Verdict, error) {
	tenant, from, to := which.tenant, which.from, which.to
	anchor, err := l.anchors.of(tenant) // before the chain is read, so its entry is already there
	if err != nil {
		return Verdict{}, err
	}
	end, err := l.Store.AuditEnd(ctx, tenant)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{At: l.Now(), HeadSeq: end.HeadSeq, Head: end.HeadHash, Whole: from <= 1 && to == 0}
	if v.HeadSeq == 0 {
		v.Head = chain.Genesis
	}
	last := max(end.LastSeq, end.HeadSeq, end.CheckpointSeq, end.VerifiedSeq, anchor.Seq, memory.High.Seq, memory.Base().Seq)
	v.LastSeq = last
	keyed, err := l.keyedChains(ctx, l.Store.Queries, keys, tenant) // after the end is read, so that entries before it have their epoch
	if err != nil {
		return Verdict{}, err
	}
	if from > 1 && from > last {
		return Verdict{}, errBeyond
	}
	open := to == 0 || to >= last // to the end of the chain
	if open {
		to = last
	}
	base := memory.Base()
	walk := chain.Walk{Tenant: tenant, Next: max(from, base.Seq+1), Prev: base.Hash}
	if from <= base.Seq && base.Seq > 0 {
		if v.Checked, v.Fault, err = l.checkAcknowledged(ctx, tenant, base); err != nil || v.Fault != nil || to <= base.Seq && !open {
			return v, err
		}
	}
	if walk.Next > base.Seq+1 {
		before, err := l.Store.AuditEntry(ctx, store.AuditEntryParams{Tenant: tenant, Seq: walk.Next - 1})
		switch {
		case store.None(err):
			v.Fault = &chain.Fault{Seq: walk.Next - 1, Reason: chain.BadGap, Detail: "the entry before the range is missing"}
			return v, nil
		case err != nil:
			return Verdict{}, err
		}
		walk.Prev = before.Hash
	}
	marks := &checkpoints{ledger: l, keys: keys, tenant: tenant, after: walk.Next - 1, to: to, anchor: anchor, high: memory.High, last: max(end.CheckpointSeq, anchor.Seq)}
	checked, found, err := l.walk(ctx, &walk, to, marks, keyed[tenant])
	if err != nil {
		return Verdict{}, err
	}
	v.Checked, v.Fault = v.Checked+checked, found
	v.unsigned = marks.unsigned
	if v.SignedSeq = marks.signedBefore(v.Fault); v.Fault != nil {
		return v, nil
	}
	switch {
	case !open:
		v.Fault = walk.Ends(to, walk.Prev)
	case end.LastSeq > end.HeadSeq:
		v.Fault = &chain.Fault{Seq: end.HeadSeq + 1, Reason: chain.BadLink, Detail: "the entry lies beyond the head: the ledger has not appended it"}
	default:
		v.Fault = chain.First(walk.Ends(end.HeadSeq, v.Head), walk.Ends(max(end.CheckpointSeq, end.VerifiedSeq, anchor.Seq, memory.High.Seq), walk.Prev))
	}
	return v, nil
}

// checkAcknowledged compares the current entries with the ones that two people accepted. Their hashes and links were
// invalid then, and stay so.
func (l *Ledger) checkAcknowledged(ctx context.Context, tenant string, base chain.Acknowledgement) (int64, *chain.Fault, error) {
	state, err := digestChain(ctx, l.Store.Queries, tenant, base.Seq)
	if err != nil {
		return 0, nil, err
	}
	if state.digest != base.Digest {
		return state.count, &chain.Fault{Seq: base.Seq, Reason: chain.BadHash, Detail: fmt.Sprintf("the entries up to it are not those that %s acknowledged", base.By)}, nil
	}
	return state.count, nil, nil
}

// chainState is a range from the first entry on, according to the tables.
type chainState struct {
	count  int64
	hash   string // of the last entry
	digest string
}

// digestChain reads the entries up to a sequence, valid or not.
func digestChain(ctx context.Context, q *store.Queries, tenant string, to int64) (chainState, error) {
	out, sum := chainState{hash: chain.Genesis}, chain.NewDigester()
	for after := int64(math.MinInt64); ; {
		rows, err := q.AuditPage(ctx, store.AuditPageParams{Tenant: tenant, After: after, UntilSeq: to, MaxRows: pageRows})
		if err != nil {
			return out, err
		}
		for _, r := range rows {
			if err := sum.Add(linkOf(r)); err != nil {
				return out, err
			}
			out.count++
			out.hash, after = r.Hash, r.Seq
		}
		if len(rows) < pageRows {
			out.digest = sum.Sum()
			return out, nil
		}
	}
}

// walk follows the chain up to an entry: pages are read one after the other, and hashed on all CPUs meanwhile.
func (l *Ledger) walk(ctx context.Context, w *chain.Walk, to int64, marks *checkpoints, keyed *keyedChain) (checked int64, first *chain.Fault, err error) {
	var mu sync.Mutex // guards first
	found := func(f *chain.Fault) {
		mu.Lock()
		defer mu.Unlock()
		first = chain.First(first, f)
	}
	pages := make(chan []chain.Link)
	g, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			for page := range pages {
				for _, link := range page {
					if f := keyed.check(link); f != nil {
						found(f)
						break // the first fault of this page
					}
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(pages)
		after := w.Next - 1
		for after < to {
			rows, err := l.Store.AuditPage(ctx, store.AuditPageParams{Tenant: w.Tenant, After: after, UntilSeq: to, MaxRows: pageRows})
			if err != nil {
				return err
			}
			page := make([]chain.Link, 0, len(rows))
			var bad *chain.Fault
			for _, r := range rows {
				link := linkOf(r)
				if bad = w.Step(link); bad != nil {
					break
				}
				page = append(page, link)
				f, err := marks.check(ctx, link)
				if err != nil {
					return err
				}
				if f != nil {
					found(f)
				}
			}
			f, err := keyed.checkConsumed(ctx, l.Store.Pool(), page)
			if err != nil {
				return err
			}
			if f != nil {
				found(f)
			}
			select {
			case pages <- page:
				checked += int64(len(page))
			case <-ctx.Done():
				return ctx.Err()
			}
			if bad != nil {
				found(bad)
				return nil
			}
			if len(rows) < pageRows {
				return nil
			}
			after = rows[len(rows)-1].Seq
		}
		return nil
	})
	err = g.Wait()
	return checked, first, err
}

// remember stores the verdict on a whole chain for health and metrics.
func (l *Ledger) remember(ctx context.Context, tenant string, v Verdict) error {
	p := store.PutAuditVerdictParams{
		Tenant: tenant, Verified: v.Verified(), Checked: v.Checked, HeadSeq: v.HeadSeq, HeadHash: v.Head, VerifiedAt: v.At,
	}
	if f := v.Fault; f != nil {
		p.FirstBadSeq, p.Reason = &f.Seq, &f.Reason
		l.Log.ErrorContext(ctx, "the audit ledger does not verify", slog.String("tenant", tenant), slog.Int64("first_bad_seq", f.Seq),
			slog.String("reason", f.Reason), slog.String("detail", f.Detail))
	}
	return l.Store.PutAuditVerdict(ctx, p)
}

// verifyDue verifies all chains if the last time was an hour ago.
func (l *Ledger) verifyDue(ctx context.Context) {
	last, err := l.Store.AuditVerified(ctx)
	if err == nil && l.Now().Sub(last.VerifiedAt) < verifyEvery {
		return
	}
	if err != nil && !store.None(err) {
		l.Log.WarnContext(ctx, "audit ledger not verified", slog.Any("err", err))
		return
	}
	if err := l.VerifyAll(ctx); err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "audit ledger not verified", slog.Any("err", err))
	}
}

// VerifyAll verifies every chain and stores the results.
func (l *Ledger) VerifyAll(ctx context.Context) error {
	begin := l.Now()
	tenants, err := l.tenants(ctx)
	if err != nil {
		return err
	}
	var checked int64
	for _, t := range tenants {
		v, err := l.Verify(ctx, t, 0, 0)
		if err != nil {
			return fmt.Errorf("verify the chain of %s: %w", t, err)
		}
		if err := l.remember(ctx, t, v); err != nil {
			return err
		}
		checked += v.Checked
	}
	l.Log.InfoContext(ctx, "audit ledger verified", slog.Int("chains", len(tenants)), slog.Int64("entries", checked),
		slog.Duration("took", l.Now().Sub(begin)))
	return l.Store.PutAuditRound(ctx, begin)
}
