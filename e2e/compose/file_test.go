//go:build e2e

// Package compose checks the platform as containers: the promises of compose.yaml, and the refusals of make up.
package compose

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// file is docker compose's parsed form of compose.yaml.
type file struct {
	Services map[string]service `json:"services"`
	Networks map[string]struct {
		Internal bool `json:"internal"`
		IPAM     struct {
			Config []struct {
				Subnet  string `json:"subnet"`
				IPRange string `json:"ip_range"`
			} `json:"config"`
		} `json:"ipam"`
	} `json:"networks"`
}

type service struct {
	Image       string   `json:"image"`
	Command     []string `json:"command"`
	User        string   `json:"user"`
	ReadOnly    bool     `json:"read_only"`
	CapDrop     []string `json:"cap_drop"`
	SecurityOpt []string `json:"security_opt"`
	MemLimit    string   `json:"mem_limit"`
	NetworkMode string   `json:"network_mode"`
	Networks    map[string]*struct {
		Address string `json:"ipv4_address"`
	} `json:"networks"`
	Restart     string             `json:"restart"`
	Environment map[string]*string `json:"environment"`
	Profiles    []string           `json:"profiles"`
	Healthcheck *struct {
		Test []string `json:"test"`
	} `json:"healthcheck"`
	Ports []struct {
		HostIP string `json:"host_ip"`
	} `json:"ports"`
}

// dockerCompose is the tool that make up uses where Docker has no plugin.
func dockerCompose(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(harness.Root(t), "scripts", "tool.sh"), "docker-compose")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// loadFile reads compose.yaml and further files over it.
func loadFile(t *testing.T, more ...string) file {
	t.Helper()
	root := harness.Root(t)
	var args []string
	for _, name := range append([]string{"compose.yaml"}, more...) {
		args = append(args, "-f", filepath.Join(root, name))
	}
	cmd := exec.Command(dockerCompose(t), append(args, "--project-directory", root, "--profile", "*", "config", "--format", "json")...)
	cmd.Stderr = t.Output()
	// Without variables set in this environment, as for a person who has only this repository.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker compose config: %v", err)
	}
	var f file
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEveryServiceIsConfined(t *testing.T) {
	t.Parallel()
	for name, s := range loadFile(t).Services {
		if !s.ReadOnly {
			t.Errorf("%s: the root file system can be written; want read_only", name)
		}
		if !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s: cap_drop %v, security_opt %v; want ALL, no-new-privileges", name, s.CapDrop, s.SecurityOpt)
		}
		if s.MemLimit == "" {
			t.Errorf("%s: no mem_limit", name)
		}
		root := s.User == "" || strings.HasPrefix(s.User, "0")
		if root && name != "secrets" || root && s.NetworkMode != "none" {
			t.Errorf("%s runs as %q on network %q; want a user without privileges, or secrets without a network", name, s.User, s.NetworkMode)
		}
	}
}

func TestOnlyLoopbackIsPublished(t *testing.T) {
	t.Parallel()
	f := loadFile(t)
	for _, internal := range []string{"data", "tools", "proxy-metrics"} {
		if !f.Networks[internal].Internal {
			t.Errorf("the network %s is not internal", internal)
		}
	}
	for name, s := range f.Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s is published on %q; want 127.0.0.1", name, p.HostIP)
			}
		}
		if _, edge := s.Networks["edge"]; slices.Contains([]string{"postgres", "redis", "nats", "object-store", "worker", "metrics-store"}, name) && (edge || len(s.Ports) > 0) {
			t.Errorf("%s can be reached from outside: networks %v, ports %v", name, s.Networks, s.Ports)
		}
	}
}

func TestServicesAndTheirHealth(t *testing.T) {
	t.Parallel()
	f := loadFile(t)
	optional := []string{"object-store", "dashboards"}
	for _, name := range []string{"postgres", "redis", "nats", "object-store", "tracker", "orchestrator", "worker", "inference", "bus-bridge", "control-plane", "dashboard", "assistant", "evidence-api", "metrics-store", "dashboards", "proxy"} {
		s, ok := f.Services[name]
		if !ok {
			t.Errorf("no service %s", name)
			continue
		}
		if inProfile := len(s.Profiles) > 0; inProfile != slices.Contains(optional, name) {
			t.Errorf("%s has profiles %v; want some only for %v", name, s.Profiles, optional)
		}
		if s.Healthcheck == nil && !slices.Contains(optional, name) {
			t.Errorf("%s has no health check", name)
		}
	}
	for _, name := range []string{"migrate-control-plane", "migrate-inference", "migrate-assistant", "migrate-dashboard", "secrets", "evidence-store", "modelrepo"} {
		if s, ok := f.Services[name]; !ok || s.Restart != "no" {
			t.Errorf("%s: there %v, restart %q; want a service that runs once", name, ok, s.Restart)
		}
	}
}

// Secrets come from files: the environment that `docker inspect` shows has none.
func TestNoSecretInTheEnvironment(t *testing.T) {
	t.Parallel()
	for name, s := range loadFile(t).Services {
		for variable, value := range s.Environment {
			for _, word := range []string{"PASSWORD", "TOKEN", "SECRET", "KEY", "DATABASE_URL", "CREDENTIALS"} {
				if strings.Contains(variable, word) && !strings.HasSuffix(variable, "_FILE") && value != nil && *value != "" && variable != "ROOT_ACCESS_KEY" {
					t.Errorf("%s: %s is in the environment; want %s_FILE", name, variable, variable)
				}
			}
		}
	}
}

// Each file that a variable names is one that `stack secrets` writes for that service.
func TestSecretFilesAreThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command(harness.Bin(t, "stack"), "secrets", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checked := 0
	for name, s := range loadFile(t).Services {
		for variable, value := range s.Environment {
			if value == nil || !strings.HasPrefix(*value, "/run/secrets/") {
				continue
			}
			checked++
			folder := strings.TrimPrefix(name, "migrate-")
			if _, err := os.Stat(filepath.Join(dir, folder, filepath.Base(*value))); err != nil {
				t.Errorf("%s: %s is %s, but stack secrets writes no such file: %v", name, variable, *value, err)
			}
		}
	}
	if checked < 30 {
		t.Errorf("%d variables name a secret's file; want at least 30", checked)
	}
}

// The worker is the trainer: all of its variables are on the trainer's page.
func TestWorkerVariablesAreKnown(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "trainer.md"))
	if err != nil {
		t.Fatal(err)
	}
	for variable := range loadFile(t).Services["worker"].Environment {
		if name := strings.TrimSuffix(variable, "_FILE"); !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("worker: %s is not in docs/trainer.md", variable)
		}
	}
}

// Services with several replicas publish no port themselves: the second replica would find it taken.
func TestReplicasAreBehindTheProxy(t *testing.T) {
	t.Parallel()
	f := loadFile(t)
	for _, name := range []string{"control-plane", "dashboard", "inference", "assistant", "bus-bridge"} {
		if ports := f.Services[name].Ports; len(ports) > 0 {
			t.Errorf("%s publishes %v; want the proxy alone to", name, ports)
		}
	}
	if got := len(f.Services["proxy"].Ports); got != 6 {
		t.Errorf("the proxy publishes %d ports, want 6", got)
	}
}

// The dashboard trusts X-Forwarded-For from one address, which the proxy has and no other container can get. The proxy
// shares no second network with the services, where it would have an untrusted address.
func TestOnlyTheProxyIsTrusted(t *testing.T) {
	t.Parallel()
	f := loadFile(t)
	edge := f.Services["proxy"].Networks["edge"]
	trusted := f.Services["dashboard"].Environment["DASHBOARD_TRUSTED_PROXIES"]
	if edge == nil || trusted == nil || *trusted != edge.Address {
		t.Fatalf("the proxy's networks are %v and the dashboard trusts %v; want the proxy's address alone", f.Services["proxy"].Networks, trusted)
	}
	address, err := netip.ParseAddr(edge.Address)
	if err != nil {
		t.Fatal(err)
	}
	config := f.Networks["edge"].IPAM.Config
	if len(config) != 1 {
		t.Fatalf("the network edge has %d subnets, want 1", len(config))
	}
	if given, err := netip.ParsePrefix(config[0].IPRange); err != nil || given.Contains(address) {
		t.Errorf("other containers get addresses of %s (%v); want a range without %s", config[0].IPRange, err, address)
	}
	for _, name := range []string{"control-plane", "dashboard", "inference", "assistant", "bus-bridge"} {
		for network := range f.Services[name].Networks {
			if _, shared := f.Services["proxy"].Networks[network]; shared && network != "edge" {
				t.Errorf("%s also meets the proxy in the network %s", name, network)
			}
		}
	}
}
