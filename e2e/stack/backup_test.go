//go:build e2e && full

package stack

import (
	"archive/tar"
	"cmp"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/mlp-platform/platform/e2e/harness"
)

// A backup of the running stack is restored under another name, and a backup of that holds the same files with the same
// digests. The stack runs again, with the same data.
func TestBackupIsRestoredWithEqualDigests(t *testing.T) {
	id := notice(t, environment["CONTROL_PLANE_URL"], "BACKUP-"+names)
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.tar.zst"), filepath.Join(dir, "second.tar.zst")
	begin := time.Now()
	if _, err := harness.TryUp(t, "backup", first); err != nil {
		t.Fatal(err)
	}
	t.Logf("a backup took %.0f s, until all that was stopped was healthy again", time.Since(begin).Seconds())
	for service := range replicated {
		waitReady(t, service, len(harness.Containers(t, service)))
	}
	if a := call(t, http.MethodGet, environment["CONTROL_PLANE_URL"]+"/approvals/"+id, environment["CONTROL_PLANE_TOKEN"], nil); a.Status != http.StatusOK {
		t.Errorf("the record from before the backup: %d %s; want 200", a.Status, a.Body)
	}
	other := func(args ...string) {
		t.Helper()
		cmd := script(args...)
		cmd.Env = append(cmd.Env, "COMPOSE_PROJECT_NAME="+cmp.Or(os.Getenv("COMPOSE_PROJECT_NAME"), "mlp-platform")+"-restored", "PLATFORM_SECRETS_DIR="+filepath.Join(dir, "secrets"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	other("restore", first)
	t.Cleanup(func() { other("down", "--volumes") })
	other("backup", second)
	want, got := digestsOf(t, first), digestsOf(t, second)
	if !maps.Equal(want, got) {
		for name, digest := range want {
			if got[name] != digest {
				t.Errorf("%s: restored %q, want %q", name, got[name], digest)
			}
		}
		t.Errorf("%d files were restored, want %d", len(got), len(want))
	}
	if len(want) < 1000 { // of a database alone
		t.Errorf("the backup holds %d files, want those of all volumes", len(want))
	}
}

// digestsOf reads the list at the end of a backup, by name.
func digestsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	packed, err := zstd.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	digests := map[string]string{}
	for archive := tar.NewReader(packed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return digests
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != "SHA256SUMS" {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			digests[name] = digest
		}
	}
}
