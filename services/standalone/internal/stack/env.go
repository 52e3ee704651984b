package stack

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
)

// PrintEnv prints the shell variables of the stack's clients on the engine's machine. The variables that choose
// published ports in compose.yaml are read from environ.
func PrintEnv(dir string, environ []string, out io.Writer) error {
	c, err := credentials.Load(dir)
	if err != nil {
		return fmt.Errorf("no stack was started here: %w", err)
	}
	set := map[string]string{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && value != "" {
			set[name] = value
		}
	}
	at := func(variable, port string) string {
		if p := set[variable]; p != "" {
			port = p
		}
		return "http://127.0.0.1:" + port
	}
	exports := c.Exports(credentials.Addresses{
		Dashboard: at("DASHBOARD_PORT", "8099"), ControlPlane: at("CONTROL_PLANE_PORT", "18002"), Serving: at("INFERENCE_PORT", "18001"),
		Tracker: at("TRACKER_PORT", "15000"), Orchestrator: at("ORCHESTRATOR_PORT", "14200") + "/api",
		Evidence: at("EVIDENCE_API_PORT", "8770"), Assistant: at("ASSISTANT_PORT", "18004"), Bus: at("BUS_BRIDGE_PORT", "18003"), DataDir: dir,
	})
	for line := range strings.Lines(exports) {
		// Files of the data directory of a single process, here on volumes; the broker publishes no port, and gRPC is off.
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !slices.Contains([]string{"PLATFORM_EVIDENCE_STORE", "PLATFORM_MODELREPO", "BUS_NATS_URL", "SERVING_GRPC_ADDR"}, name) {
			if _, err := io.WriteString(out, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// PrintPassword prints the dashboard's password for admins, or for viewers.
func PrintPassword(dir string, viewer bool, out io.Writer) error {
	c, err := credentials.Load(dir)
	if err != nil {
		return fmt.Errorf("no stack was started here: %w", err)
	}
	password := c.DashboardAdmin
	if viewer {
		password = c.DashboardViewer
	}
	_, err = fmt.Fprintln(out, password)
	return err
}
