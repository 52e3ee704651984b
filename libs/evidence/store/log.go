package store

import (
	"database/sql"
	"errors"

	"golang.org/x/mod/sumdb/note"

	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// checkpointRow is a row of checkpoints.
type checkpointRow struct {
	size      int64
	root      string
	note      sql.NullString
	createdAt string
}

const checkpointColumns = "tree_size, root_hash, note, created_at"

func (c *checkpointRow) scan(from interface{ Scan(...any) error }) error {
	return from.Scan(&c.size, &c.root, &c.note, &c.createdAt)
}

// newestCheckpoint returns the one over the longest log.
func (t tx) newestCheckpoint() (checkpointRow, error) {
	var c checkpointRow
	err := c.scan(t.row("SELECT " + checkpointColumns + " FROM checkpoints ORDER BY tree_size DESC LIMIT 1"))
	if errors.Is(err, sql.ErrNoRows) {
		return c, brokenFault(nil, "The store has no checkpoint of its event log.")
	}
	return c, err
}

// lastSequence is the newest sequence that was ever given.
func (t tx) lastSequence() (int64, error) {
	var seq sql.NullInt64
	err := t.row("SELECT max(seq) FROM (SELECT seq FROM sqlite_sequence WHERE name = 'events' UNION ALL SELECT max(sequence) FROM events)").Scan(&seq)
	return seq.Int64, err
}

// eachEvent walks the rows with a sequence above after, up to limit of them.
func (t tx) eachEvent(after, limit int64, fn func(*eventRow) error) error {
	var e eventRow
	return t.each("SELECT "+eventColumns+" FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?", []any{after, limit},
		func(rows *sql.Rows) error {
			if err := e.scan(rows); err != nil {
				return err
			}
			return fn(&e)
		})
}

// log is the event log within a write transaction.
type log struct {
	tx
	frontier frontier
	signer   note.Signer // nil: checkpoints are not signed
	grown    string      // time of the newest event of this transaction; "" if none
}

// openLog reads the state of the log. A log that its newest checkpoint does not
// describe was changed by another program; nothing more is written to it.
func (t tx) openLog(signer note.Signer) (*log, error) {
	newest, err := t.newestCheckpoint()
	if err != nil {
		return nil, err
	}
	last, err := t.lastSequence()
	if err != nil {
		return nil, err
	}
	var there int64
	if err := t.row("SELECT coalesce(max(sequence), 0) FROM events").Scan(&there); err != nil {
		return nil, err
	}
	if last != newest.size || there != last {
		return nil, logChanged()
	}
	text, err := t.meta(metaFrontier)
	if err != nil {
		return nil, err
	}
	l := &log{tx: t, signer: signer}
	fits := func() bool {
		return l.frontier.size == newest.size && tree.Hex(l.frontier.root()) == newest.root
	}
	if l.frontier, err = parseFrontier(text); err != nil || !fits() {
		l.frontier = frontier{}
		err := t.eachEvent(0, last, func(e *eventRow) error {
			l.frontier.add(e.leaf())
			return nil
		})
		if err != nil {
			return nil, err
		}
		if !fits() {
			return nil, logChanged()
		}
	}
	return l, nil
}

func logChanged() error {
	return brokenFault(nil, "The event log is not the one that its newest checkpoint describes: run `svc verify` on the store.")
}

// next is the sequence that the next event gets.
func (l *log) next() int64 { return l.frontier.size + 1 }

// append writes the next event.
func (l *log) append(event spine.Event) (*eventRow, error) {
	e, err := rowOf(event)
	if err != nil {
		return nil, err
	}
	_, err = l.exec(`INSERT INTO events (sequence, event_id, occurred_at, event_type, principal_json, authority_class,
		project_id, work_unit_id, run_id, attempt_id, source_revision, evidence_reference_json, payload_json, payload_digest)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.sequence, e.id, e.occurredAt, e.kind, e.principal, e.authorityClass,
		e.projectID, e.workUnitID, e.runID, e.attemptID, e.sourceRevision, e.evidenceReference, e.payload, e.payloadDigest)
	if err != nil {
		return nil, err
	}
	l.frontier.add(e.leaf())
	l.grown = e.occurredAt
	return e, nil
}

// checkpoint seals the appended events. Its time is that of the newest event, so
// that an edit of it shows.
func (l *log) checkpoint() error {
	if l.grown == "" {
		return nil
	}
	return l.tx.writeCheckpoint(&l.frontier, l.grown, l.signer)
}

func (t tx) writeCheckpoint(f *frontier, at string, signer note.Signer) error {
	root := f.root()
	c := checkpointRow{size: f.size, root: tree.Hex(root), createdAt: at}
	if signer != nil {
		id, err := t.meta(metaStoreID)
		if err != nil {
			return err
		}
		if err := t.sealOlder(id, signer); err != nil {
			return err
		}
		text, err := statement{originPrefix + id, f.size, root}.sign(signer)
		if err != nil {
			return err
		}
		c.note = sql.NullString{String: text, Valid: true}
	}
	if _, err := t.exec("INSERT INTO checkpoints ("+checkpointColumns+") VALUES (?, ?, ?, ?)",
		c.size, c.root, c.note, c.createdAt); err != nil {
		return err
	}
	return t.setMeta(metaFrontier, f.String())
}

// firstCheckpoint seals the events that a store had when it came to have
// checkpoints, or the empty log.
func (t tx) firstCheckpoint(born identity) error {
	at := spine.FormatTime(born.now)
	last, err := t.lastSequence()
	if err != nil {
		return err
	}
	var f frontier
	err = t.eachEvent(0, last, func(e *eventRow) error {
		f.add(e.leaf())
		at = e.occurredAt
		return nil
	})
	if err != nil {
		return err
	}
	// A log with a gap still migrates, so that it can be read; openLog refuses to
	// grow it, and verification names the gap.
	return t.writeCheckpoint(&f, at, born.signer)
}
