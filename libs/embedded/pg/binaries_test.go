package pg

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFindBinaries(t *testing.T) {
	dir, major, err := FindBinaries()
	if err != nil || major < oldest {
		t.Fatalf("%s, %d, %v; want major >= oldest", dir, major, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		t.Error(err)
	}
}

// Without a server on the machine and without a way to download one.
func TestNoBinaries(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	old := places
	places = nil
	defer func() { places = old }()

	if _, _, err := FindBinaries(); !errors.Is(err, ErrNoBinaries) {
		t.Errorf("found: %v; want errors.Is(err, ErrNoBinaries)", err)
	}
	cache := t.TempDir()
	_, err := chooseBinaries(0, "/data", cache, false, &bytes.Buffer{})
	expectError(t, err, "no PostgreSQL server", "PLATFORM_DATABASE_URL")
	if left, err := os.ReadDir(cache); err != nil || len(left) != 0 {
		t.Errorf("a failed download left %v, %v; want len(left) == 0", left, err)
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	open := filepath.Join(os.TempDir(), "does-not-exist-yet", "cache")
	if !reachableByAll(open) {
		t.Errorf("%s is not reachable; want reachableByAll(open)", open)
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if reachableByAll(filepath.Join(closed, "cache")) {
		t.Error("a directory of mode 0700 is reachable for all")
	}
}

// Root's umask may be strict; the server's user must read the binaries all the same.
func TestOpenForEveryUser(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b")
	if err := makeOpen(dir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "initdb")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, dir} { // as a umask of 077 leaves them
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := openTree(filepath.Join(top, "a")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Dir(dir), dir, file} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o007 != 0o005 {
			t.Errorf("%s: %v, %v; want info.Mode().Perm() & 0o007 == 0o005", path, info.Mode(), err)
		}
	}
	if err := makeOpen(filepath.Join(file, "c")); err == nil {
		t.Error("made a directory below a file")
	}
}

// release makes a folder as a release has it: a program, and beside it a server that reports this version.
func release(t *testing.T, version string) (program, bin string) {
	t.Helper()
	dir := t.TempDir()
	program, bin = filepath.Join(dir, "platform"), filepath.Join(dir, besideProgram)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		program:                        "",
		filepath.Join(bin, "initdb"):   "",
		filepath.Join(bin, "postgres"): "#!/bin/sh\n" + version + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	old := executable
	executable = func() (string, error) { return program, nil }
	t.Cleanup(func() { executable = old })
	return program, bin
}

// New data is served by the release's own server, whatever is installed; data of another version by an installed one.
func TestServerOfTheRelease(t *testing.T) {
	_, bin := release(t, "echo 'postgres (PostgreSQL) 99.1'")
	_, installed, err := FindBinaries()
	if err != nil {
		t.Fatal(err)
	}
	for major, want := range map[int]int{0: 99, 99: 99, installed: installed} {
		b, err := chooseBinaries(major, "/data", t.TempDir(), false, &bytes.Buffer{})
		if err != nil || b.major != want || (b.dir == bin) != (want == 99) {
			t.Errorf("data of version %d: got %+v, %v; want version %d", major, b, err, want)
		}
	}
}

// A server of the release that cannot run is named, with the reason, when there is no other.
func TestServerOfTheReleaseDoesNotRun(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	old := places
	places = nil
	defer func() { places = old }()
	program, bin := release(t, "echo no libz.so.1 >&2; exit 127")
	t.Setenv("PATH", filepath.Dir(program))
	_, err := chooseBinaries(0, "/data", t.TempDir(), false, &bytes.Buffer{})
	expectError(t, err, bin, "does not run here", "exit status 127", "no libz.so.1")
	if err := os.Chmod(filepath.Dir(program), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = chooseBinaries(0, "/data", t.TempDir(), true, &bytes.Buffer{})
	expectError(t, err, bin, "only root can enter", "ordinary user")
}
