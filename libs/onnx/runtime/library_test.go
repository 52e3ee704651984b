package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"
)

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The order: ORT_LIB, installed folders, then the fetched library if its digest is the pinned one.
func TestLookup(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const helloDigest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"
	l := lookup{
		dirs:       []string{filepath.Join(root, "bin"), filepath.Join(root, "lib")},
		cacheRoots: []string{filepath.Join(root, "none"), filepath.Join(root, "repo")},
		digest:     helloDigest,
	}
	expect := func(want string) {
		t.Helper()
		if got, err := l.find(); err != nil || got != want {
			t.Fatalf("found %q, %v; want %q", got, err, want)
		}
	}
	fails := func(want string) {
		t.Helper()
		if got, err := l.find(); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), want) {
			t.Fatalf("found %q, %v; want an error with %q", got, err, want)
		}
	}
	fails("set ORT_LIB to")
	writeFile(t, filepath.Join(root, "repo", fetchedPath), "other")
	fails("expected " + helloDigest)
	expectFetched := writeFile(t, filepath.Join(root, "repo", fetchedPath), "hello")
	expect(expectFetched)
	expect(writeFile(t, filepath.Join(root, "lib/libonnxruntime.so"), "x"))
	expect(writeFile(t, filepath.Join(root, "lib/libonnxruntime.so.1"), "x"))
	expect(writeFile(t, filepath.Join(root, "bin/libonnxruntime.so.1"), "x"))
	l.env = writeFile(t, filepath.Join(root, "mine.so"), "x")
	expect(l.env)
	l.env = filepath.Join(root, "absent.so")
	fails("ORT_LIB names")
}

// A library that cannot be loaded is an error, and does not prevent loading a good one later.
func TestInitAfterFailure(t *testing.T) {
	if Version() == "" { // another test of the process may have loaded it
		for _, path := range []string{filepath.Join(t.TempDir(), "none.so"), writeFile(t, filepath.Join(t.TempDir(), "bad.so"), "not a library")} {
			if err := Init(path); !errors.Is(err, ErrMissing) {
				t.Fatalf("%s: %v; want errors.Is(err, ErrMissing)", path, err)
			}
		}
	}
	if err := errors.Join(Init(""), Init("ignored once loaded")); err != nil {
		t.Fatal(err)
	}
	if v := Version(); !strings.HasPrefix(v, "1.") {
		t.Fatalf(`version %q; want strings.HasPrefix(v, "1.")`, v)
	}
}

// Version is the loaded library's version, empty before Init succeeded.
func Version() string {
	initMu.Lock()
	defer initMu.Unlock()
	if !ort.IsInitialized() {
		return ""
	}
	return ort.GetVersion()
}
