package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// MaxServedImage limits the store that a server copies to read it: see [NewServerReader].
const MaxServedImage = 256 << 20

// The files that SQLite keeps beside a store: the rollback journal and, if another
// program put the store into write-ahead mode, that mode's log.
const (
	journalSuffix = "-journal"
	aheadSuffix   = "-wal"
)

// journalMagic starts every rollback journal.
var journalMagic = []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}

// image is a private copy of a store that cannot be read in place without changing it:
// a journal lies beside it that SQLite would play back, or it is in write-ahead mode,
// in which also readers write beside the file. SQLite recovers the copy instead.
type image struct {
	folder  string
	path    string
	of      [3]fs.FileInfo // the files that were copied: store, journal, log; nil if absent
	journal journalKind
}

// journalKind classifies the file at the path of the rollback journal.
type journalKind int

const (
	noJournal journalKind = iota
	leftJournal
	foreignJournal // SQLite ignores it, and would remove it
)

// notice is a sentence on it.
func (k journalKind) notice() string {
	switch k {
	case leftJournal:
		return "A writer ended in mid-transaction and left its journal beside the store; this was read from a copy without the unfinished transaction, and the next writing command recovers the store."
	case foreignJournal:
		return "The file in the place of the store's journal is no journal; this was read from a copy without it."
	}
	return ""
}

// statStore stats the store's file and those beside it.
func statStore(path string) (all [3]fs.FileInfo, err error) {
	for i, suffix := range []string{"", journalSuffix, aheadSuffix} {
		if all[i], err = os.Stat(path + suffix); err != nil {
			if i == 0 || !errors.Is(err, fs.ErrNotExist) {
				return all, err
			}
			all[i] = nil
		}
	}
	return all, nil
}

// unchangedFiles reports whether nothing was written to any of the files in between.
func unchangedFiles(a, b [3]fs.FileInfo) bool {
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) {
			return false
		}
		if a[i] == nil {
			continue
		}
		then, _ := changeTime(a[i])
		now, _ := changeTime(b[i])
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) || !then.Equal(now) {
			return false
		}
	}
	return true
}

// outdated reports whether the files from which the image was made have changed; a store
// that is read in place has no image, which cannot be outdated.
func (m *image) outdated(path string) bool {
	if m == nil {
		return false
	}
	now, err := statStore(path)
	return err != nil || !unchangedFiles(m.of, now)
}

// remove deletes the copy. SQLite's connections may still have it open.
func (m *image) remove() error {
	if m == nil {
		return nil
	}
	return os.RemoveAll(m.folder)
}

// errUnsettled means that a writer came while the store was copied: look again.
var errUnsettled = errors.New("the store changed while it was copied")

// copyStore makes an image of the store at path and lets SQLite recover it. limit is the
// most bytes that may be copied; 0: no limit.
func copyStore(ctx context.Context, path string, limit int64) (made *image, err error) {
	before, err := statStore(path)
	if err != nil {
		return nil, err
	}
	var total int64
	for _, info := range before {
		if info != nil {
			total += info.Size()
		}
	}
	if limit > 0 && total > limit {
		return nil, brokenFault(nil, "A writer left the store unfinished, and it is too large to be copied: run `svc store migrate` on it, which recovers it.")
	}
	folder, err := os.MkdirTemp("", "svc-store-")
	if err != nil {
		return nil, err
	}
	made = &image{folder: folder, path: filepath.Join(folder, "store"), of: before}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.remove())
			made = nil
		}
	}()
	if before[1] != nil {
		if made.journal, err = readJournalKind(path + journalSuffix); err != nil {
			return made, err
		}
	}
	if err = copyLocked(path, made.path); err != nil {
		return made, err
	}
	for i, suffix := range []string{journalSuffix, aheadSuffix} {
		if before[i+1] == nil || suffix == journalSuffix && made.journal != leftJournal {
			continue
		}
		if err = copyFile(path+suffix, made.path+suffix); err != nil {
			return made, err
		}
	}
	after, err := statStore(path)
	if err != nil {
		return made, err
	}
	if !unchangedFiles(before, after) {
		err = errUnsettled
		return made, err
	}
	err = recoverImage(ctx, made.path)
	return made, err
}

// readJournalKind distinguishes a journal from another file of its name. An empty one, or
// one that begins with a zero, is left behind by SQLite after a finished transaction.
func readJournalKind(path string) (journalKind, error) {
	file, err := os.Open(path)
	if err != nil {
		return noJournal, err
	}
	defer func() { _ = file.Close() }() // it was only read
	head := make([]byte, len(journalMagic))
	n, err := io.ReadFull(file, head)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return noJournal, err
	case n == 0 || head[0] == 0:
		return noJournal, nil
	case bytes.Equal(head, journalMagic):
		return leftJournal, nil
	}
	return foreignJournal, nil
}

// copiedFiles are the stores that this process ever had to copy, keyed by what
// [os.SameFile] compares. They stay open: closing one would drop every lock that the
// process holds on the file, for any connection.
var copiedFiles struct {
	mu   sync.Mutex // guards what follows
	open []*os.File
}

// openKept opens the store at path, or returns the file that is open.
func openKept(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	copiedFiles.mu.Lock()
	defer copiedFiles.mu.Unlock()
	for _, file := range copiedFiles.open {
		if old, err := file.Stat(); err == nil && os.SameFile(old, info) {
			return file, nil
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	copiedFiles.open = append(copiedFiles.open, file)
	return file, nil
}

// copyLocked copies a file on which this process may hold locks.
func copyLocked(from, to string) error {
	file, err := openKept(from)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return writeCopy(io.NewSectionReader(file, 0, info.Size()), to)
}

func copyFile(from, to string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	return writeCopy(file, to)
}

func writeCopy(from io.Reader, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}

// recoverImage lets SQLite undo, in the copy, a dead writer's unfinished transaction.
func recoverImage(ctx context.Context, path string) error {
	db, err := openDB(path, modeWrite, 0)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var n int
	return db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n)
}

// fileHeader is the beginning of the store's first page.
type fileHeader []byte

const headerQuery = "SELECT substr(data, 1, 100) FROM sqlite_dbpage WHERE pgno = 1"

// writeAhead reports whether readers, too, would write beside the file.
func (h fileHeader) writeAhead() bool { return len(h) > 19 && h[19] == 2 }

// writeVersion is the file format that writers of the file must know.
func (h fileHeader) writeVersion() byte {
	if len(h) < 19 {
		return 0
	}
	return h[18]
}

// peekHeader reads the header in place and touches neither locks nor files beside it. It
// returns an empty header for a file that cannot be read: the next read reports why.
func peekHeader(ctx context.Context, path string) fileHeader {
	db, err := openDB(path, modeImmutable, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = db.Close() }()
	return readHeader(db.QueryRowContext(ctx, headerQuery))
}

func readHeader(row *sql.Row) fileHeader {
	var head []byte
	if err := row.Scan(&head); err != nil {
		return nil
	}
	return head
}
