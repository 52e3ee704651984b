package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// record is the data of audit.recorded.
type record struct {
	Tenant    string          `json:"tenant"`
	EventID   uuid.UUID       `json:"event_id"`
	TS        time.Time       `json:"ts"`
	Source    string          `json:"source"`
	Actor     string          `json:"actor"`
	Action    string          `json:"action"`
	Target    string          `json:"target"`
	Outcome   string          `json:"outcome"`
	RequestID *string         `json:"request_id"`
	Details   json.RawMessage `json:"details"`
}

// entryOf converts a fact to an entry without a position; the error states why it cannot be one.
func entryOf(e outbox.Envelope) (chain.Entry, time.Time, error) {
	var r record
	if err := e.Decode(&r); err != nil {
		return chain.Entry{}, time.Time{}, err
	}
	fail := func(why string) (chain.Entry, time.Time, error) {
		return chain.Entry{}, time.Time{}, fmt.Errorf("event %s cannot be an entry of the audit ledger: %s", e.ID, why)
	}
	switch {
	case r.EventID != e.ID:
		return fail("event_id differs from the event's id")
	case r.Tenant != e.Tenant || r.Tenant == "":
		return fail("the fact and the event name different tenants, or none")
	case r.Source == "" || r.Actor == "" || r.Action == "":
		return fail("source, actor and action must be given")
	case r.Outcome != event.OK && r.Outcome != event.Denied && r.Outcome != event.Failed:
		return fail("outcome must be ok, denied or failed")
	case r.TS.UTC().Year() < 1 || r.TS.UTC().Year() > 9999:
		return fail("ts is out of range")
	}
	if len(r.Details) == 0 {
		r.Details = json.RawMessage("{}")
	}
	details, err := chain.Object(r.Details)
	if err != nil {
		return fail("details: " + err.Error())
	}
	ts := r.TS.UTC().Truncate(time.Microsecond) // the precision of the column
	return chain.Entry{
		V: chain.Version, Tenant: r.Tenant, EventID: r.EventID, TS: chain.Time(ts), Source: r.Source, Actor: r.Actor, Action: r.Action,
		Target: r.Target, Outcome: r.Outcome, RequestID: r.RequestID, Details: details,
	}, ts, nil
}

// append adds facts to the chains of their tenants, in order. Facts that are already there are skipped.
func (l *Ledger) append(ctx context.Context, tx pgx.Tx, events []outbox.Envelope) error {
	q := store.New(tx)
	// The row is locked from here on, so the data read below is current.
	n, err := q.FenceAuditWriter(ctx, store.FenceAuditWriterParams{Coordinator: l.Coordinator, Fence: fenceFrom(ctx)})
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("another replica writes the audit ledger: %w", outbox.ErrStop)
	}
	if sealed, err := l.sealedWithoutKey(ctx, q); err != nil {
		return err
	} else if sealed {
		return fmt.Errorf("the audit ledger is now keyed, and this replica has no key: %w", outbox.ErrStop)
	}
	ids := make([]uuid.UUID, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	known, err := q.KnownAuditEvents(ctx, ids)
	if err != nil {
		return err
	}
	entries := make([]chain.Entry, 0, len(events))
	times := make([]time.Time, 0, len(events))
	tenants := map[string]bool{}
	for _, e := range events {
		if slices.Contains(known, e.ID) { // republished after the inbox had forgotten it
			continue
		}
		entry, ts, err := entryOf(e)
		if err != nil {
			return err
		}
		entries, times = append(entries, entry), append(times, ts)
		tenants[entry.Tenant] = true
	}
	if len(entries) == 0 {
		return nil
	}
	heads, err := l.heads(ctx, q, slices.Sorted(maps.Keys(tenants)))
	if err != nil {
		return err
	}
	keyed, err := l.keyHeads(ctx, q, heads)
	if err != nil {
		return err
	}
	before := make(map[string]chain.Walk, len(heads)) // the chains before the append
	for t, h := range heads {
		before[t] = *h
	}
	rows := make([]store.AppendAuditEventsParams, len(entries))
	for i, e := range entries {
		head := heads[e.Tenant]
		e.Seq = head.Next
		link, err := l.link(e, head.Prev)
		if err != nil {
			return fmt.Errorf("event %s: %w", e.EventID, err)
		}
		head.Next, head.Prev = link.Seq+1, link.Hash
		rows[i] = store.AppendAuditEventsParams{
			Tenant: e.Tenant, Seq: e.Seq, EventID: e.EventID, Ts: times[i], Source: e.Source, Actor: e.Actor, Action: e.Action,
			Target: e.Target, Outcome: e.Outcome, RequestID: e.RequestID, Details: e.Details, PrevHash: link.PrevHash, Hash: link.Hash, Mac: wire.OptionalText(link.MAC),
		}
		if err := l.signThousandth(ctx, tx, link, before[e.Tenant], keyed[e.Tenant]); err != nil {
			return err
		}
	}
	if _, err := q.AppendAuditEvents(ctx, rows); err != nil {
		return err
	}
	for tenant, head := range heads {
		if err := q.PutAuditHead(ctx, store.PutAuditHeadParams{Tenant: tenant, Seq: head.Next - 1, Hash: head.Prev, Now: l.Now()}); err != nil {
			return err
		}
	}
	return nil
}

// link adds an entry after the previous hash, with a MAC if there is a key.
func (l *Ledger) link(e chain.Entry, prev string) (chain.Link, error) {
	if l.macKey == nil {
		return chain.Append(e, prev)
	}
	return chain.AppendKeyed(e, prev, l.macKey)
}

// keyHeads starts an epoch of this key for the chains appended to now.
func (l *Ledger) keyHeads(ctx context.Context, q *store.Queries, heads map[string]*chain.Walk) (map[string]*keyedChain, error) {
	if l.key == nil {
		return nil, nil
	}
	keys, err := l.trustedKeys(ctx, q)
	if err != nil {
		return nil, err
	}
	out, err := l.keyedChains(ctx, q, keys, slices.Sorted(maps.Keys(heads))...)
	if err != nil {
		return nil, err
	}
	for t, h := range heads {
		if err := l.beginEpoch(ctx, q, out[t], t, h.Next); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// signThousandth signs an entry whose number is due. It signs none after one that was left out, since a checkpoint
// missing below another counts as removed: signDue verifies the new entries and signs all that are due. Nor does it
// sign above a forged entry: head is the chain's end before this batch, and the entries between it and the previous
// checkpoint are checked.
func (l *Ledger) signThousandth(ctx context.Context, tx pgx.Tx, e chain.Link, head chain.Walk, keyed *keyedChain) error {
	if l.key == nil || e.Seq%checkpointEntries != 0 {
		return nil
	}
	q := store.New(tx)
	keys, err := l.trustedKeys(ctx, q)
	if err != nil {
		return err
	}
	// signDue signs the entries after an acknowledgement, where no checkpoint precedes them.
	known, open, err := l.openFailures(ctx, q, keys, e.Tenant)
	if err != nil || open || known.Base().Seq > e.Seq-checkpointEntries {
		return err
	}
	walk := chain.Walk{Tenant: e.Tenant, Next: 1, Prev: chain.Genesis}
	if e.Seq > checkpointEntries {
		mark, err := q.AuditCheckpoint(ctx, store.AuditCheckpointParams{Tenant: e.Tenant, Seq: e.Seq - checkpointEntries})
		if store.None(err) {
			return nil
		}
		if err != nil {
			return err
		}
		walk.Next, walk.Prev = mark.Seq+1, mark.Hash
	}
	f, err := l.checkUnsigned(ctx, tx, &walk, head, keyed)
	if err != nil {
		return err
	}
	if f != nil {
		l.Log.ErrorContext(ctx, "the audit ledger was altered: it is not signed", slog.String("tenant", e.Tenant), slog.Int64("first_bad_seq", f.Seq),
			slog.String("reason", f.Reason), slog.String("detail", f.Detail))
		return nil
	}
	_, err = l.sign(ctx, q, e.Tenant, e.Seq, e.Hash)
	return err
}

// checkUnsigned follows the chain in the tables up to head.
func (l *Ledger) checkUnsigned(ctx context.Context, tx pgx.Tx, walk *chain.Walk, head chain.Walk, keyed *keyedChain) (*chain.Fault, error) {
	q := store.New(tx)
	for walk.Next < head.Next {
		rows, err := q.AuditPage(ctx, store.AuditPageParams{Tenant: walk.Tenant, After: walk.Next - 1, UntilSeq: head.Next - 1, MaxRows: pageRows})
		if err != nil {
			return nil, err
		}
		page := make([]chain.Link, len(rows))
		for i, r := range rows {
			page[i] = linkOf(r)
			if f := walk.Step(page[i]); f != nil {
				return f, nil
			}
			if f := keyed.check(page[i]); f != nil {
				return f, nil
			}
		}
		if f, err := keyed.checkConsumed(ctx, tx, page); f != nil || err != nil {
			return f, err
		}
		if len(rows) < pageRows {
			break
		}
	}
	return walk.Ends(head.Next-1, head.Prev), nil
}

// heads returns where each chain continues. A tampered head does not stop appends, and stays visible: the next entry
// does not follow the one before it.
func (l *Ledger) heads(ctx context.Context, q *store.Queries, tenants []string) (map[string]*chain.Walk, error) {
	out := make(map[string]*chain.Walk, len(tenants))
	for _, t := range tenants {
		out[t] = &chain.Walk{Tenant: t, Next: 1, Prev: chain.Genesis}
	}
	rows, err := q.LockAuditHeads(ctx, tenants)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		out[r.Tenant].Next, out[r.Tenant].Prev = r.Seq+1, r.Hash
	}
	tails, err := q.AuditTails(ctx, tenants)
	if err != nil {
		return nil, err
	}
	for _, t := range tails {
		head := out[t.Tenant]
		if head.Next-1-maxUnknown > t.Seq {
			if err := l.bringBack(ctx, q, head, t.Seq); err != nil {
				return nil, err
			}
		}
		if t.Seq != head.Next-1 {
			l.Log.ErrorContext(ctx, "the audit ledger was altered: its head is not its last entry", slog.String("tenant", t.Tenant),
				slog.Int64("head", head.Next-1), slog.Int64("last", t.Seq))
			head.Next = max(head.Next, t.Seq+1)
		}
	}
	return out, nil
}

// bringBack moves a chain's head forward past all known entries if it is further behind the last entry than anything
// signed allows: the head was tampered with, and could otherwise leave no numbers after it.
func (l *Ledger) bringBack(ctx context.Context, q *store.Queries, head *chain.Walk, last int64) error {
	keys, err := l.trustedKeys(ctx, q)
	if err != nil {
		return err
	}
	known, err := l.recall(ctx, q, keys, head.Tenant)
	if err != nil {
		return err
	}
	anchor, err := l.anchors.of(head.Tenant)
	if last = max(last, anchor.Seq, known.High.Seq, known.Base().Seq); head.Next-1-maxUnknown > last {
		l.Log.ErrorContext(ctx, "the audit ledger was altered: its head is not followed", slog.String("tenant", head.Tenant), slog.Int64("head", head.Next-1), slog.Int64("last", last))
		head.Next = last + 1
	}
	return err
}
