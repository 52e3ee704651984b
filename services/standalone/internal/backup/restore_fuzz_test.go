package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// part is one entry of an archive; a folder ends in a slash, a link has where it leads.
type part struct{ name, content, link string }

// makeArchive is a tar archive with a list of digests that is right.
func makeArchive(f *testing.F, entries ...part) []byte {
	f.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	var sums strings.Builder
	entries = append([]part{{name: aboutAs, content: `{"format":1,"layout":1,"version":"v1"}`}, {name: dataRoot + "layout", content: "1\n"}}, entries...)
	for i, e := range append(entries, part{name: sumsAs}) {
		if i == len(entries) {
			e.content = sums.String()
		}
		h := &tar.Header{Name: e.name, Mode: 0o600, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		switch {
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o700
		case i > 0:
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(e.content)), e.name)
		}
		if err := w.WriteHeader(h); err != nil {
			f.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	return buf.Bytes()
}

// FuzzRestore: an archive is restored whole or not at all, and no file is written elsewhere, whatever its names and
// links are.
func FuzzRestore(f *testing.F) {
	for _, seed := range [][]byte{
		makeArchive(f), makeArchive(f, part{name: "data/modelrepo/"}, part{name: "data/modelrepo/a", content: "x"}),
		makeArchive(f, part{name: "data/../../out", content: "x"}), makeArchive(f, part{name: "/etc/passwd", content: "x"}),
		makeArchive(f, part{name: "data/l", link: ".."}, part{name: "data/l/out", content: "x"}),
		makeArchive(f, part{name: "data/l", link: "/tmp"}, part{name: "data/l", content: "x"}), []byte("x"), nil,
	} {
		f.Add(seed, false)
	}
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	sound := packer.EncodeAll(makeArchive(f), nil)
	f.Add(sound, true)
	// Else the target would see refusals alone.
	file := filepath.Join(f.TempDir(), "b")
	if err := os.WriteFile(file, sound, 0o600); err != nil {
		f.Fatal(err)
	}
	if _, err := Restore(f.Context(), file, filepath.Join(f.TempDir(), "data")); err != nil {
		f.Fatalf("a sound archive: got %v, want nil", err)
	}
	f.Fuzz(func(t *testing.T, archive []byte, packed bool) {
		if !packed {
			archive = packer.EncodeAll(archive, nil)
		}
		if len(archive) > 1<<20 {
			return // limited by the disk
		}
		home, file := t.TempDir(), filepath.Join(t.TempDir(), "b")
		if err := os.WriteFile(file, archive, 0o600); err != nil {
			t.Fatal(err)
		}
		var restored bool
		hostiletest.CheckAllocation(t, uint64(192<<20+256*len(archive)), func() {
			_, err := Restore(t.Context(), file, filepath.Join(home, "data"))
			restored = err == nil
		})
		entries, err := os.ReadDir(home)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 1, false: 0}[restored]; len(entries) != want || restored && entries[0].Name() != "data" {
			t.Errorf("restored: %v, beside the backup lies %v; want the data directory alone, or nothing", restored, entries)
		}
		if !restored {
			return
		}
		if info, err := os.Lstat(filepath.Join(home, "data", "layout")); err != nil || info.Mode().Type() != fs.FileMode(0) {
			t.Errorf("the layout is %v, %v; want a file", info, err)
		}
	})
}
