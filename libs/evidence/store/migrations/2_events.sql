-- One row per act, for ever: AUTOINCREMENT remembers the newest sequence even
-- if its row was taken away, and the triggers refuse every change.
CREATE TABLE events (
	sequence                INTEGER PRIMARY KEY AUTOINCREMENT,
	event_id                TEXT NOT NULL UNIQUE,
	occurred_at             TEXT NOT NULL,
	event_type              TEXT NOT NULL,
	principal_json          TEXT NOT NULL,
	authority_class         TEXT NOT NULL,
	project_id              TEXT NOT NULL,
	work_unit_id            TEXT,
	run_id                  TEXT NOT NULL REFERENCES runs (run_id),
	attempt_id              TEXT,
	source_revision         TEXT,
	evidence_reference_json TEXT,
	payload_json            TEXT NOT NULL,
	payload_digest          TEXT NOT NULL
);

CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN
	SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN
	SELECT RAISE(ABORT, 'events are append-only');
END;
