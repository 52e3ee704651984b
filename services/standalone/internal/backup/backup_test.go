package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
)

// newDataDir is a data directory as a stopped platform leaves it.
func newDataDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	held, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"credentials.json": "{}", "postgres/data/PG_VERSION": "17\n", "nats/jetstream/1.blk": strings.Repeat("event", 1000),
		"artifacts/1/model.onnx": "\x00\x01", "cache/models/x": "again", "compose/secrets/key": "of the containers", "platform.log": "old", "platform.log.1": "older",
		"postgres/data/postmaster.pid": "999999999\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("README.md", filepath.Join(dir, "artifacts", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "artifacts", "1"), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "artifacts", "1"), 0o700) })
	return dir
}

// tree lists the content of dir: modes, contents and targets by name.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%x", sha256.Sum256(raw))
		case info.Mode()&fs.ModeSymlink != 0:
			content, _ = os.Readlink(path)
		}
		all[strings.TrimPrefix(path, dir+"/")] = info.Mode().String() + " " + content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRestoredIsWhatWasBackedUp(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	file, to := filepath.Join(t.TempDir(), "b.tar.zst"), filepath.Join(t.TempDir(), "new")
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(to, "artifacts", "1"), 0o700) })
	made := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	wrote, err := Write(t.Context(), dir, file, made)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600: the file holds secrets", info.Mode(), err)
	}
	read, err := Restore(t.Context(), file, to)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wrote, read); diff != "" || read.Files != 5 || !read.About.MadeAt.Equal(made.Truncate(time.Second)) {
		t.Errorf("got %+v, want what was written with 5 files: %s", read, diff)
	}
	want := tree(t, dir)
	for _, name := range []string{"cache", "cache/models", "cache/models/x", "compose", "compose/secrets", "compose/secrets/key", "platform.log", "platform.log.1", "platform.lock", "postgres/data/postmaster.pid"} {
		delete(want, name)
	}
	if diff := cmp.Diff(want, tree(t, to)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

func TestRefusedBackups(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	running := newDataDir(t)
	held, err := datadir.Open(running)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	orphan := newDataDir(t)
	if err := os.WriteFile(filepath.Join(orphan, "postgres/data/postmaster.pid"), []byte(strconv.Itoa(os.Getpid())+"\n/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, file, want string }{
		"a platform runs":       {running, filepath.Join(t.TempDir(), "b"), "another platform"},
		"its database runs":     {orphan, filepath.Join(t.TempDir(), "b"), "the database of a killed platform still runs (pid " + strconv.Itoa(os.Getpid())},
		"no data directory":     {t.TempDir(), filepath.Join(t.TempDir(), "b"), "is no data directory of a platform"},
		"into itself":           {dir, filepath.Join(dir, "b"), "would lie in the data directory"},
		"into a folder of it":   {dir, filepath.Join(dir, "nats", "b"), "would lie in the data directory"},
		"into a missing folder": {dir, filepath.Join(t.TempDir(), "none", "b"), "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Write(t.Context(), c.dir, c.file, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(c.file); err == nil {
				t.Error("got a file, want none")
			}
		})
	}
}

// entry is one entry of a hand-made archive.
type entry struct {
	header  tar.Header
	content string
}

func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	packed, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(packed)
	for _, e := range entries {
		e.header.Size, e.header.Mode = int64(len(e.content)), 0o700
		if err := w.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func sum(name, content string) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), name)
}

// A refused backup leaves no files behind, inside or outside of the directory.
func TestHostileBackupsAreRefused(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole")
	if _, err := Write(t.Context(), newDataDir(t), whole, time.Now()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	about := entry{tar.Header{Name: aboutAs}, `{"format": 1, "layout": 1}`}
	layout, sums := entry{tar.Header{Name: "data/layout"}, "1\n"}, sum("data/layout", "1\n")
	link := entry{tar.Header{Name: "data/out", Typeflag: tar.TypeSymlink, Linkname: "../.."}, ""}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":           {nil, "is no backup"},
		"other bytes":       {[]byte("PK\x03\x04"), "is no backup"},
		"half":              {raw[:len(raw)/2], "refused"},
		"another archive":   {pack(t, layout), "is no backup"},
		"newer format":      {pack(t, entry{tar.Header{Name: aboutAs}, `{"format": 2, "layout": 1, "version": "9.9"}`}, layout), "version 9.9 wrote it"},
		"of containers":     {pack(t, entry{tar.Header{Name: aboutAs}, `{"format": 1, "kind": "containers"}`}, layout), "restore it with scripts/up.sh restore"},
		"newer layout":      {pack(t, entry{tar.Header{Name: aboutAs}, `{"format": 1, "layout": 99, "version": "9.9"}`}, layout), "version 9.9 wrote it"},
		"no digests":        {pack(t, about, layout), "list of digests is missing"},
		"wrong digest":      {pack(t, about, layout, entry{tar.Header{Name: sumsAs}, sum("data/layout", "2\n")}), "data/layout differs from its digest"},
		"file not listed":   {pack(t, about, layout, entry{tar.Header{Name: "data/x"}, "x"}, entry{tar.Header{Name: sumsAs}, sums}), "lists 1 files and holds 2"},
		"file missing":      {pack(t, about, layout, entry{tar.Header{Name: sumsAs}, sums + sum("data/x", "x")}), "data/x differs from its digest"},
		"no data directory": {pack(t, about, entry{tar.Header{Name: sumsAs}, ""}), "holds no data directory"},
		"more at its end":   {pack(t, about, layout, entry{tar.Header{Name: sumsAs}, sums}, layout), "something follows"},
		"parent":            {pack(t, about, entry{tar.Header{Name: "data/../../escaped"}, "x"}), "leads out of the data directory"},
		"absolute":          {pack(t, about, entry{tar.Header{Name: "/escaped"}, "x"}), "leads out of the data directory"},
		"through a link":    {pack(t, about, link, entry{tar.Header{Name: "data/out/escaped"}, "x"}), "escapes"},
		"twice":             {pack(t, about, layout, layout), "exists"},
		"a device":          {pack(t, about, entry{tar.Header{Name: "data/null", Typeflag: tar.TypeChar}, ""}), "neither file, folder nor link"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			file, to := filepath.Join(t.TempDir(), "b"), filepath.Join(home, "a", "data")
			if err := os.WriteFile(file, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Restore(t.Context(), file, to); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if got := tree(t, home); len(got) != 1 {
				t.Errorf("got %v, want the parent folder alone", got)
			}
		})
	}
}

func TestRestoreNeedsAnEmptyDirectory(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	file := filepath.Join(t.TempDir(), "b")
	if _, err := Write(t.Context(), dir, file, time.Now()); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	if _, err := Restore(t.Context(), file, dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("got %v, want that it is not empty", err)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("the directory changed:\n%s", diff)
	}
	empty := t.TempDir()
	if _, err := Restore(t.Context(), file, empty); err != nil {
		t.Errorf("into an empty directory: %v", err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(empty, "artifacts", "1"), 0o700) })
}

// An interrupted backup leaves neither half a file nor a folder full of secrets.
func TestStoppedBackupsLeaveNothing(t *testing.T) {
	t.Parallel()
	dir, home := newDataDir(t), t.TempDir()
	file := filepath.Join(home, "b")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Write(stopped, dir, file, time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if got := tree(t, home); len(got) != 0 {
		t.Errorf("a stopped backup left %v", got)
	}
	if _, err := Write(t.Context(), dir, file, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(stopped, file, filepath.Join(home, "data")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if got := tree(t, home); len(got) != 1 {
		t.Errorf("a stopped restore left %v", got)
	}
}

// A link to the data directory stays one.
func TestRestoreFollowsALink(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	file, link, to := filepath.Join(home, "b"), filepath.Join(home, "link"), filepath.Join(home, "volume", "data")
	if _, err := Write(t.Context(), newDataDir(t), file, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(to, 0o700), os.Symlink(to, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), file, link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(to, "artifacts", "1"), 0o700) })
	if _, err := os.Stat(filepath.Join(to, "layout")); err != nil {
		t.Errorf("%v, want the data where the link leads", err)
	}
}

func TestRestoreRefusesTheRootOfAVolume(t *testing.T) {
	t.Parallel()
	if _, err := Restore(t.Context(), "b", "/proc"); err == nil || !strings.Contains(err.Error(), "is the root of a volume") {
		t.Errorf("got %v, want that it is the root of a volume", err)
	}
}
