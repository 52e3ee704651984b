package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mlp-platform/platform/libs/coord/redisurl"
)

// What compose.ha.yaml reads fits together: the brokers know each other, and the services every broker and sentinel.
func TestHASecretsFitTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteSecrets(dir); err != nil {
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
	options, err := server.ProcessConfigFile(filepath.Join(dir, "nats-ha", "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for _, r := range options.Routes {
		routes = append(routes, r.Host)
		if password, _ := r.User.Password(); password == "" || password != options.Cluster.Password {
			t.Errorf("the route to %s has another password than the cluster asks for", r.Host)
		}
	}
	if got, want := strings.Join(routes, " "), "nats:6222 nats-2:6222 nats-3:6222"; got != want {
		t.Errorf("routes %q, want %q", got, want)
	}
	for file, hosts := range map[string][]string{"ha/NATS_URL": {"@nats:4222", "@nats-2:4222", "@nats-3:4222"}, "bus-bridge-ha/BUS_NATS_URL": {"@nats:4222", "@nats-2:4222", "@nats-3:4222"}, "ha/REDIS_URL": sentinels} {
		for _, host := range hosts {
			if !strings.Contains(read(file), host) {
				t.Errorf("%s does not name %s", file, host)
			}
		}
	}
	client, err := redisurl.Connect(read("ha/REDIS_URL"), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// A sentinel writes into its file which server it promoted; the next start must not undo that.
func TestSentinelsKeepWhatTheyNoted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteSecrets(dir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "redis-sentinel-2", "sentinel.conf")
	if err := os.WriteFile(file, []byte("sentinel monitor platform redis-2 6379 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteSecrets(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !strings.Contains(string(got), "redis-2") {
		t.Errorf("got %q, %v; want what the sentinel wrote", got, err)
	}
}
