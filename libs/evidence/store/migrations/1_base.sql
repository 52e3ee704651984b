-- Connectors, runs and the keys that make a repeated create a replay.
CREATE TABLE connections (
	connection_id TEXT NOT NULL PRIMARY KEY,
	metadata_json TEXT NOT NULL,
	updated_at    TEXT NOT NULL
);

CREATE TABLE runs (
	run_id          TEXT NOT NULL PRIMARY KEY,
	idempotency_key TEXT NOT NULL UNIQUE,
	request_digest  TEXT NOT NULL,
	state           TEXT NOT NULL,
	metadata_json   TEXT NOT NULL,
	created_at      TEXT NOT NULL,
	updated_at      TEXT NOT NULL
);

CREATE TABLE idempotency (
	idempotency_key TEXT NOT NULL PRIMARY KEY,
	request_digest  TEXT NOT NULL,
	run_id          TEXT NOT NULL UNIQUE REFERENCES runs (run_id),
	created_at      TEXT NOT NULL
);
