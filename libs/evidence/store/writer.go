package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// writeBegin takes the write lock at once: a transaction that reads first and
// writes later could lose what it read to another writer.
const writeBegin = "BEGIN IMMEDIATE"

// WriterOptions are the choices of a writer; the zero value is fit for commands.
type WriterOptions struct {
	Wait   time.Duration    // for locks; 0: CommandWait
	Now    func() time.Time // for acts that name no time; nil: the clock
	Signer note.Signer      // signs the checkpoints; nil: they stay unsigned

	born *identity // of a new store; nil: a new one
}

// Writer changes a store. Each method is one transaction: the rows, their event
// and the checkpoint over it, or nothing. It has no reads of its own.
type Writer struct {
	db     *sql.DB
	path   string
	now    func() time.Time
	signer note.Signer
}

// OpenWriter opens the store at path for writing. It makes the folder and the
// file if they do not exist, and brings an older version to this one.
func OpenWriter(ctx context.Context, path string, o WriterOptions) (*Writer, error) {
	w, _, err := openWriter(ctx, path, o, true)
	return w, err
}

// Migrate brings an existing store to this build's version and returns the one
// that it had.
func Migrate(ctx context.Context, path string, o WriterOptions) (from int, err error) {
	w, from, err := openWriter(ctx, path, o, false)
	if err != nil {
		return 0, err
	}
	return from, w.Close()
}

func openWriter(ctx context.Context, path string, o WriterOptions, create bool) (*Writer, int, error) {
	if o.Wait == 0 {
		o.Wait = CommandWait
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Now().Truncate(time.Microsecond) }
	}
	if create {
		if err := makeFile(path); err != nil {
			return nil, 0, storeFault(ctx, err)
		}
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = broken(nil, "The store path is not a regular file.")
	}
	if err != nil {
		return nil, 0, storeFault(ctx, err)
	}
	db, err := openDB(path, modeWrite, o.Wait)
	if err != nil {
		return nil, 0, storeFault(ctx, err)
	}
	// One connection: SQLite has one writer anyway.
	db.SetMaxOpenConns(1)
	w := &Writer{db: db, path: path, now: o.Now, signer: o.Signer}
	born := o.born
	if born == nil {
		made, err := newIdentity(o.Now(), o.Signer)
		if err != nil {
			_ = db.Close()
			return nil, 0, err
		}
		born = &made
	}
	from, err := migrate(ctx, db, *born)
	if err == nil {
		err = w.rollbackJournal(ctx)
	}
	if err != nil {
		_ = db.Close()
		return nil, 0, storeFault(ctx, err)
	}
	return w, from, nil
}

// makeFile makes an empty file, readable by its owner alone since it will hold
// the cursor key. It is made under another name and linked: opening and closing
// the file itself would drop the locks that this process holds on it.
func makeFile(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, ".store-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// rollbackJournal brings a file that another program put into write-ahead mode
// back to the rollback journal, which a reader without write access can read.
func (w *Writer) rollbackJournal(ctx context.Context) error {
	var mode string
	if err := w.db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil || mode == "delete" {
		return err
	}
	if err := w.db.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode); err != nil {
		return err
	}
	if mode != "delete" {
		return fmt.Errorf("the journal mode stays %s", mode)
	}
	return nil
}

// Close ends the connection. It is safe to call twice.
func (w *Writer) Close() error { return w.db.Close() }

// write runs fn in a write transaction and seals the events that it appended.
func (w *Writer) write(ctx context.Context, fn func(*log) error) error {
	err := inTx(ctx, w.db, writeBegin, func(t tx) error {
		if err := t.checkVersion(); err != nil {
			return err
		}
		l, err := t.openLog(w.signer)
		if err != nil {
			return err
		}
		if err := fn(l); err != nil {
			return err
		}
		return l.checkpoint()
	})
	return storeFault(ctx, err)
}

// stamp is the time of an act: the caller's, or now.
func (w *Writer) stamp(at time.Time) (string, error) {
	if at.IsZero() {
		at = w.now()
	}
	return formatStamp(at)
}
