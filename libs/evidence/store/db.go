package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// Lock waits: a command is worth waiting for, an answer over HTTP is not.
const (
	CommandWait = 30 * time.Second
	ReadWait    = 2 * time.Second
)

// Ways to open the file.
const (
	modeReadOnly = "ro"
	modeWrite    = "rw"
)

// openDB makes a pool on path. It touches the file only with the first statement.
func openDB(path, mode string, wait time.Duration) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	query := url.Values{"mode": {mode}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()),
		"foreign_keys(1)",
		"synchronous(FULL)",
		// A file made elsewhere may hide calls in views and triggers.
		"trusted_schema(0)",
		// Damage shows as an error instead of as a wrong row.
		"cell_size_check(1)",
	}}
	if mode == modeReadOnly {
		query.Add("_pragma", "query_only(1)")
	}
	// The path is escaped: a '?' or '%' in a file's name is no parameter.
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: query.Encode()}
	return sql.Open("sqlite", name.String())
}

// tx is a transaction on one connection. The statements are sent by hand, since
// database/sql forgets a transaction whose COMMIT failed on a lock, while SQLite
// keeps it open.
type tx struct {
	ctx  context.Context
	conn *sql.Conn
}

func (t tx) exec(query string, args ...any) (sql.Result, error) {
	return t.conn.ExecContext(t.ctx, query, args...)
}

func (t tx) row(query string, args ...any) *sql.Row {
	return t.conn.QueryRowContext(t.ctx, query, args...)
}

// each calls fn for every row of query.
func (t tx) each(query string, args []any, fn func(*sql.Rows) error) error {
	rows, err := t.conn.QueryContext(t.ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// inTx runs fn between begin and COMMIT on a connection of db, or rolls back.
func inTx(ctx context.Context, db *sql.DB, begin string, fn func(tx) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return err
	}
	err = fn(tx{ctx, conn})
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// Also when the caller went away: the lock must not outlive the call.
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReadWait)
		defer cancel()
		_, _ = conn.ExecContext(back, "ROLLBACK")
	}
	return err
}

// needsRollback tells that a writer died in mid-transaction: its journal lies
// beside the file, and a read-only connection may not play it back.
func needsRollback(err error) bool {
	code := extended(err)
	return code == sqlite3.SQLITE_READONLY_ROLLBACK || code == sqlite3.SQLITE_READONLY_RECOVERY
}

// playBack lets SQLite undo what a dead writer left unfinished. Nothing else can
// change: the connection refuses statements that write.
func playBack(ctx context.Context, path string, wait time.Duration) error {
	db, err := openDB(path, modeWrite, wait)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only = 1"); err != nil {
		return err
	}
	var n int
	return conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n)
}
