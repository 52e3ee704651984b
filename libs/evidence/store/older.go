package store

import (
	"database/sql"

	"golang.org/x/mod/sumdb/note"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// Runs that a store had before it had events are in no tree, and no checkpoint
// covers them. So the signer of a store's first checkpoint signs them too, once: a
// run that is added later without an event is not among them.

// olderOrigin returns the origin line of the note over a store's older runs.
func olderOrigin(storeID string) string { return originPrefix + storeID + "/" + metaOlderRuns }

// olderRuns hashes the runs without a run.created as they were before any event,
// in the order of their ids.
func (t tx) olderRuns() (f frontier, err error) {
	err = t.each(`SELECT r.run_id, r.created_at, r.request_digest, r.state, (SELECT e.payload_json FROM events e
			WHERE e.run_id = r.run_id AND e.event_type = 'run.cancelled' ORDER BY e.sequence LIMIT 1)
		FROM runs r WHERE r.`+ours+` AND NOT EXISTS (
			SELECT 1 FROM events e WHERE e.run_id = r.run_id AND e.event_type = 'run.created')
		ORDER BY r.run_id`, nil, func(rows *sql.Rows) error {
		var id, createdAt, digest, state string
		var cancelled sql.NullString
		if err := rows.Scan(&id, &createdAt, &digest, &state, &cancelled); err != nil {
			return err
		}
		if cancelled.Valid {
			state = string(previousState(cancelled.String))
		}
		leaf, err := canon.C1(canon.NewObject(
			canon.Member{Key: "run_id", Value: id}, canon.Member{Key: "created_at", Value: createdAt},
			canon.Member{Key: "request_digest", Value: digest}, canon.Member{Key: "state", Value: state}))
		if err != nil { // text that is no UTF-8, which this build never writes
			return corruptFault(id, "a column is no text")
		}
		f.add(tree.Leaf(leaf))
		return nil
	})
	return f, err
}

// previousState is the state that a run.cancelled names as the one before.
func previousState(payload string) spine.State {
	o, err := canonicalObject(payload)
	if err != nil {
		return ""
	}
	state, _ := o.Get("previous_state")
	text, _ := state.(string)
	return spine.State(text)
}

// sealOlder signs the older runs, unless a checkpoint was signed before: runs that
// have appeared since then are not vouched for.
func (t tx) sealOlder(storeID string, signer note.Signer) error {
	since, err := t.meta(metaEventsSince)
	if err != nil || since == sinceEver {
		return err
	}
	var late bool
	err = t.row("SELECT EXISTS (SELECT 1 FROM store_meta WHERE key = ?) OR EXISTS (SELECT 1 FROM checkpoints WHERE note IS NOT NULL)",
		metaOlderRuns).Scan(&late)
	if err != nil || late {
		return err
	}
	f, err := t.olderRuns()
	if err != nil {
		return err
	}
	text, err := statement{olderOrigin(storeID), f.size, f.root()}.sign(signer)
	if err != nil {
		return err
	}
	return t.setMeta(metaOlderRuns, text)
}

// olderRuns compares the runs without events with the signed note over them.
func (v *verifier) olderRuns(t tx) error {
	f, err := t.olderRuns()
	if err != nil {
		return v.fault("runs", err)
	}
	v.out.Checked.RunsWithoutEvents = f.size
	if v.lostEvents > 0 {
		return nil // so that more runs are without than there were
	}
	text, err := t.meta(metaOlderRuns)
	if err != nil {
		return err
	}
	if text == "" {
		if v.options.PublicKey != nil && f.size > 0 {
			v.find(FindingOlder, metaOlderRuns, "The key signed none of the %d runs that have no %s.", f.size, spine.RunCreated)
		}
		return nil
	}
	stated, err := openNote(text, v.options.PublicKey)
	switch want := (statement{olderOrigin(v.storeID), f.size, f.root()}); {
	case err != nil:
		v.find(FindingSignature, metaOlderRuns, "%v", err)
	case stated != want:
		v.find(FindingOlder, metaOlderRuns, "The %d runs that have no %s are not the %d that were signed.", f.size, spine.RunCreated, stated.size)
	}
	return nil
}
