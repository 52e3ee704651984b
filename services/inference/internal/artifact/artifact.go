// Package artifact keeps model folders on disk, each named by the digest of its files, so that the registered files are
// the ones opened.
package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/tracker"
)

// DigestTag is the version tag that holds the registered digest.
const DigestTag = "artifact_digest"

// ErrDigest means that the files differ from the registered ones, or that no digest is registered.
var ErrDigest = errors.New("artifact digest")

// keepFolders is how many folders Trim leaves; an open model needs none, and a scoring server has its files linked.
const keepFolders = 32

// partial is the prefix of folders being downloaded, and staleAfter the age at which one was left by a
// process that died.
const (
	partial    = ".download-"
	staleAfter = time.Hour
)

// Store downloads and keeps artifacts. Processes may share its folder.
type Store struct {
	dir           string
	client        *tracker.Client
	requireDigest bool
}

// New creates the folder dir if it is absent.
func New(dir string, client *tracker.Client, requireDigest bool) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("model cache: %w; set MODEL_CACHE_DIR to a folder this process may write", err)
	}
	return &Store{dir: dir, client: client, requireDigest: requireDigest}, nil
}

// Artifact is a folder whose files have this digest. Verified is set if the registry named the digest.
type Artifact struct {
	Dir, Digest string
	Verified    bool
	files       map[string]string // SHA-256 in hex by slash-separated path
	size        int64
}

// Size is that of all files, in bytes.
func (a Artifact) Size() int64 { return a.size }

// ReadFile returns a file of at most limit bytes, exactly as it was hashed: a file changed since is an error.
func (a Artifact) ReadFile(name string, limit int64) ([]byte, error) {
	want, ok := a.files[name]
	if !ok {
		return nil, fmt.Errorf("the artifact has no file %q: %w", name, fs.ErrNotExist)
	}
	root, err := os.OpenRoot(a.Dir)
	if err != nil {
		return nil, fmt.Errorf("model cache: %w", err)
	}
	defer root.Close()
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, fmt.Errorf("model cache: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("model cache: %w", err)
	case st.Size() > limit:
		return nil, fmt.Errorf("the file %s has %d bytes, at most %d are served", name, st.Size(), limit)
	}
	data := make([]byte, st.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("model cache: %w", err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
		return nil, fmt.Errorf("%w: the file %s was changed after it was checked", ErrDigest, name)
	}
	return data, nil
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Fetch returns the artifact of a version, and downloads it unless the registered digest is cached.
func (s *Store) Fetch(ctx context.Context, v tracker.ModelVersion) (Artifact, error) {
	want := strings.ToLower(strings.TrimSpace(v.Tags[DigestTag]))
	switch {
	case want == "" && s.requireDigest:
		return Artifact{}, fmt.Errorf("%w: version %s of %s has no tag %s, and REQUIRE_DIGEST is set", ErrDigest, v.Version, v.Name, DigestTag)
	case want != "" && !hexDigest.MatchString(want):
		return Artifact{}, fmt.Errorf("%w: the tag %s of version %s is no SHA-256 in hex", ErrDigest, DigestTag, v.Version)
	case want != "":
		if have, err := hashFolder(filepath.Join(s.dir, want)); err == nil && have.digest() == want {
			return s.used(want, true, have), nil
		}
	}
	tmp, err := os.MkdirTemp(s.dir, partial)
	if err != nil {
		return Artifact{}, fmt.Errorf("model cache: %w", err)
	}
	defer os.RemoveAll(tmp) // the folder has another name by then, if all went well
	files, err := s.client.DownloadModel(ctx, v, tmp)
	if err != nil {
		return Artifact{}, fmt.Errorf("downloading version %s of %s: %w", v.Version, v.Name, err)
	}
	have := tracker.Digest(files)
	if want != "" && have != want {
		return Artifact{}, fmt.Errorf("%w: the files of version %s have %s, registered is %s", ErrDigest, v.Version, have, want)
	}
	final := filepath.Join(s.dir, have)
	if err := os.Rename(tmp, final); err != nil {
		// Another process was first, or the existing folder is damaged.
		if got, herr := hashFolder(final); herr != nil || got.digest() != have {
			if err := errors.Join(os.RemoveAll(final), os.Rename(tmp, final)); err != nil {
				return Artifact{}, fmt.Errorf("model cache: %w", err)
			}
		}
	}
	// Hashed again at its final place, which detects changes by others in between.
	folder, err := hashFolder(final)
	if err != nil {
		return Artifact{}, fmt.Errorf("model cache: %w", err)
	}
	if folder.digest() != have {
		return Artifact{}, fmt.Errorf("%w: the files of version %s were changed in the model cache", ErrDigest, v.Version)
	}
	return s.used(have, want != "", folder), nil
}

// used marks the folder as recent for Trim. A read-only cache keeps its old mark, which costs a download
// at worst.
func (s *Store) used(digest string, verified bool, f folder) Artifact {
	a := Artifact{Dir: filepath.Join(s.dir, digest), Digest: digest, Verified: verified, files: f.files, size: f.size}
	now := time.Now()
	_ = os.Chtimes(a.Dir, now, now)
	return a
}

// folder describes the files below a folder.
type folder struct {
	files map[string]string // SHA-256 in hex by slash-separated path
	size  int64             // bytes of all
}

func (f folder) digest() string { return tracker.Digest(f.files) }

// hashFolder hashes the files below dir.
func hashFolder(dir string) (folder, error) {
	out := folder{files: map[string]string{}}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return folder{}, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", p)
		}
		f, err := root.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		n, err := io.Copy(sum, f)
		if err != nil {
			return err
		}
		out.files[p] = hex.EncodeToString(sum.Sum(nil))
		out.size += n
		return nil
	})
	return out, err
}

// Trim removes all but the most recently used folders, and downloads that a dead process left.
func (s *Store) Trim() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("model cache: %w", err)
	}
	type kept struct {
		name string
		used time.Time
	}
	var done []kept
	var faults []error
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil: // another process has removed it
		case hexDigest.MatchString(e.Name()):
			done = append(done, kept{e.Name(), info.ModTime()})
		case strings.HasPrefix(e.Name(), partial) && time.Since(info.ModTime()) > staleAfter:
			faults = append(faults, os.RemoveAll(filepath.Join(s.dir, e.Name())))
		}
	}
	slices.SortFunc(done, func(a, b kept) int { return b.used.Compare(a.used) })
	for _, f := range done[min(len(done), keepFolders):] {
		faults = append(faults, os.RemoveAll(filepath.Join(s.dir, f.name)))
	}
	return errors.Join(faults...)
}
