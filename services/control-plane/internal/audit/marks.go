package audit

import (
	"context"
	"fmt"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// checkpoints reads and checks the checkpoints of a chain alongside its entries.
type checkpoints struct {
	ledger    *Ledger
	keys      chain.Keys // empty: signatures prove nothing and are not checked
	tenant    string
	after, to int64
	anchor    chain.Checkpoint // Seq 0: none
	high      chain.Head       // the largest ever verified; Seq 0: none
	last      int64            // checkpoints must be complete up to here
	next      []store.AuditCheckpoint
	done      bool

	signed   []int64 // sequences with a valid signature
	unsigned []chain.Head
}

// check validates the checkpoint of an entry, or its absence. Sequences must rise.
//
// A checkpoint covers all entries before it, so one that was removed below another hides nothing. It is a fault
// nevertheless: it shows that the tables were tampered with.
func (c *checkpoints) check(ctx context.Context, e chain.Link) (*chain.Fault, error) {
	if e.Seq == c.high.Seq && e.Hash != c.high.Hash {
		return &chain.Fault{Seq: e.Seq, Reason: chain.BadGap, Detail: "another entry was here at an earlier verification: the chain was truncated or restored from a backup, and continued"}, nil
	}
	mark, err := c.at(ctx, e.Seq)
	if err != nil {
		return nil, err
	}
	anchored := e.Seq == c.anchor.Seq
	due := e.Seq%checkpointEntries == 0
	switch {
	case mark != nil:
		if f := c.judge(e, *mark); f != nil {
			return f, nil
		}
		if len(c.keys) > 0 {
			c.signed = append(c.signed, e.Seq)
		}
	case anchored, due && e.Seq < c.last:
		return &chain.Fault{Seq: e.Seq, Reason: chain.BadCheckpoint, Detail: fmt.Sprintf("its checkpoint was removed: there was one, or there is one of %d", c.last)}, nil
	case due:
		c.unsigned = append(c.unsigned, chain.Head{Seq: e.Seq, Hash: e.Hash})
	}
	if anchored {
		return c.judge(e, c.anchor), nil
	}
	return nil, nil
}

func (c *checkpoints) judge(e chain.Link, mark chain.Checkpoint) *chain.Fault {
	if f := mark.Covers(e.Hash); f != nil || len(c.keys) == 0 {
		return f
	}
	return c.keys.Check(c.tenant, mark)
}

// signedBefore returns the last validly signed sequence before a fault; nil if none.
func (c *checkpoints) signedBefore(f *chain.Fault) (seq int64) {
	for _, s := range c.signed {
		if f == nil || s < f.Seq {
			seq = s
		}
	}
	return seq
}

// at returns the checkpoint of an entry, if there is one. Sequences must rise.
func (c *checkpoints) at(ctx context.Context, seq int64) (*chain.Checkpoint, error) {
	for {
		if len(c.next) == 0 {
			if c.done {
				return nil, nil
			}
			rows, err := c.ledger.Store.AuditCheckpointsIn(ctx, store.AuditCheckpointsInParams{Tenant: c.tenant, After: c.after, UntilSeq: c.to, MaxRows: pageRows})
			if err != nil {
				return nil, err
			}
			c.next, c.done = rows, len(rows) < pageRows
			if len(rows) == 0 {
				return nil, nil
			}
			c.after = rows[len(rows)-1].Seq
		}
		switch r := c.next[0]; {
		case r.Seq > seq:
			return nil, nil
		case r.Seq == seq:
			c.next = c.next[1:]
			mark := checkpointOf(r)
			return &mark, nil
		}
		c.next = c.next[1:]
	}
}
