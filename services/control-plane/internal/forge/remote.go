package forge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/gofrs/flock"

	"github.com/mlp-platform/platform/libs/service"
)

// Limits of a git server's answers, in bytes: the list of its branches, which is held in memory, and a pack, which goes
// to disk.
const (
	maxRefs  = 16 << 20
	maxFetch = 512 << 20
)

// maxSlots limits how many processes may share a cache folder.
const maxSlots = 64

// refusedFor is how long a head that could not be read is not fetched again.
const refusedFor = 15 * time.Minute

// Remote is a repository behind a git server's http or https URL. The fetched repository is kept bare in a folder used
// by this process alone. Only children read the server's responses and data; see ask.
type Remote struct {
	id       string
	url      service.Secret
	timeout  time.Duration // of each exchange with the server
	cache    string        // of this repository, for all processes
	fetching chan struct{} // holds a token while the folder has no writer; guards the next three

	refused string // the newest head that could not be read; it is not fetched again
	why     error
	until   time.Time // when it is tried again: the transfer may have been truncated

	mu   sync.Mutex // guards those below
	slot string     // the folder of this process; empty until claimed
	lock *flock.Flock
}

// OpenRemote returns the source for the repository at rawURL, whose user part is the credential. It sends and writes
// nothing yet. timeout limits each exchange with the server.
func OpenRemote(rawURL service.Secret, cacheDir string, timeout time.Duration) (*Remote, error) {
	u, err := parseGitURL(rawURL)
	if err != nil {
		return nil, err
	}
	if cacheDir, err = filepath.Abs(cacheDir); err != nil { // a child starts in another folder
		return nil, err
	}
	u.User = nil
	sum := sha256.Sum256([]byte(u.String()))
	id := hex.EncodeToString(sum[:8])
	r := &Remote{id: id, url: rawURL, timeout: timeout, fetching: make(chan struct{}, 1), cache: filepath.Join(cacheDir, id)}
	r.fetching <- struct{}{}
	return r, nil
}

// parseGitURL accepts only http and https: other protocols can be made to run a program.
func parseGitURL(rawURL service.Secret) (*url.URL, error) {
	u, err := url.Parse(rawURL.Reveal())
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("MODELREPO_GIT_URL must be an http or https URL")
	}
	if _, err := transport.NewEndpoint(u.String()); err != nil {
		return nil, errors.New("MODELREPO_GIT_URL is not the URL of a git repository")
	}
	return u, nil
}

// ID identifies the repository regardless of the credentials.
func (r *Remote) ID() string { return r.id }

// Kind is part of Source.
func (r *Remote) Kind() string { return "git" }

// Close is part of Exporter.
func (r *Remote) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil {
		return nil
	}
	err := r.lock.Unlock()
	r.slot, r.lock = "", nil
	return err
}

// folder claims a folder that no other process uses. It reuses a predecessor's fetched repository; exported folders may
// be half written and are removed.
func (r *Remote) folder() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slot != "" {
		return r.slot, nil
	}
	for i := range maxSlots {
		dir := filepath.Join(r.cache, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("MODELREPO_CACHE_DIR cannot be used: %w", err)
		}
		lock := flock.New(filepath.Join(dir, "lock"))
		ok, err := lock.TryLock()
		if err != nil {
			return "", fmt.Errorf("MODELREPO_CACHE_DIR cannot be used: %w", err)
		}
		if !ok {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, trees)); err != nil {
			return "", errors.Join(fmt.Errorf("MODELREPO_CACHE_DIR cannot be used: %w", err), lock.Unlock())
		}
		r.slot, r.lock = dir, lock
		return dir, nil
	}
	return "", fmt.Errorf("MODELREPO_CACHE_DIR is in use by %d processes", maxSlots)
}

// Head is part of Source: it lists the server's branches, and fetches the commit if it is new. A head that cannot be
// read is ErrMalformed, with its SHA.
func (r *Remote) Head(ctx context.Context, branch string) (Commit, error) {
	if err := r.take(ctx); err != nil {
		return Commit{}, err
	}
	defer r.give()
	slot, err := r.folder()
	if err != nil {
		return Commit{}, err
	}
	refused := r.refused
	if time.Now().After(r.until) {
		refused = ""
	}
	out, err := ask(ctx, request{Op: opHead, URL: r.url.Reveal(), Slot: slot, Branch: branch, Refused: refused, Timeout: r.timeout})
	if sha := out.Commit.SHA; errors.Is(err, ErrMalformed) && sha != "" {
		if sha != refused {
			r.refused, r.why, r.until = sha, err, time.Now().Add(refusedFor)
		}
		return Commit{SHA: sha}, r.why
	}
	if err != nil {
		return Commit{}, err
	}
	return out.Commit, nil
}

func (r *Remote) take(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.fetching:
		return nil
	}
}

func (r *Remote) give() { r.fetching <- struct{}{} }

// Files is part of Source.
func (r *Remote) Files(ctx context.Context, from, to string) ([]string, error) {
	slot, err := r.folder()
	if err != nil {
		return nil, err
	}
	out, err := askReader(ctx, request{Op: opFiles, URL: r.url.Reveal(), Slot: slot, From: from, To: to})
	return out.Files, err
}

// Diff is part of Source. It reads the fetched repository, and queries no server.
func (r *Remote) Diff(ctx context.Context, from, to string) (Diff, error) {
	slot, err := r.folder()
	if err != nil {
		return Diff{}, err
	}
	out, err := askReader(ctx, request{Op: opDiff, URL: r.url.Reveal(), Slot: slot, From: from, To: to})
	if err != nil || out.Diff == nil {
		return Diff{}, err
	}
	return *out.Diff, nil
}
