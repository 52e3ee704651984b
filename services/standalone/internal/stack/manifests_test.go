package stack

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The chart reads each service's files under the names that compose mounts.
func TestSecretsAsManifests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteSecrets(dir, ""); err != nil {
		t.Fatal(err)
	}
	printed := func() map[string]map[string][]byte {
		var out bytes.Buffer
		if err := PrintManifests(dir, "ml", &out); err != nil {
			t.Fatal(err)
		}
		var list struct {
			Kind  string
			Items []kubernetesSecret
		}
		if err := json.Unmarshal(out.Bytes(), &list); err != nil || list.Kind != "List" {
			t.Fatalf("got kind %q, %v, want a List", list.Kind, err)
		}
		byName := map[string]map[string][]byte{}
		for _, s := range list.Items {
			byName[s.Metadata["name"]] = s.Data
		}
		return byName
	}
	first := printed()
	for _, service := range charted {
		want, err := readFolder(filepath.Join(dir, service))
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range want {
			if got := first["ml-"+service][name]; !bytes.Equal(got, content) {
				t.Errorf("%s of ml-%s: got %d bytes, want the file's %d", name, service, len(got), len(content))
			}
		}
	}
	key := first["ml-control-plane"][auditKey]
	if !bytes.HasPrefix(key, []byte("-----BEGIN PRIVATE KEY-----\n")) {
		t.Errorf("got %d bytes as key of the ledger, want one in PEM", len(key))
	}
	if again := printed()["ml-control-plane"][auditKey]; !bytes.Equal(again, key) {
		t.Error("got another key of the ledger at the second call, want the first one: a changed key ends the chain's proof")
	}
	for file, release := range map[string]string{dir: "Not_A_Name", t.TempDir(): "ml"} {
		if err := PrintManifests(file, release, &bytes.Buffer{}); err == nil {
			t.Errorf("PrintManifests(%s, %q): got no error, want one", file, release)
		}
	}
}

// A mounted Secret is a folder of links into another, readable for a group.
func TestCopiesAreForOneUser(t *testing.T) {
	t.Parallel()
	mounted, to := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(mounted, "..data"), 0o755),
		os.WriteFile(filepath.Join(mounted, "..data", "token"), []byte("s3cret"), 0o440),
		os.Symlink("..data/token", filepath.Join(mounted, "token")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := CopySecrets(mounted, to); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v, want the token alone", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	if raw, err := os.ReadFile(filepath.Join(to, "token")); err != nil || string(raw) != "s3cret" {
		t.Errorf("got %q, %v, want the secret", raw, err)
	}
	if err := CopySecrets(t.TempDir(), to); err == nil || !strings.Contains(err.Error(), "no secrets") {
		t.Errorf("got %v for an empty folder, want an error", err)
	}
}
