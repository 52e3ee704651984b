package store

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Ids of the sample rows that [fixture] does not name.
const (
	FixtureCancelledRun = "run/demo:0003"
	FixtureForeignRow   = "foreign/batch-0001"
)

// foreignKind is the kind of a row of another product that shares the table.
const foreignKind = "sample-batch-job"

// WriteFixtures makes the sample store at path: the same bytes each time, id and
// cursor key included. A file that is there and not empty is refused.
func WriteFixtures(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return brokenFault(nil, "The target exists and is not empty.")
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return brokenFault(err, "The target cannot be looked at.")
	}
	at, err := spine.ParseTime(fixture.CreatedAt)
	if err != nil {
		return err
	}
	born := identity{storeID: "019b7d0e-8088-7000-8000-000000000001", now: at}
	for i := range born.cursorKey {
		born.cursorKey[i] = byte(i)
	}
	w, err := OpenWriter(ctx, path, WriterOptions{Now: func() time.Time { return at }, born: &born})
	if err != nil {
		return err
	}
	return errors.Join(Seed(ctx, w), w.Close())
}

// Seed fills a store with the sample rows: the fixture run, a cancelled run, the
// fixture report imported, a row of another product, four connectors. On a store
// that holds them it changes nothing.
func Seed(ctx context.Context, w *Writer) error {
	created, err := spine.ParseTime(fixture.CreatedAt)
	if err != nil {
		return err
	}
	if _, err := w.CreateRun(ctx, CreateRun{Projection: fixture.Run(), IdempotencyKey: "fixture-0001", At: created}); err != nil {
		return err
	}
	cancelled := fixture.Run()
	cancelled.RunID = FixtureCancelledRun
	cancelled.RequestDigest = fixture.Digest("9")
	if _, err := w.CreateRun(ctx, CreateRun{Projection: cancelled, IdempotencyKey: "fixture-0003", At: created.Add(2 * time.Minute)}); err != nil {
		return err
	}
	if _, err := w.CancelRun(ctx, FixtureCancelledRun, created.Add(3*time.Minute)); err != nil {
		return err
	}
	_, err = w.ImportEvidence(ctx, ImportEvidence{Report: fixture.Report().Value(), ProjectID: fixture.ProjectID,
		SourceRevision: fixture.SourceRevision, IdempotencyKey: "fixture-0002", At: created.Add(4 * time.Minute)})
	if err != nil {
		return err
	}
	if err := w.seedForeign(ctx, created.Add(5*time.Minute)); err != nil {
		return err
	}
	return w.ImportConnections(ctx, fixture.Connections(), created.Add(6*time.Minute))
}

// seedForeign puts a row into runs as another product would.
func (w *Writer) seedForeign(ctx context.Context, at time.Time) error {
	metadata, err := canon.C1(canon.NewObject(
		canon.Member{Key: "kind", Value: foreignKind},
		canon.Member{Key: "schema_version", Value: "1.0"},
	))
	if err != nil {
		return err
	}
	stamp, err := w.stamp(at)
	if err != nil {
		return err
	}
	return w.write(ctx, func(l *log) error {
		_, err := l.exec(`INSERT INTO runs (run_id, idempotency_key, request_digest, state, metadata_json, created_at, updated_at,
			row_kind, project_id, work_unit_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', '') ON CONFLICT (run_id) DO NOTHING`,
			FixtureForeignRow, foreignKind+":0001", canon.DigestBytes(metadata), "queued", string(metadata), stamp, stamp, foreignKind)
		return err
	})
}
