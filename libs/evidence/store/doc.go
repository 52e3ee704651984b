// Package store keeps runs, their evidence, connectors and the event log in one
// SQLite file.
//
// A [Reader] reads and cannot write; a [Writer] writes, each act with its event and
// a checkpoint over the log in one transaction, or not at all. [Verify] holds a whole
// store against itself, a public key and an older checkpoint.
//
// # The file
//
// Rollback journal, synchronous=FULL, foreign keys on. PRAGMA user_version:
//
//	1  connections, runs, idempotency
//	2  events, which triggers keep append-only
//	3  columns and indexes to list by, store_meta, checkpoints
//
// Writers migrate, readers refuse any version but 3, and both refuse newer ones. The
// first act that is not refused makes the file.
//
// A writer killed in mid-transaction leaves its journal beside the file. Readers then
// read a private copy that SQLite recovers, and change neither file; the next writer
// recovers the store itself. The same applies to a store that another program put into
// write-ahead mode, in which readers, too, would write beside the file.
//
// # What binds what
//
// A run's create_request_digest covers its projection as first stored, the columns
// repeat the projection, the idempotency row repeats the columns, and the run's events
// follow from them to the byte. Events are the leaves of a tree; each writing act adds
// a checkpoint with the tree's root, signed if there is a key. A changed row therefore
// fails the check of its row, and a row changed along with all that repeats it fails
// against the log, in every read as in verification: a run's state, project and times
// must follow from its events, and an event's columns from its run. A changed log
// fails against its checkpoints. Only a signed checkpoint, or one kept elsewhere,
// shows that the whole file was rebuilt.
package store
