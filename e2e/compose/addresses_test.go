//go:build e2e

package compose

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// Servers that may be recreated have reserved addresses, and the secrets name these.
func TestReplacedServersHaveFixedAddresses(t *testing.T) {
	t.Parallel()
	f := loadFile(t, "compose.ha.yaml")
	secrets := t.TempDir()
	if out, err := exec.Command(harness.Bin(t, "stack"), "secrets", secrets).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(secrets, "redis-sentinel-1", "sentinel.conf"))
	if err != nil {
		t.Fatal(err)
	}
	url, err := os.ReadFile(filepath.Join(secrets, "ha", "REDIS_URL"))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Networks["data"].IPAM.Config) != 1 {
		t.Fatalf("the network data has %d subnets, want 1", len(f.Networks["data"].IPAM.Config))
	}
	config := f.Networks["data"].IPAM.Config[0]
	subnet, given := netip.MustParsePrefix(config.Subnet), netip.MustParsePrefix(config.IPRange)
	address := func(name string) string {
		t.Helper()
		data := f.Services[name].Networks["data"]
		if data == nil {
			t.Fatalf("%s is in no network data", name)
		}
		a, err := netip.ParseAddr(data.Address)
		if err != nil || !subnet.Contains(a) || given.Contains(a) {
			t.Errorf("%s has the address %q; want one of %s that no other container gets (%s)", name, data.Address, subnet, given)
		}
		return data.Address
	}
	master, other := address("redis"), address("redis-2")
	if want := "sentinel monitor platform " + master + " 6379 2"; !strings.Contains(string(text), want) {
		t.Errorf("the sentinels' file is\n%s\nwant %q", text, want)
	}
	for name, own := range map[string]string{"redis": master, "redis-2": other} {
		command := f.Services[name].Command
		if i := slices.Index(command, "--replica-announce-ip"); i < 0 || i+1 >= len(command) || command[i+1] != own {
			t.Errorf("%s runs %v; want that it announces %s", name, command, own)
		}
	}
	for _, name := range []string{"redis-sentinel-1", "redis-sentinel-2", "redis-sentinel-3"} {
		if a := address(name); !strings.Contains(string(url), a+":26379") {
			t.Errorf("services do not know %s at %s", name, a)
		}
	}
	for _, name := range []string{"postgres-1", "postgres-2"} {
		a := address(name)
		for _, variable := range []string{"PATRONI_POSTGRESQL_CONNECT_ADDRESS", "PATRONI_RESTAPI_CONNECT_ADDRESS"} {
			if v := f.Services[name].Environment[variable]; v == nil || !strings.HasPrefix(*v, a+":") {
				t.Errorf("%s: %s is %v, want %s", name, variable, v, a)
			}
		}
	}
	// Clients learn the master's address from the sentinels, and must be able to reach it.
	for _, name := range []string{"control-plane", "inference", "dashboard", "assistant"} {
		if _, in := f.Services[name].Networks["data"]; !in {
			t.Errorf("%s is not in the network data", name)
		}
	}
}

// Changing the network by its variable changes its addresses in the secrets.
func TestSecretsFollowTheDataNetwork(t *testing.T) {
	t.Parallel()
	secrets := t.TempDir()
	cmd := exec.Command(harness.Bin(t, "stack"), "secrets", secrets)
	cmd.Env = append(os.Environ(), "DATA_NETWORK=172.20.9")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for file, want := range map[string]string{"ha/REDIS_URL": "@172.20.9.21:26379/", "redis-sentinel-3/sentinel.conf": "\nsentinel announce-ip 172.20.9.23\n"} {
		if text, err := os.ReadFile(filepath.Join(secrets, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is %q, %v; want %q in it", file, text, err, want)
		}
	}
}
