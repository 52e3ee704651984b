package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// CreateRun is a request to create a proposed run.
type CreateRun struct {
	Projection     spine.Run
	IdempotencyKey string    // the caller's; trimmed, 1-256 characters
	At             time.Time // zero: now
}

// Written is the result of a write.
type Written struct {
	Run
	Created  bool // a row was made
	Replayed bool // the same request was stored before; nothing was written
	Changed  bool // an event was written
}

// CreateRun stores a proposed run with its event. The same request under the same
// key is a replay; another request under it, or a run id that is taken, is
// idempotency_conflict.
func (w *Writer) CreateRun(ctx context.Context, c CreateRun) (Written, error) {
	key, err := spine.IdempotencyKey(c.IdempotencyKey)
	if err != nil {
		return Written{}, invalidKey(err)
	}
	if err := c.Projection.Check(); err != nil {
		return Written{}, err
	}
	if c.Projection.State != spine.Proposed {
		return Written{}, newFault(CreateRequiresProposed, "A run is created in state proposed, not %s.", c.Projection.State)
	}
	if c.Projection.EvidenceReportDigest != nil {
		// There would be a digest without a report, as in a store that was tampered with.
		return Written{}, newFault(InvalidRunEvidence, "A run is created without evidence: evidence_report_digest is null until a report is imported with the run.")
	}
	digest := spine.CreateRequestDigest(c.Projection)
	return w.insert(ctx, insertRun{
		projection: c.Projection.Clone(), key: spine.CreateKeyPrefix + key, digest: digest, at: c.At,
		metadata: recordObject(spine.CreatedRow, digest, c.Projection),
	})
}

func invalidKey(err error) error {
	e := newFault(InvalidIdempotencyKey, "An idempotency key has 1 to 256 characters and no control character.")
	e.Err = err
	return e
}

// recordObject builds the members that both kinds of row have.
func recordObject(kind, digest string, projection spine.Run) *canon.Object {
	return canon.NewObject(
		canon.Member{Key: "schema_version", Value: spine.SchemaVersion},
		canon.Member{Key: "kind", Value: kind},
		canon.Member{Key: "create_request_digest", Value: digest},
		canon.Member{Key: "product_spine_request_digest", Value: projection.RequestDigest},
		canon.Member{Key: "projection", Value: projection.Value()},
	)
}

// insertRun is a run to be stored.
type insertRun struct {
	projection spine.Run
	key        string // with its prefix
	digest     string // create_request_digest
	at         time.Time
	metadata   *canon.Object
	evidence   *spine.EvidenceRef
}

func (w *Writer) insert(ctx context.Context, in insertRun) (out Written, err error) {
	at, err := w.stamp(in.at)
	if err != nil {
		return Written{}, err
	}
	metadata, err := canon.C1(in.metadata)
	if err != nil {
		return Written{}, err
	}
	kind, _ := in.metadata.Get("kind")
	p := in.projection
	err = w.write(ctx, func(l *log) error {
		out, err = l.replay(in)
		if err != nil || out.Replayed {
			return err
		}
		_, err := l.exec(`INSERT INTO runs (run_id, idempotency_key, request_digest, state, metadata_json,
			created_at, updated_at, row_kind, project_id, work_unit_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			p.RunID, in.key, in.digest, string(p.State), string(metadata), at, at, kind, p.ProjectID, p.WorkUnit.ID)
		if err != nil {
			return err
		}
		_, err = l.exec("INSERT INTO idempotency (idempotency_key, request_digest, run_id, created_at) VALUES (?, ?, ?, ?)",
			in.key, in.digest, p.RunID, at)
		if err != nil {
			return err
		}
		if _, err := l.append(spine.CreatedEvent(l.next(), at, p, in.digest, in.evidence)); err != nil {
			return err
		}
		row, err := l.runRow(p.RunID)
		if err != nil {
			return err
		}
		// What was written is read back through the checks of every reader.
		out.Run, err = row.run()
		out.Created, out.Changed = true, true
		return err
	})
	if err != nil {
		return Written{}, err
	}
	return out, nil
}

// replay finds the run that the same key created before. Without one, neither the key nor
// the run id may be in use.
func (l *log) replay(in insertRun) (Written, error) {
	var digest, id string
	err := l.row("SELECT request_digest, run_id FROM idempotency WHERE idempotency_key = ?", in.key).Scan(&digest, &id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		var taken int
		err := l.row(`SELECT (SELECT count(*) FROM runs WHERE run_id = ? OR idempotency_key = ?)
			+ (SELECT count(*) FROM idempotency WHERE run_id = ?)`, in.projection.RunID, in.key, in.projection.RunID).Scan(&taken)
		if err == nil && taken > 0 {
			err = newFault(IdempotencyConflict, "The run id %s is taken by another request.", in.projection.RunID)
		}
		return Written{}, err
	case err != nil:
		return Written{}, err
	case digest != in.digest:
		return Written{}, newFault(IdempotencyConflict, "The idempotency key was used for another request.")
	}
	row, err := l.runRow(id)
	if err != nil {
		return Written{}, err
	}
	run, err := row.run()
	return Written{Run: run, Replayed: true}, err
}

// CancelRun records that a run was cancelled. A run that is cancelled already is left as it
// is. A provider's work for the run is not stopped.
func (w *Writer) CancelRun(ctx context.Context, id string, at time.Time) (out Written, err error) {
	stamp, err := w.stamp(at)
	if err != nil {
		return Written{}, err
	}
	err = w.write(ctx, func(l *log) error {
		row, err := l.runRow(id)
		if err != nil {
			return err
		}
		run, err := row.run()
		if err != nil {
			return err
		}
		out = Written{Run: run}
		previous := run.Projection.State
		if previous == spine.Cancelled {
			return nil
		}
		next, err := run.Projection.Move(spine.Cancelled)
		if err != nil {
			e := newFault(CancelNotAllowed, "A run in state %s cannot be cancelled.", previous)
			e.ID, e.Err = id, err
			return e
		}
		rec, err := row.record()
		if err != nil {
			return err
		}
		rec.object.Set("projection", next.Value())
		metadata, err := canon.C1(rec.object)
		if err != nil {
			return err
		}
		// Conditional although the lock is held, so that exactly the row that was checked
		// changes.
		result, err := l.exec("UPDATE runs SET state = ?, metadata_json = ?, updated_at = ? WHERE run_id = ? AND state = ? AND metadata_json = ?",
			string(spine.Cancelled), string(metadata), stamp, id, string(previous), row.metadata)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return l.lostCancel(id, &out, err)
		}
		if _, err := l.append(spine.CancelledEvent(l.next(), stamp, next, previous)); err != nil {
			return err
		}
		if row, err = l.runRow(id); err != nil {
			return err
		}
		out.Run, err = row.run()
		out.Changed = true
		return err
	})
	if err != nil {
		return Written{}, err
	}
	return out, nil
}

// lostCancel looks again after an update that met another row than was read.
func (l *log) lostCancel(id string, out *Written, err error) error {
	if err != nil {
		return err
	}
	row, err := l.runRow(id)
	if err != nil {
		return err
	}
	if out.Run, err = row.run(); err != nil {
		return err
	}
	if out.Run.Projection.State != spine.Cancelled {
		e := newFault(CancelConflict, "The run changed while it was being cancelled; look again.")
		e.ID = id
		return e
	}
	return nil
}

// ImportConnections stores connectors, all or none; one that is there is replaced.
// It writes no event, so the log keeps its newest checkpoint.
func (w *Writer) ImportConnections(ctx context.Context, connections []spine.Connection, at time.Time) error {
	stamp, err := w.stamp(at)
	if err != nil {
		return err
	}
	texts := make([]string, len(connections))
	seen := map[string]bool{}
	for i, c := range connections {
		if texts[i], err = encodeConnection(c); err == nil && seen[c.ID] {
			err = errors.New("the connector occurs twice in the list")
		}
		if err != nil {
			return &Error{Code: ConnectionRecordInvalid, ID: c.ID, Reason: describeFault(err),
				Message: "A connector cannot be stored: " + describeFault(err) + "."}
		}
		seen[c.ID] = true
	}
	return w.write(ctx, func(l *log) error {
		for i, c := range connections {
			_, err := l.exec(`INSERT INTO connections (connection_id, metadata_json, updated_at) VALUES (?, ?, ?)
				ON CONFLICT (connection_id) DO UPDATE SET metadata_json = excluded.metadata_json, updated_at = excluded.updated_at`,
				c.ID, texts[i], stamp)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func formatStamp(at time.Time) (string, error) {
	if y := at.UTC().Year(); y < 1 || y > 9999 {
		return "", newFault(InvalidTimestamp, "The year %d cannot be written in four digits.", y)
	}
	return spine.FormatTime(at), nil
}
