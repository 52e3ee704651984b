package stack

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mlp-platform/platform/services/inference"
)

func TestSecretsStayAcrossStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteSecrets(dir, ""); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := read("control-plane/PLATFORM_DATABASE_URL")
	if err := WriteSecrets(dir, ""); err != nil {
		t.Fatal(err)
	}
	if again := read("control-plane/PLATFORM_DATABASE_URL"); again != first {
		t.Error("a second start made another database password; want the same")
	}
	var passwords databases
	if err := json.Unmarshal([]byte(read(databasesFile)), &passwords); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read("postgres-init/init.sql"), passwords.Platform) || !strings.Contains(first, passwords.Platform) {
		t.Error("Postgres and the control plane got different passwords; want the same")
	}
}

func TestSecretsAreClosedToOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteSecrets(dir, ""); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			files++
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %04o; want none for group and others", path, mode)
		}
		return nil
	})
	if err != nil || files < 30 {
		t.Errorf("%d files, %v; want at least 30", files, err)
	}
}

func TestWeakSecretsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, want string }{
		"placeholder":                 {"credentials.json", `{"ci_token": "changeme"}`, "ci_token in credentials.json is a placeholder"},
		"short":                       {"databases.json", `{"redis_password": "k3jf92ks"}`, "redis_password in databases.json must be 24 or more"},
		"characters that end a quote": {"databases.json", `{"platform_password": "abcdefghijklmnop'; DROP ROLE x"}`, "platform_password in databases.json must be 24 or more letters and digits"},
		"not JSON":                    {"databases.json", `nope`, "databases.json is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := WriteSecrets(dir, "")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
			if strings.Contains(c.text, "k3jf92ks") && strings.Contains(err.Error(), "k3jf92ks") {
				t.Error("the error quotes the secret")
			}
			if _, err := os.Stat(filepath.Join(dir, "control-plane")); err == nil {
				t.Error("files were written for a service; want none")
			}
		})
	}
}

func TestBrokerUsersOfTheBus(t *testing.T) {
	t.Parallel()
	if got, want := busRequests, inference.BusRequests(); !slices.Equal(got, want) {
		t.Errorf("requests %v; want the subjects that the bridge serves, %v", got, want)
	}
	if !slices.Contains(busReplies, inference.BusResults) {
		t.Errorf("replies %v; want %s in them", busReplies, inference.BusResults)
	}
	dir := t.TempDir()
	if err := WriteSecrets(dir, ""); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(filepath.Join(dir, "nats", "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	limited, accounts := map[string]bool{}, map[string]string{}
	for _, u := range options.Users {
		limited[u.Username], accounts[u.Username] = u.Permissions != nil, u.Account.Name
	}
	if want := map[string]string{"platform": "PLATFORM", "bus": "BUS", "bus-bridge": "BUS"}; !maps.Equal(accounts, want) {
		t.Errorf("accounts %v; want %v", accounts, want)
	}
	if want := map[string]bool{"platform": false, "bus": true, "bus-bridge": true}; !maps.Equal(limited, want) {
		t.Errorf("users and whether they are limited: %v; want %v", limited, want)
	}
}
