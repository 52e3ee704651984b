package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// writeBegin takes the write lock at once: a transaction that reads first and writes
// later could find its reads outdated by another writer.
const writeBegin = "BEGIN IMMEDIATE"

// WriterOptions are the choices of a writer; the zero value is fit for commands.
type WriterOptions struct {
	Wait   time.Duration    // for locks; 0: CommandWait
	Now    func() time.Time // for acts that name no time; nil: the clock
	Signer note.Signer      // signs the checkpoints; nil: they stay unsigned

	born *identity // of a new store; nil: a new one
}

// Writer changes a store. Each method is one transaction: the rows, their event and the
// checkpoint over it, or nothing. It has no read methods.
type Writer struct {
	path   string
	wait   time.Duration
	now    func() time.Time
	signer note.Signer
	born   identity

	mu sync.Mutex // guards what follows
	db *sql.DB    // nil until the first act if there was no file: a refused one leaves none
}

// OpenWriter opens the store at path for writing and brings an older version to this
// one. A file that does not exist is made, with its folder, by the first act that is
// not refused.
func OpenWriter(ctx context.Context, path string, o WriterOptions) (*Writer, error) {
	w, err := newWriter(path, o)
	if err != nil {
		return nil, err
	}
	if _, err := w.open(ctx); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, storeFault(ctx, err)
	}
	return w, nil
}

// Create makes an empty store at path if there is no file, and migrates one of an older
// version to this build's.
func Create(ctx context.Context, path string, o WriterOptions) error {
	w, err := OpenWriter(ctx, path, o)
	if err != nil {
		return err
	}
	if w.db == nil {
		err = storeFault(ctx, w.writeFirst(ctx, func(*log) error { return nil }))
	}
	return errors.Join(err, w.Close())
}

// Migrate brings an existing store to this build's version and returns the one
// that it had.
func Migrate(ctx context.Context, path string, o WriterOptions) (from int, err error) {
	w, err := newWriter(path, o)
	if err != nil {
		return 0, err
	}
	if from, err = w.open(ctx); err != nil {
		return 0, storeFault(ctx, err)
	}
	return from, w.Close()
}

func newWriter(path string, o WriterOptions) (*Writer, error) {
	if o.Wait == 0 {
		o.Wait = CommandWait
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Now().Truncate(time.Microsecond) }
	}
	w := &Writer{path: path, wait: o.Wait, now: o.Now, signer: o.Signer}
	if o.born != nil {
		w.born = *o.born
		return w, nil
	}
	var err error
	w.born, err = newIdentity(o.Now(), o.Signer)
	return w, err
}

// open opens the file that is at the path and returns the version that it had.
func (w *Writer) open(ctx context.Context) (from int, err error) {
	info, err := os.Stat(w.path)
	if err == nil && !info.Mode().IsRegular() {
		err = brokenFault(nil, "The store path is not a regular file.")
	}
	if err != nil {
		return 0, err
	}
	w.db, from, err = w.openMigrated(ctx, w.path)
	return from, err
}

// openMigrated opens a file and brings it to this build's version.
func (w *Writer) openMigrated(ctx context.Context, path string) (db *sql.DB, from int, err error) {
	if db, err = openDB(path, modeWrite, w.wait); err != nil {
		return nil, 0, err
	}
	// One connection: SQLite has one writer anyway.
	db.SetMaxOpenConns(1)
	if from, err = migrateSchema(ctx, db, w.born); err == nil {
		err = rollbackJournal(ctx, db)
	}
	if err != nil {
		return nil, 0, errors.Join(err, db.Close())
	}
	return db, from, nil
}

// writeFirst creates the store with its first act: under a temporary path, from which it
// is moved only once the act is done. So a refused act leaves nothing, and no reader
// meets a store without its first act.
func (w *Writer) writeFirst(ctx context.Context, fn func(*log) error) (err error) {
	made, err := makeFolders(filepath.Dir(w.path))
	defer func() {
		if err != nil {
			for _, folder := range made { // the innermost first; one that is in use stays
				_ = os.Remove(folder)
			}
		}
	}()
	if err != nil {
		return err
	}
	// Readable by its owner alone, since it will hold the cursor key.
	part, err := os.CreateTemp(filepath.Dir(w.path), ".store-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }()
	if err := part.Close(); err != nil {
		return err
	}
	db, _, err := w.openMigrated(ctx, part.Name())
	if err != nil {
		return err
	}
	err = w.writeTo(ctx, db, fn)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Link(part.Name(), w.path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	} else if err == nil {
		if err := syncFolder(filepath.Dir(w.path)); err != nil { // the name must survive a power loss, as the act does
			return err
		}
		_, err := w.open(ctx)
		return err
	}
	// Another writer was faster: the act goes into its store.
	if _, err := w.open(ctx); err != nil {
		return err
	}
	return w.writeTo(ctx, w.db, fn)
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there; NTFS journals its names
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// makeFolders makes a folder and those around it and returns the new ones, the innermost
// first.
func makeFolders(path string) (made []string, err error) {
	for folder := filepath.Clean(path); ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(folder); err == nil || !errors.Is(err, os.ErrNotExist) || folder == filepath.Dir(folder) {
			break
		}
		made = append(made, folder)
	}
	return made, os.MkdirAll(path, 0o700)
}

// rollbackJournal brings a file that another program put into write-ahead mode
// back to the rollback journal, which a reader without write access can read.
func rollbackJournal(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil || mode == "delete" {
		return err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode); err != nil {
		return err
	}
	if mode != "delete" {
		return fmt.Errorf("the journal mode stays %s", mode)
	}
	return nil
}

// Close ends the connection. It is safe to call twice.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.db == nil {
		return nil
	}
	return w.db.Close()
}

// write runs fn in a write transaction and seals the events that it appended.
func (w *Writer) write(ctx context.Context, fn func(*log) error) error {
	w.mu.Lock()
	db := w.db
	if db == nil {
		// Under the lock: acts at the same time would each make a store.
		defer w.mu.Unlock()
		return storeFault(ctx, w.writeFirst(ctx, fn))
	}
	w.mu.Unlock()
	return storeFault(ctx, w.writeTo(ctx, db, fn))
}

func (w *Writer) writeTo(ctx context.Context, db *sql.DB, fn func(*log) error) error {
	return inTx(ctx, db, writeBegin, func(t tx) error {
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
}

// stamp is the time of an act: the caller's, or now.
func (w *Writer) stamp(at time.Time) (string, error) {
	if at.IsZero() {
		at = w.now()
	}
	return formatStamp(at)
}
