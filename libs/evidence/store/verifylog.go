package store

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// events walks the log once and holds each size against the checkpoints over it.
func (v *verifier) events(t tx) error {
	checkpoints := map[int64]bool{}
	sizes := []int64{}
	err := t.each("SELECT tree_size FROM checkpoints ORDER BY tree_size", nil, func(rows *sql.Rows) error {
		var size int64
		err := rows.Scan(&size)
		sizes = append(sizes, size)
		checkpoints[size] = true
		return err
	})
	if err != nil {
		return err
	}
	var f frontier
	at := func(occurred string) error {
		if v.options.Checkpoint != nil && f.size == v.older.size {
			v.againstOlder(f.root())
		}
		if !checkpoints[f.size] {
			return nil
		}
		return v.checkpoint(t, f.size, f.root(), occurred)
	}
	if err := at(""); err != nil {
		return err
	}
	err = t.eachEvent(-1<<62, -1, func(e *eventRow) error {
		v.out.Checked.Events++
		v.row()
		if want := f.size + 1; e.sequence != want {
			v.find(FindingSequence, fmt.Sprintf("event %d", e.sequence), "Event %d should stand here.", want)
		}
		v.event(e)
		f.add(e.leaf())
		return at(e.occurredAt)
	})
	if err != nil {
		return err
	}
	return v.end(t, &f, sizes)
}

func (v *verifier) event(e *eventRow) {
	subject := fmt.Sprintf("event %d", e.sequence)
	value, err := canon.Parse(e.envelope())
	if err == nil {
		_, err = spine.ReadEvent(value)
	}
	var f *spine.Fault
	switch {
	case errors.As(err, &f) && f.Code == spine.PayloadDigestMismatch:
	case err != nil:
		v.find(FindingEvent, subject, "%v", err)
	default:
		if err := e.check(); err != nil && !errors.Is(err, errPayloadDigest) {
			v.find(FindingEvent, subject, "%v", err)
		}
	}
	if canon.DigestBytes([]byte(e.payload)) != e.payloadDigest {
		v.find(FindingPayload, subject, "%v", errPayloadDigest)
	}
}

// end checks what is known once the log's size is.
func (v *verifier) end(t tx, f *frontier, sizes []int64) error {
	last, err := t.lastSequence()
	if err != nil {
		return err
	}
	if last != f.size {
		v.find(FindingSequence, "events", "The newest sequence ever given is %d, and %d events are there.", last, f.size)
	}
	for _, size := range sizes {
		if size < 0 || size > f.size {
			v.find(FindingCheckpoint, fmt.Sprintf("checkpoint %d", size), "The log has only %d events.", f.size)
		}
	}
	if !slices.Contains(sizes, f.size) {
		v.find(FindingCheckpoint, "checkpoints", "No checkpoint covers all %d events.", f.size)
	}
	text, err := t.meta(metaFrontier)
	if err != nil {
		return err
	}
	if text != f.String() {
		v.find(FindingMeta, metaFrontier, "It is not that of the events.")
	}
	switch n := v.out.Checked; {
	case v.options.PublicKey == nil:
	case n.SignedCheckpoints == 0:
		v.find(FindingUnsigned, "checkpoints", "No checkpoint is signed by the given key.")
	case n.SignedEvents < f.size:
		v.find(FindingUnsigned, fmt.Sprintf("event %d", n.SignedEvents+1),
			"From here on no checkpoint is signed by the given key: whoever can write the file could have written these events.")
	}
	if v.options.Checkpoint != nil && (v.older.size > f.size || v.older.size < 0) {
		v.find(FindingInconsistent, "older checkpoint", "It covers %d events; the log has %d.", v.older.size, f.size)
	}
	if v.olderNote != "" && v.options.PublicKey != nil {
		if _, err := openNote(v.olderNote, v.options.PublicKey); err != nil {
			v.find(FindingSignature, "older checkpoint", "%v", err)
		}
	}
	return nil
}
