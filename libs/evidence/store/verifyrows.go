package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/mlp-platform/platform/libs/evidence/spine"
)

func (v *verifier) runs(t tx) error {
	return t.each(runSelect+" ORDER BY r.run_id", nil, func(rows *sql.Rows) error {
		var row runRow
		if err := row.scan(rows); err != nil {
			return err
		}
		if row.foreign() {
			v.out.Checked.ForeignRows++
			return nil
		}
		v.out.Checked.Runs++
		v.row()
		return v.fault(row.id, v.run(t, &row))
	})
}

func (v *verifier) run(t tx, row *runRow) error {
	rec, err := row.record()
	if err != nil {
		return err
	}
	if rec.projection.EvidenceReportDigest != nil {
		v.out.Checked.EvidenceReports++
		found, err := rec.evidence(row.id)
		if err == nil {
			err = rec.checkAgainst(row.id, found)
		}
		if err := v.fault(row.id, err); err != nil {
			return err
		}
	}
	if err := row.check(rec); err != nil {
		return err
	}
	return v.runEvents(t, row, rec)
}

// runEvents compares the events of a run, to the byte, with the one or two that its
// row implies.
func (v *verifier) runEvents(t tx, row *runRow, rec *record) error {
	var created, cancelled []eventRow
	err := t.each("SELECT "+eventColumns+" FROM events WHERE run_id = ? ORDER BY sequence LIMIT 8", []any{row.id}, func(rows *sql.Rows) error {
		var e eventRow
		if err := e.scan(rows); err != nil {
			return err
		}
		switch e.kind {
		case spine.RunCreated:
			created = append(created, e)
		case spine.RunCancelled:
			cancelled = append(cancelled, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	at, err := spine.ParseTime(row.createdAt)
	old := err == nil && len(created) == 0 && at.Before(v.since)

	first := rec.projection.Clone()
	first.State = spine.Proposed
	var reference *spine.EvidenceRef
	if rec.imported != nil {
		first.State = rec.imported.initialState
		reference = &spine.EvidenceRef{Kind: "svc-run-evidence-report", Digest: *first.EvidenceReportDigest}
	}
	switch {
	case len(created) == 0 && !old:
		v.noteEventless(row.id, "The run has no %s.", spine.RunCreated)
	case len(created) > 1:
		v.find(FindingEventMismatch, row.id, "The run has more than one %s.", spine.RunCreated)
	case len(created) == 1:
		v.compare(&created[0], spine.CreatedEvent(created[0].sequence, row.createdAt, first, row.requestDigest, reference))
	}
	isCancelled := rec.projection.State == spine.Cancelled
	switch {
	case isCancelled && len(cancelled) == 0 && !old:
		v.noteEventless(row.id, "The run is cancelled and has no %s.", spine.RunCancelled)
	case len(cancelled) > 1 || len(cancelled) == 1 && !isCancelled:
		v.find(FindingEventMismatch, row.id, "The run has a %s that its state does not bear out.", spine.RunCancelled)
	case len(cancelled) == 1:
		// An older run may have been cancelled from a state that nothing recorded.
		previous := first.State
		if old {
			previous = previousState(cancelled[0].payload)
		}
		v.compare(&cancelled[0], spine.CancelledEvent(cancelled[0].sequence, row.updatedAt, rec.projection, previous))
	case !isCancelled && !old && rec.projection.State != first.State:
		v.noteEventless(row.id, "The run went from %s to %s without an event.", first.State, rec.projection.State)
	case !isCancelled && !old && row.updatedAt != row.createdAt:
		v.find(FindingRun, row.id, "updated_at changed without an event.")
	}
	return nil
}

// noteEventless keeps a run without its event until it is known which events are lost.
func (v *verifier) noteEventless(id, format string, args ...any) {
	v.withoutEvent = append(v.withoutEvent, Finding{FindingEventMissing, id, fmt.Sprintf(format, args...)})
}

func (v *verifier) compare(stored *eventRow, want spine.Event) {
	if v.badEvents[stored.sequence] {
		return
	}
	row, err := rowOf(want)
	if err != nil || string(row.envelope()) != string(stored.envelope()) {
		v.find(FindingEventMismatch, fmt.Sprintf("event %d", stored.sequence), "It does not match the %s of the run %s.", stored.kind, want.RunID)
	}
}

// keys looks for keys that lead nowhere: those of runs are checked with the run.
func (v *verifier) keys(t tx) error {
	if err := t.row("SELECT count(*) FROM idempotency").Scan(&v.out.Checked.IdempotencyKeys); err != nil {
		return err
	}
	return t.each(`SELECT i.run_id, r.run_id IS NULL, coalesce(o.run_id, '') FROM idempotency i LEFT JOIN runs r ON r.run_id = i.run_id
		LEFT JOIN runs o ON o.idempotency_key = i.idempotency_key
		WHERE r.run_id IS NULL OR r.idempotency_key <> i.idempotency_key`, nil, func(rows *sql.Rows) error {
		var id, owner string
		var gone bool
		err := rows.Scan(&id, &gone, &owner)
		if told := gone && v.found(FindingForeignKey, "runs") || v.found(FindingRun, id) || v.found(FindingRun, owner); !told {
			v.find(FindingIdempotency, id, "An idempotency key leads to a run that does not have it.")
		}
		return err
	})
}

func (v *verifier) connections(t tx) error {
	return t.each("SELECT connection_id, metadata_json, updated_at FROM connections ORDER BY connection_id", nil, func(rows *sql.Rows) error {
		var id, metadata, at string
		if err := rows.Scan(&id, &metadata, &at); err != nil {
			return err
		}
		v.out.Checked.Connections++
		_, err := decodeConnection(id, metadata)
		if err == nil && !spine.IsTimestamp(at) {
			err = errors.New("updated_at is no UTC time")
		}
		if err != nil {
			v.find(FindingConnection, id, "%v", err)
		}
		return nil
	})
}
