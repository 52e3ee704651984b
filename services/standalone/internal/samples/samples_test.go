package samples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestEnsure(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data", "modelrepo")
	files := fstest.MapFS{"models/a/model.yaml": {Data: []byte("name: A\n")}, "README.md": {Data: []byte("# x\n")}}
	made, err := Ensure(dir, files, time.Unix(1, 0))
	if err != nil || !made {
		t.Fatalf("made %v, %v; want made", made, err)
	}
	// The git program itself must be able to read the repository.
	out, err := exec.Command("git", "-C", dir, "-c", "safe.directory=*", "log", "--format=%s %D", "--stat").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "HEAD -> main") || !strings.Contains(string(out), "models/a/model.yaml") {
		t.Fatalf("%v\n%s; want strings.Contains(string(out), \"HEAD -> main\") && strings.Contains(string(out), \"models/a/model.yaml\")", err, out)
	}
	if out, err := exec.Command("git", "-C", dir, "-c", "safe.directory=*", "status", "--porcelain").Output(); err != nil || len(out) > 0 {
		t.Fatalf("not clean: %v %s; want len(out) <= 0", err, out)
	}
	// The user's edits stay.
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if made, err = Ensure(dir, files, time.Unix(2, 0)); err != nil || made {
		t.Fatalf("made %v, %v; want !made", made, err)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "README.md")); string(data) != "mine\n" {
		t.Fatalf("overwritten: %q; want string(data) == \"mine\\n\"", data)
	}
}

func TestEnsureRefusesForeignFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(dir, fstest.MapFS{}, time.Now()); err == nil || !strings.Contains(err.Error(), "is no git repository") {
		t.Fatalf(`got %v; want an error && strings.Contains(err.Error(), "is no git repository")`, err)
	}
}
