package app

import (
	"slices"
	"strings"
)

// endpoint is one of the platform's servers that answer HTTP.
type endpoint struct {
	name  string // for people
	key   string // in runtime.json and in the output of status
	url   string
	probe string // answers 200 once the server is ready
}

// endpoints are all of them, in the order in which the start waits for them.
func (c Config) endpoints() []endpoint {
	return []endpoint{
		{"tracker", "tracker", c.trackerURL(), "/health"},
		{"orchestrator", "orchestrator", c.orchestratorURL(), "/health"},
		{"inference", "inference", c.inferenceURL(), "/readyz"},
		{"control plane", "control_plane", c.controlPlaneURL(), "/readyz"},
		{"evidence API", "evidence_api", c.evidenceURL(), "/readyz"},
		{"assistant", "assistant", c.assistantURL(), c.assistantProbe()},
		{"bus bridge", "bus", c.busURL(), "/readyz"},
		{"dashboard", "dashboard", c.dashboardURL(), "/readyz"},
	}
}

func httpURL(addr string) string { return "http://" + addr }

func (c Config) dashboardURL() string    { return httpURL(c.DashboardAddr) }
func (c Config) trackerURL() string      { return httpURL(c.TrackerAddr) }
func (c Config) orchestratorURL() string { return httpURL(c.OrchestratorAddr) + "/api" }
func (c Config) inferenceURL() string    { return httpURL(c.InferenceAddr) }
func (c Config) controlPlaneURL() string { return httpURL(c.ControlPlaneAddr) }
func (c Config) evidenceURL() string     { return httpURL(c.EvidenceAddr) }
func (c Config) busURL() string          { return httpURL(c.BusAddr) }
func (c Config) assistantURL() string    { return httpURL(c.AssistantAddr) }

// assistantProbe is readiness for the sample cluster, and liveness alone for a cluster of the user's: one that
// does not answer must neither keep the rest from starting nor make the platform unhealthy.
func (c Config) assistantProbe() string {
	if c.isSet("KUBECONFIG") || c.isSet("KUBERNETES_SERVICE_HOST") {
		return "/healthz"
	}
	return "/readyz"
}

// isSet reports whether the environment holds a variable that is not empty.
func (c Config) isSet(variable string) bool {
	return slices.ContainsFunc(c.environ, func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return name == variable && value != ""
	})
}
