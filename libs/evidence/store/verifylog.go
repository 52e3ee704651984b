package store

import (
	"database/sql"
	"errors"
	"fmt"

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
	last := int64(0)
	err = t.eachEvent(-1<<62, -1, func(e *eventRow) error {
		v.out.Checked.Events++
		v.row()
		switch {
		case e.sequence <= last:
			v.findIn(logPart, FindingSequence, fmt.Sprintf("event %d", e.sequence), "Sequences begin with 1 and grow.")
		case e.sequence > last+1:
			v.lostEvents += e.sequence - last - 1
			v.findIn(logPart, FindingSequence, fmt.Sprintf("event %d", last+1), "It is missing: the next event is %d.", e.sequence)
		}
		last = max(last, e.sequence)
		v.event(e)
		f.add(e.leaf())
		return at(e.occurredAt)
	})
	if err != nil {
		return err
	}
	return v.end(t, &f, last, sizes)
}

func (v *verifier) event(e *eventRow) {
	subject := fmt.Sprintf("event %d", e.sequence)
	value, err := canon.Parse(e.envelope())
	if err == nil {
		_, err = spine.ReadEvent(value)
	}
	if err == nil {
		err = e.check()
	}
	var f *spine.Fault
	switch {
	case canon.DigestBytes([]byte(e.payload)) != e.payloadDigest: // its other faults follow from this one
		v.find(FindingPayload, subject, "%v", errPayloadDigest)
	case err != nil && !(errors.As(err, &f) && f.Code == spine.PayloadDigestMismatch):
		v.find(FindingEvent, subject, "%v", err)
	default:
		return
	}
	v.badEvents[e.sequence] = true
}

// end makes the checks that need the log's size. newest is the highest sequence.
func (v *verifier) end(t tx, f *frontier, newest int64, sizes []int64) error {
	given, err := t.lastSequence()
	if err != nil {
		return err
	}
	if given > newest {
		v.lostEvents += given - newest
		v.findIn(logPart, FindingSequence, fmt.Sprintf("event %d", newest+1), "It is missing: sequences were given up to %d.", given)
	}
	if v.lostEvents == 0 {
		for _, size := range sizes {
			if size < 0 || size > f.size {
				v.findIn("end", FindingCheckpoint, fmt.Sprintf("checkpoint %d", size), "The log has only %d events.", f.size)
			}
		}
		v.missingCheckpoints(f.size, sizes)
		text, err := t.meta(metaFrontier)
		if err != nil {
			return err
		}
		if text != f.String() && !v.found(FindingTree, logPart) {
			v.find(FindingMeta, metaFrontier, "It is not that of the events.")
		}
	}
	switch n := v.out.Checked; {
	case v.options.PublicKey == nil:
	case v.lostEvents > 0 || v.found(FindingTree, logPart) || v.found(FindingMissing, logPart) || v.found(FindingSignature, logPart),
		v.found(FindingCheckpoint, notesPart):
		// The signed events are not those that are there; that is reported.
	case n.SignedCheckpoints == 0:
		v.find(FindingUnsigned, "checkpoints", "No checkpoint is signed by the given key.")
	case n.SignedEvents < f.size:
		v.find(FindingUnsigned, fmt.Sprintf("event %d", n.SignedEvents+1),
			"From here on no checkpoint is signed by the given key: anyone with write access to the file could have written these events.")
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

// missingCheckpoints finds the sizes of the log, from its first checkpoint on, that no
// checkpoint covers: each act leaves one event and the checkpoint over it.
func (v *verifier) missingCheckpoints(size int64, sizes []int64) {
	next := size // a log without a checkpoint misses at least the one over all of it
	if len(sizes) > 0 {
		next = min(sizes[0]+1, size)
	}
	missing := func(below int64) {
		if next < below {
			v.findIn(logPart, FindingMissing, fmt.Sprintf("checkpoint %d", next), "There is no checkpoint of this size; the next one covers more events, or it is the end of the log.")
			next = below
		}
	}
	for _, s := range sizes {
		if s > size {
			break
		}
		missing(s)
		next = max(next, s+1)
	}
	missing(size + 1)
}

// eventless reports the runs without the event of their state, unless events are lost:
// then the events of these runs are among the lost ones. The same applies to
// events_since, which takes such a run for one older than the events.
func (v *verifier) eventless(tx) error {
	if int64(len(v.withoutEvent)) > v.lostEvents {
		for _, f := range v.withoutEvent {
			v.find(f.Code, f.Subject, "%s", f.Detail)
		}
	} else if v.sinceWrong && v.lostEvents == 0 {
		v.find(FindingMeta, metaEventsSince, "It is not just past the newest run without a %s.", spine.RunCreated)
	}
	return nil
}
