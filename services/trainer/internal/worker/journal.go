package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
)

// journal is a folder with one file for each run that this worker has claimed, or is about to. It outlives the
// process. One process at a time may hold it.
type journal struct {
	dir  string
	lock *os.File
}

// entry is the journal's record of a run.
type entry struct {
	ID uuid.UUID `json:"flow_run_id"`
	// End is the state that the run ended in and that the orchestrator has not accepted yet; nil while it runs.
	End *orchestrator.State `json:"end,omitempty"`
}

func openJournal(dir string) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := checkOwn(dir); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another worker uses %s; set WORKER_STATE_DIR to a separate folder for each worker", dir)
		}
		return nil, fmt.Errorf("journal: lock %s: %w", dir, err)
	}
	return &journal{dir, lock}, nil
}

// checkOwn refuses a folder that others may have filled, or can: its content decides the fate of runs.
func checkOwn(dir string) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("journal: WORKER_STATE_DIR must be a folder, and no link: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("journal: WORKER_STATE_DIR %s belongs to the user %d, not to this worker's %d", dir, st.Uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("journal: WORKER_STATE_DIR %s has the mode %#o, so that others may read or change it; run: chmod 700 %s", dir, mode, dir)
	}
	return nil
}

// instance is an id of this folder, made once.
func (j *journal) instance() (string, error) {
	file := filepath.Join(j.dir, "instance")
	b, err := os.ReadFile(file)
	if id := strings.TrimSpace(string(b)); err == nil && instanceID.MatchString(id) {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("journal: %w", err)
	}
	id := uuid.NewString()[:8]
	return id, j.replace(file, []byte(id+"\n"))
}

var instanceID = regexp.MustCompile(`^[0-9a-f]{8}$`)

// has reports whether there is an entry of the run.
func (j *journal) has(id uuid.UUID) bool {
	_, err := os.Lstat(j.file(id))
	return !errors.Is(err, fs.ErrNotExist)
}

func (j *journal) close() { _ = j.lock.Close() } // closing the descriptor releases the lock

func (j *journal) file(id uuid.UUID) string { return filepath.Join(j.dir, id.String()+".json") }

// write keeps the entry.
func (j *journal) write(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return j.replace(j.file(e.ID), b)
}

// replace writes a file that is whole after a kill at any point: the old one or the new one.
func (j *journal) replace(name string, b []byte) error {
	tmp := name + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := os.Rename(tmp, name); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func (j *journal) remove(id uuid.UUID) error {
	if err := os.Remove(j.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// entries reads all there are. A file that cannot be read counts as a run that was claimed and not ended.
func (j *journal) entries() ([]entry, error) {
	list, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var all []entry
	for _, f := range list {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		id, err := uuid.Parse(name)
		if !ok || err != nil {
			continue
		}
		e := entry{}
		b, err := os.ReadFile(filepath.Join(j.dir, f.Name()))
		if err != nil || json.Unmarshal(b, &e) != nil {
			e = entry{}
		}
		e.ID = id
		all = append(all, e)
	}
	return all, nil
}
