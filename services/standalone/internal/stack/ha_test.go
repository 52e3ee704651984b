package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mlp-platform/platform/libs/coord/redisurl"
)

// The files of compose.ha.yaml are consistent: the brokers know each other, and the services every broker and sentinel.
func TestHASecretsFitTogether(t *testing.T) {
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
	for file, hosts := range map[string][]string{"ha/NATS_URL": {"@nats:4222", "@nats-2:4222", "@nats-3:4222"}, "bus-bridge-ha/BUS_NATS_URL": {"@nats:4222", "@nats-2:4222", "@nats-3:4222"}, "ha/REDIS_URL": {"@10.237.58.21:26379/", "addr=10.237.58.22:26379", "addr=10.237.58.23:26379"}} {
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

// Sentinels name no server and no sentinel: the name of a container that is gone holds a sentinel up for seconds.
func TestSentinelsKnowAddressesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteSecrets(dir, "192.168.7"); err != nil {
		t.Fatal(err)
	}
	for i, host := range sentinels {
		got := sentinelFile(t, dir, host)
		for _, want := range []string{"\nsentinel monitor platform 192.168.7.11 6379 2\n", fmt.Sprintf("\nsentinel announce-ip 192.168.7.2%d\n", i+1)} {
			if !strings.Contains(got, want) {
				t.Errorf("%s has no line %q:\n%s", host, strings.TrimSpace(want), got)
			}
		}
		if strings.Contains(got, "hostnames") {
			t.Errorf("%s resolves names, want addresses alone:\n%s", host, got)
		}
	}
}

func sentinelFile(t *testing.T, dir, host string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, host, "sentinel.conf"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A sentinel writes into its file which server it promoted; the next start must not undo that, unless the server has a
// new address.
func TestSentinelsKeepWhatTheyNoted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ noted, want string }{
		"the other server":         {"port 26379\nsentinel monitor platform 10.237.58.12 6379 2\n", "10.237.58.12"},
		"a server by name":         {"port 26379\nsentinel monitor platform redis-2 6379 2\n", "10.237.58.11"},
		"a server of another time": {"port 26379\nsentinel monitor platform 10.237.5.12 6379 2\n", "10.237.58.11"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := WriteSecrets(dir, ""); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "redis-sentinel-2", "sentinel.conf"), []byte(c.noted), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := WriteSecrets(dir, ""); err != nil {
				t.Fatal(err)
			}
			if got := sentinelFile(t, dir, "redis-sentinel-2"); !strings.Contains(got, "sentinel monitor platform "+c.want+" 6379 2\n") {
				t.Errorf("got %q, want the server at %s", got, c.want)
			}
		})
	}
}

func TestRefusedDataNetworks(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"10.237", "10.237.58.0", "10.237.58.", "10.237.256", "8.8.8", "data", "fd00"} {
		dir := t.TempDir()
		if err := WriteSecrets(dir, network); err == nil || !strings.Contains(err.Error(), "DATA_NETWORK must be the first three parts of a private network") {
			t.Errorf("%q: got %v, want that it is refused", network, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%q: it was refused and left %v, %v", network, left, err)
		}
	}
}
