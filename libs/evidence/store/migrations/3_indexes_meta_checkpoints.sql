-- What lists filter by becomes a column. The migration fills the three from
-- metadata_json in Go, which reads it by the same strict parser as every read.
ALTER TABLE runs ADD COLUMN row_kind TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN project_id TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN work_unit_id TEXT NOT NULL DEFAULT '';

CREATE INDEX runs_by_row_kind ON runs (row_kind, run_id);
CREATE INDEX runs_by_project ON runs (project_id, run_id);
CREATE INDEX runs_by_work_unit ON runs (work_unit_id, run_id);
CREATE INDEX runs_by_state ON runs (state, run_id);

-- An index ends with the row's sequence by itself, so each serves a keyset page.
CREATE INDEX events_by_run ON events (run_id);
CREATE INDEX events_by_project ON events (project_id);
CREATE INDEX events_by_work_unit ON events (work_unit_id);
CREATE INDEX events_by_type ON events (event_type);

CREATE TABLE store_meta (
	key   TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL
);

CREATE TABLE checkpoints (
	tree_size  INTEGER NOT NULL PRIMARY KEY,
	root_hash  TEXT NOT NULL,
	note       TEXT,
	created_at TEXT NOT NULL
);

CREATE TRIGGER checkpoints_no_update BEFORE UPDATE ON checkpoints
BEGIN
	SELECT RAISE(ABORT, 'checkpoints are append-only');
END;

CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints
BEGIN
	SELECT RAISE(ABORT, 'checkpoints are append-only');
END;
