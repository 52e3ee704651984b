package audit

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"net/http"
	"slices"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// exportPause limits how long a reader of an export may take for one page.
const exportPause = 30 * time.Second

// ending returns the trailer's statement about the whole chain.
func (l *Ledger) ending(v Verdict, head chain.Header) chain.Ending {
	out := chain.Ending{LastSeq: max(v.LastSeq, head.ToSeq), Key: l.key, Verification: chain.Verification{
		Verified: v.Verified(), Checked: v.Checked, Head: chain.Head{Seq: v.HeadSeq, Hash: v.Head}, SignedSeq: v.SignedSeq, VerifiedAt: chain.Time(v.At),
	}}
	if f := v.Fault; f != nil {
		out.Verification.FirstBadSeq, out.Verification.Reason = &f.Seq, &f.Reason
	}
	return out
}

// stretch returns the header of an export: the range of entries that contains all those between two instants. The range
// is contiguous, or it could not be verified.
func (l *Ledger) stretch(ctx context.Context, tenant string, memory chain.Memory, since, until *time.Time) (chain.Header, error) {
	h := chain.Header{Acknowledgements: memory.Acknowledgements, Tenant: tenant, FromSeq: 1, PrevHash: chain.Genesis, Since: timeText(since), Until: timeText(until), CreatedAt: chain.Time(l.Now())}
	var err error
	if h.Keys, err = l.listed(ctx, l.Store.Queries); err != nil {
		return h, err
	}
	if l.key != nil && !slices.ContainsFunc(h.Keys, func(k chain.BundleKey) bool { return k.KeyID == l.keyID() }) {
		h.Keys = append(h.Keys, chain.BundleKey{KeyID: l.keyID(), PublicKey: l.key.Public().(ed25519.PublicKey)}) // no checkpoint yet: it signs the trailer
	}
	s, err := l.Store.AuditSpan(ctx, store.AuditSpanParams{Tenant: tenant, Since: since, Until: until})
	if err != nil || s.LastSeq == 0 {
		return h, err
	}
	h.FromSeq, h.ToSeq = s.FirstSeq, s.LastSeq
	if h.FromSeq > 1 {
		before, err := l.Store.AuditEntry(ctx, store.AuditEntryParams{Tenant: tenant, Seq: h.FromSeq - 1})
		if err != nil && !store.None(err) {
			return h, err
		}
		if err == nil {
			h.PrevHash = before.Hash
		} else {
			h.FromSeq = 1 // verifying the bundle finds its gap
		}
	}
	return h, nil
}

func timeText(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := chain.Time(*t)
	return &s
}

// export streams a bundle page by page; page is called before each.
func (l *Ledger) export(ctx context.Context, out http.ResponseWriter, head chain.Header, end chain.Ending, page func() error) error {
	buf := bufio.NewWriterSize(out, 64<<10)
	w, err := chain.NewWriter(buf, head)
	if err != nil {
		return err
	}
	for after := head.FromSeq - 1; after < head.ToSeq; {
		if err := page(); err != nil {
			return err
		}
		rows, err := l.Store.AuditPage(ctx, store.AuditPageParams{Tenant: head.Tenant, After: after, UntilSeq: head.ToSeq, MaxRows: pageRows})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := w.Entry(linkOf(r)); err != nil {
				return err
			}
		}
		if len(rows) < pageRows {
			break
		}
		after = rows[len(rows)-1].Seq
	}
	for after := head.FromSeq - 1; after < head.ToSeq; {
		if err := page(); err != nil {
			return err
		}
		rows, err := l.Store.AuditCheckpointsIn(ctx, store.AuditCheckpointsInParams{Tenant: head.Tenant, After: after, UntilSeq: head.ToSeq, MaxRows: pageRows})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := w.Checkpoint(checkpointOf(r)); err != nil {
				return err
			}
		}
		if len(rows) < pageRows {
			break
		}
		after = rows[len(rows)-1].Seq
	}
	if err := w.Close(end); err != nil {
		return err
	}
	return buf.Flush()
}
