//go:build e2e

// Package compose checks the platform as containers: what compose.yaml promises, and what make up refuses.
package compose

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// file is what docker compose makes of compose.yaml.
type file struct {
	Services map[string]service `json:"services"`
	Networks map[string]struct {
		Internal bool `json:"internal"`
	} `json:"networks"`
}

type service struct {
	Image       string             `json:"image"`
	User        string             `json:"user"`
	ReadOnly    bool               `json:"read_only"`
	CapDrop     []string           `json:"cap_drop"`
	SecurityOpt []string           `json:"security_opt"`
	MemLimit    string             `json:"mem_limit"`
	NetworkMode string             `json:"network_mode"`
	Networks    map[string]any     `json:"networks"`
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

func loadFile(t *testing.T) file {
	t.Helper()
	root := harness.Root(t)
	cmd := exec.Command(dockerCompose(t), "-f", filepath.Join(root, "compose.yaml"), "--project-directory", root, "--profile", "*", "config", "--format", "json")
	cmd.Stderr = t.Output()
	// Without a variable that somebody may have set, as for a person who has only this repository.
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
	for _, internal := range []string{"data", "tools"} {
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
	for _, name := range []string{"postgres", "redis", "nats", "object-store", "tracker", "orchestrator", "worker", "inference", "bus-bridge", "control-plane", "dashboard", "assistant", "evidence-api", "metrics-store", "dashboards"} {
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

// Secrets come from files: what `docker inspect` shows of the environment is no secret.
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
