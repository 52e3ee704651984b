package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Version is the schema that this build writes and the only one it reads.
const Version = 3

//go:embed migrations/*.sql
var migrations embed.FS

var steps = [Version]struct {
	file string
	fill func(tx, identity) error // what SQL alone cannot do; nil if nothing
}{
	{"migrations/1_base.sql", nil},
	{"migrations/2_events.sql", nil},
	{"migrations/3_indexes_meta_checkpoints.sql", fillVersion3},
}

// Keys of store_meta. The tree's frontier is only a cache: it is checked against the
// newest checkpoint before use, and rebuilt from the events if it fails.
const (
	metaStoreID     = "store_id"
	metaCursorKey   = "cursor_key"
	metaEventsSince = "events_since"
	metaFrontier    = "tree_frontier"
	metaOlderRuns   = "older_runs" // absent, or the first signature's note over the runs without events
)

var metaKeys = []string{metaStoreID, metaCursorKey, metaEventsSince, metaFrontier, metaOlderRuns}

// sinceEver is events_since of a store without a run older than its events.
const sinceEver = "0001-01-01T00:00:00Z"

// identity is given to a store when it is created.
type identity struct {
	storeID   string
	cursorKey [32]byte
	now       time.Time
	signer    note.Signer // of the first checkpoint; nil: unsigned
}

func newIdentity(now time.Time, signer note.Signer) (identity, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return identity{}, err
	}
	made := identity{storeID: id.String(), now: now, signer: signer}
	_, err = rand.Read(made.cursorKey[:])
	return made, err
}

func (t tx) version() (int, error) {
	var v int
	err := t.row("PRAGMA user_version").Scan(&v)
	return v, err
}

func (t tx) checkVersion() error {
	v, err := t.version()
	switch {
	case err != nil:
		return err
	case v > Version:
		return newerVersionFault(v)
	case v < Version:
		return brokenFault(nil, "The store has version %d, this build reads %d: run `svc store migrate` on it first.", v, Version)
	}
	return nil
}

func newerVersionFault(v int) error {
	return brokenFault(nil, "The store has version %d, newer than this build's %d: use a newer build.", v, Version)
}

// migrateSchema brings the file to [Version] in one transaction and returns the version
// that it had. A file of this version is not written to.
func migrateSchema(ctx context.Context, db *sql.DB, born identity) (from int, err error) {
	err = inTx(ctx, db, "BEGIN", func(t tx) error {
		from, err = t.version()
		return err
	})
	if err != nil || from == Version {
		return from, err
	}
	err = inTx(ctx, db, writeBegin, func(t tx) error {
		// Again, under the lock: another process may have been faster.
		if from, err = t.version(); err != nil {
			return err
		}
		if from > Version {
			return newerVersionFault(from)
		}
		if from == 0 {
			var tables int
			if err := t.row("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
				return err
			}
			if tables > 0 {
				return brokenFault(nil, "The file is an SQLite database, but no store of this product.")
			}
		}
		for v := from; v < Version; v++ {
			text, err := migrations.ReadFile(steps[v].file)
			if err != nil {
				return err
			}
			if _, err := t.exec(string(text)); err != nil {
				return fmt.Errorf("migrate to version %d: %w", v+1, err)
			}
			if steps[v].fill != nil {
				if err := steps[v].fill(t, born); err != nil {
					return fmt.Errorf("migrate to version %d: %w", v+1, err)
				}
			}
		}
		_, err := t.exec(fmt.Sprintf("PRAGMA user_version = %d", Version))
		return err
	})
	return from, err
}

// fillVersion3 fills the new columns of runs, names the store, and puts the first
// checkpoint over the events that are there.
func fillVersion3(t tx, born identity) error {
	type labels struct{ id, kind, project, unit string }
	var all []labels
	err := t.each("SELECT run_id, metadata_json FROM runs", nil, func(rows *sql.Rows) error {
		var l labels
		var metadata string
		if err := rows.Scan(&l.id, &metadata); err != nil {
			return err
		}
		l.kind, l.project, l.unit = labelsOf(metadata)
		all = append(all, l)
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range all {
		_, err := t.exec("UPDATE runs SET row_kind = ?, project_id = ?, work_unit_id = ? WHERE run_id = ?",
			l.kind, l.project, l.unit, l.id)
		if err != nil {
			return err
		}
	}
	since, err := t.eventsSince()
	if err != nil {
		return err
	}
	for _, kv := range [][2]string{
		{metaStoreID, born.storeID}, {metaCursorKey, hex.EncodeToString(born.cursorKey[:])}, {metaEventsSince, since},
	} {
		if err := t.setMeta(kv[0], kv[1]); err != nil {
			return err
		}
	}
	return t.firstCheckpoint(born)
}

// eventsSince is just past the newest run that has no run.created: such a run was
// made before the store had events, and every later one must have one.
func (t tx) eventsSince() (string, error) {
	newest, found := time.Time{}, false
	err := t.each(`SELECT created_at FROM runs WHERE `+ours+` AND NOT EXISTS (
		SELECT 1 FROM events WHERE events.run_id = runs.run_id AND events.event_type = 'run.created')`, nil,
		func(rows *sql.Rows) error {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			// A time that cannot be read is for verification to report.
			if at, err := spine.ParseTime(text); err == nil && (!found || at.After(newest)) {
				newest, found = at, true
			}
			return nil
		})
	if err != nil || !found {
		return sinceEver, err
	}
	return spine.FormatTime(newest.Add(time.Nanosecond)), nil
}

func (t tx) setMeta(key, value string) error {
	_, err := t.exec(`INSERT INTO store_meta (key, value) VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}

// meta returns the value of key, or "" if the store has none.
func (t tx) meta(key string) (string, error) {
	var value string
	err := t.row("SELECT value FROM store_meta WHERE key = ?", key).Scan(&value)
	if err == sql.ErrNoRows {
		return "", nil
	}
	return value, err
}
