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
	modeReadOnly  = "ro"
	modeWrite     = "rw"
	modeImmutable = "immutable" // the bytes on disk, without a lock: only to read the header
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
		// A file made elsewhere may hide calls in views and triggers.
		"trusted_schema(0)",
		// Damage shows as an error instead of as a wrong row.
		"cell_size_check(1)",
	}}
	switch mode {
	case modeReadOnly:
		query.Add("_pragma", "query_only(1)")
	case modeImmutable:
		query.Set("mode", modeReadOnly)
		query.Set("immutable", "1")
	default:
		// It reads the file, which a connection that only reads does with its first read.
		query.Add("_pragma", "synchronous(FULL)")
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
	kept statements // nil: nothing is prepared beforehand
	seen *strays    // cached findings about the file's state; nil: nothing is cached
}

func (t tx) exec(query string, args ...any) (sql.Result, error) {
	if t.kept == nil {
		return t.conn.ExecContext(t.ctx, query, args...)
	}
	stmt, err := t.kept.of(t.conn, query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.Background(), args...)
}

// scanner is a row of a query's result.
type scanner interface{ Scan(dest ...any) error }

// failed is the row of a query that failed.
type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }

// row reads one row that an index leads to. That takes microseconds, less than it
// would cost to watch the context meanwhile.
func (t tx) row(query string, args ...any) scanner {
	if t.kept == nil {
		return t.conn.QueryRowContext(t.ctx, query, args...)
	}
	stmt, err := t.kept.of(t.conn, query)
	if err != nil {
		return failed{err}
	}
	return stmt.QueryRowContext(context.Background(), args...)
}

func (t tx) rows(query string, args []any) (*sql.Rows, error) {
	if t.kept == nil {
		return t.conn.QueryContext(t.ctx, query, args...)
	}
	stmt, err := t.kept.of(t.conn, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(t.ctx, args...)
}

// each calls fn for every row of query.
func (t tx) each(query string, args []any, fn func(*sql.Rows) error) error {
	rows, err := t.rows(query, args)
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

// run runs fn between begin and COMMIT, or rolls back.
func (t tx) run(begin string, fn func() error) error {
	if _, err := t.exec(begin); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		_, err = t.exec("COMMIT")
	}
	if err != nil {
		// Also when the caller went away: the lock must not outlive the call.
		back, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), ReadWait)
		defer cancel()
		_, _ = t.conn.ExecContext(back, "ROLLBACK")
	}
	return err
}

// inTx runs fn between begin and COMMIT on a connection of db, or rolls back.
func inTx(ctx context.Context, db *sql.DB, begin string, fn func(tx) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	t := tx{ctx: ctx, conn: conn}
	return t.run(begin, func() error { return fn(t) })
}

// needsRecovery reports whether a writer died in mid-transaction: its journal lies beside
// the file, and a read-only connection may not play it back.
func needsRecovery(err error) bool {
	code := extendedCode(err)
	return code == sqlite3.SQLITE_READONLY_ROLLBACK || code == sqlite3.SQLITE_READONLY_RECOVERY
}
