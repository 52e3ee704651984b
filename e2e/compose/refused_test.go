//go:build e2e

package compose

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// The reason why a stack cannot start is one clear sentence, and nothing is started.
func TestRefusedUps(t *testing.T) {
	t.Parallel()
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	_, port, err := net.SplitHostPort(held.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		docker string // the stand-in for the command
		env    []string
		want   string
	}{
		"port in use":            {composed("5.1.2"), []string{"DASHBOARD_PORT=" + port}, "in use by other programs: " + port + " (DASHBOARD_PORT)"},
		"port that is none":      {composed("5.1.2"), []string{"INFERENCE_PORT=99999"}, "INFERENCE_PORT must be a port of 1 to 65535, not '99999'"},
		"no engine answers":      {"exit 1", []string{"DOCKER_HOST=unix:///nonexistent"}, "no Docker engine answers at DOCKER_HOST=unix:///nonexistent"},
		"unknown image source":   {composed("5.1.2"), []string{"PLATFORM_IMAGES=magic"}, "PLATFORM_IMAGES must be auto, build, assemble or none, not 'magic'"},
		"neither true nor false": {composed("5.1.2"), []string{"PLATFORM_HA=yes"}, "PLATFORM_HA must be true or false, not 'yes'"},
		"weak secret":            {composed("5.1.2"), []string{"PLATFORM_IMAGES=none"}, "are refused: ci_token in credentials.json is a placeholder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+c.docker+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			// The other ports are free ones, whatever runs on this machine.
			env := []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "PLATFORM_SECRETS_DIR=" + filepath.Join(dir, "secrets")}
			for i, variable := range portVariables {
				_, free, err := net.SplitHostPort(harness.FreePorts(t, len(portVariables))[i])
				if err != nil {
					t.Fatal(err)
				}
				env = append(env, variable+"="+free)
			}
			cmd := exec.Command(filepath.Join(harness.Root(t), "scripts", "up.sh"), "up")
			cmd.Env = append(env, c.env...)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("got %v\n%s\nwant an error and %q", err, out, c.want)
			}
			if strings.Contains(string(out), "STARTED") {
				t.Errorf("something was started:\n%s", out)
			}
		})
	}
}

var portVariables = []string{"DASHBOARD_PORT", "DASHBOARD_TOOLS_PORT", "CONTROL_PLANE_PORT", "INFERENCE_PORT", "ASSISTANT_PORT", "BUS_BRIDGE_PORT", "EVIDENCE_API_PORT", "TRACKER_PORT", "ORCHESTRATOR_PORT"}

// composed simulates a docker with this version of compose, no container, and a secrets tool that refuses.
func composed(version string) string {
	return `case "$*" in
*"compose version"*) echo ` + version + ` ;;
*" ps -q"*) ;;
*" up "*) echo STARTED ;;
run*" secrets "*) echo "stack: ci_token in credentials.json is a placeholder" >&2; exit 1 ;;
esac`
}
