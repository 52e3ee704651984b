// Package backup writes a stopped platform to one file, and restores a platform from it: the data directory of one
// process, or the volumes and secrets of containers.
//
// The file is a tar archive, compressed with Zstandard: backup.json, which describes it; the platform's files below
// data/; and SHA256SUMS in the format of sha256sum, so that it can be checked and read without this program.
package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
)

const (
	format   = 1 // rises when an older program would misread the file
	aboutAs  = "backup.json"
	sumsAs   = "SHA256SUMS"
	dataRoot = "data/"
)

// About describes the contents of a backup.
type About struct {
	Format  int       `json:"format"`
	Layout  int       `json:"layout"` // of the data directory
	Version string    `json:"version"`
	MadeAt  time.Time `json:"made_at"`
	// Kind is "containers", or empty for the data directory of one process.
	Kind    string   `json:"kind,omitempty"`
	Volumes []string `json:"volumes,omitempty"` // of containers, by their names in the compose file
}

// Result counts the files and bytes written or read.
type Result struct {
	About About
	Files int
	Bytes int64 // before compression
}

// left are the parts of a data directory that a start recreates, and the secrets of containers in it, which have a
// separate backup.
var left = map[string]bool{
	"cache": true, "platform.lock": true, "runtime.json": true, "postgres/data/postmaster.pid": true, "postgres/data/.s.PGSQL.5432.lock": true, datadir.ContainersDir: true,
}

// isLeftOut reports whether an entry of a data directory, by its name in it, is not backed up.
func isLeftOut(name string) bool { return left[name] || strings.HasPrefix(name, "platform.log") }

// Write backs the data directory dir up to the file at path, which appears whole or not at all. No platform may run on
// the directory, so that database, broker, artifacts and evidence are of one moment.
func Write(ctx context.Context, dir, path string, now time.Time) (_ Result, err error) {
	if _, err := os.Stat(filepath.Join(dir, "layout")); err != nil {
		return Result{}, fmt.Errorf("%s is no data directory of a platform: name one in PLATFORM_DATA_DIR", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Result{}, err
	}
	if inside, err := isWithin(real, path); err != nil {
		return Result{}, err
	} else if inside {
		return Result{}, fmt.Errorf("the backup %s would lie in the data directory that it is of: name a file elsewhere", path)
	}
	held, err := datadir.Open(dir)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	if err := checkDatabaseStopped(dir); err != nil {
		return Result{}, err
	}
	file, err := renameio.NewPendingFile(path, renameio.WithStaticPermissions(0o600)) // it holds every secret
	if err != nil {
		return Result{}, fmt.Errorf("the backup cannot be written: %w", err)
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	w := &writer{ctx: ctx, result: Result{About: About{Format: format, Layout: datadir.Layout, Version: service.Version, MadeAt: now.UTC().Truncate(time.Second)}}}
	if err := w.write(real, file, isLeftOut); err != nil {
		return Result{}, fmt.Errorf("the backup cannot be written: %w", err)
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return Result{}, fmt.Errorf("the backup cannot be written: %w", err)
	}
	return w.result, nil
}

// isWithin reports whether the file at path would lie in dir, which is no link.
func isWithin(dir, path string) (bool, error) {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return false, fmt.Errorf("the backup cannot be written: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return false, err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(dir, folder)
	return err == nil && filepath.IsLocal(rel), nil
}

// checkDatabaseStopped refuses a database that outlived its platform: its files are not of one moment.
func checkDatabaseStopped(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	if pid, err := strconv.Atoi(line); err == nil && pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return fmt.Errorf("the database of a killed platform still runs (pid %d): start the platform, stop it with platform stop, and try again", pid)
	}
	return nil
}

// interruptible is a reader that ends with its context, so that an interrupt need not wait for a large file.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

type writer struct {
	ctx    context.Context // of one Write
	tar    *tar.Writer
	sums   strings.Builder
	result Result
}

// write writes all of dir except the entries left out.
func (w *writer) write(dir string, out io.Writer, leaveOut func(name string) bool) error {
	packed, err := zstd.NewWriter(out, zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	w.tar = tar.NewWriter(packed)
	about, err := json.MarshalIndent(w.result.About, "", "  ")
	if err != nil {
		return err
	}
	if err := w.text(aboutAs, string(about)+"\n"); err != nil {
		return err
	}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		if leaveOut(filepath.ToSlash(rel)) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return w.add(path, dataRoot+filepath.ToSlash(rel), d)
	}); err != nil {
		return err
	}
	if err := w.text(sumsAs, w.sums.String()); err != nil {
		return err
	}
	return errors.Join(w.tar.Close(), packed.Close())
}

func (w *writer) text(name, content string) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Typeflag: tar.TypeReg, ModTime: w.result.About.MadeAt})
	if err == nil {
		_, err = io.WriteString(w.tar, content)
	}
	return err
}

// add writes one entry. Sockets and pipes are remains of processes and left out.
func (w *writer) add(path, name string, d fs.DirEntry) error {
	if strings.ContainsRune(name, '\n') { // SHA256SUMS is a list of lines
		return fmt.Errorf("the file name %q has a line break in it", name)
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	header.Name, header.Uname, header.Gname = name, "", ""
	if info.IsDir() {
		header.Name += "/"
	}
	if err := w.tar.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, sum), interruptible{w.ctx, f})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if n != info.Size() {
		return fmt.Errorf("%s changed while it was read", name)
	}
	fmt.Fprintf(&w.sums, "%x  %s\n", sum.Sum(nil), name)
	w.result.Files++
	w.result.Bytes += n
	return nil
}
