package connectors_test

import (
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func wrapConnector(c connectors.Connector) canon.Value {
	return canon.MustFrom(document.NewConnection(c.Connection))
}

func newConnector(kind, driver string) connectors.Connector {
	return connectors.Connector{Connection: spine.Connection{ID: "c", Kind: kind, Driver: driver, Enabled: true}}
}

// The fakes of the contract, to the byte.
func TestProbes(t *testing.T) {
	t.Parallel()
	probed := func(kind, driver, observed, tail string) string {
		return `{"connection_id":"c","driver":"` + driver + `","error":null,"kind":"` + kind + `","probe":{"auth":{"configured":false},"checked_at":"2026-01-02T03:04:05Z",` +
			`"connection_id":"c","driver":{"driver":"` + driver + `","kind":"` + kind + `","version":"0.1"},"failure":null,"observed":{"capabilities":{` + observed +
			`}},"status":"` + tail + `","warnings":[]}}`
	}
	for _, c := range []struct{ kind, driver, want string }{
		{"scm", "fake-scm", probed("scm", "fake-scm", `"candidate_types":["repository_reference"],"external_processing":false,"max_risk":"medium","task_classes":["scm"],"tiers":["T0"],"tools":["git"]`, "healthy")},
		{"agent", "fake-agent", probed("agent", "fake-agent", `"candidate_types":["artifact_bundle","github_pull_request"],"external_processing":false,"max_risk":"medium","task_classes":["coder","docs","tests"],"tiers":["T1","T2"],"tools":["git","pytest"]`, "healthy")},
		{"model", "fake-model", probed("model", "fake-model", `"candidate_types":["text"],"external_processing":true,"max_risk":"medium","task_classes":["inference","reasoning"],"tiers":["T1","T2","T3"],"tools":[]`, "healthy")},
		{"execution", "fake-execution", probed("execution", "fake-execution", `"candidate_types":["command_result"],"external_processing":false,"max_risk":"medium","task_classes":["execution"],"tiers":["T0"],"tools":["python","shell"]`, "healthy")},
		{"agent", "fake-scm", `{"connection_id":"c","driver":"fake-scm","error":{"code":"unknown_driver"},"kind":"agent","probe":null}`},
	} {
		got, err := canon.C1(connectors.Inspect([]connectors.Connector{newConnector(c.kind, c.driver)}, at)[0])
		if err != nil || string(got) != c.want {
			t.Errorf("%s/%s:\n%s\n%s", c.kind, c.driver, got, c.want)
		}
	}
}

func TestProbeOutcomes(t *testing.T) {
	t.Parallel()
	off, ref, both := newConnector("agent", "fake-agent"), newConnector("agent", "fake-agent"), newConnector("agent", "fake-agent")
	off.Enabled, ref.AuthRefConfigured = false, true
	both.Enabled, both.AuthRefConfigured = false, true
	for _, c := range []struct {
		connector connectors.Connector
		status    connectors.Status
		reason    string
	}{
		{newConnector("scm", "fake-scm"), connectors.Healthy, "healthy"},
		{off, connectors.Disabled, "disabled"},
		{ref, connectors.Unavailable, connectors.SecretUnavailable},
		{both, connectors.Disabled, "disabled"},
		{newConnector("scm", "git"), connectors.Unavailable, connectors.UnknownDriver},
	} {
		i := connectors.Inspect([]connectors.Connector{c.connector}, at)[0]
		if status, reason := i.Outcome(); status != c.status || reason != c.reason {
			t.Errorf("%+v: %s %s; want status == c.status && reason == c.reason", c.connector, status, reason)
		}
		if p := i.Probe; p != nil && (p.Auth.Configured != c.connector.AuthRefConfigured || (p.Failure != nil) != (p.Status == connectors.Unavailable)) {
			t.Errorf("%+v; want (p == nil || !p.Auth.Configured != c.connector.AuthRefConfigured || (p.Failure != nil) != (p.Status == connectors.Unavailable))", p)
		}
	}
}
