// Package recordedtest provides one small cluster, recorded in each supported layout.
package recordedtest

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed all:testdata
var files embed.FS

// Folder writes the recording of a layout (bundle, dump, lists or must-gather) into a new folder and returns the
// folder. Logs are stored in the tree as .log.txt, since *.log files are commonly git-ignored.
func Folder(t testing.TB, layout string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), layout)
	from := "testdata/" + layout
	err := fs.WalkDir(files, from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if name, isLog := strings.CutSuffix(target, ".log.txt"); isLog {
			target = name + ".log"
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}
