package doctor_test

import (
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/doctor"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	probed := func(s connectors.Status, f *connectors.Failure) connectors.Inspection {
		return connectors.Inspection{ConnectionID: "c", Probe: &connectors.Probe{Status: s, Failure: f}}
	}
	healthy := probed(connectors.Healthy, nil)
	unknown := connectors.Inspection{ConnectionID: "c", Error: &connectors.ProbeError{Code: connectors.UnknownDriver}}
	for _, c := range []struct {
		found               []connectors.Inspection
		overall, state, why string // of the last
	}{
		{[]connectors.Inspection{healthy}, "PASS", "PASS", "healthy"},
		{[]connectors.Inspection{probed(connectors.Degraded, nil)}, "WARN", "WARN", "degraded"},
		{[]connectors.Inspection{probed(connectors.Disabled, nil), healthy}, "WARN", "PASS", "healthy"},
		{[]connectors.Inspection{healthy, probed(connectors.Unavailable, &connectors.Failure{Code: "secret_unavailable"})}, "FAIL", "FAIL", "secret_unavailable"},
		{[]connectors.Inspection{unknown, probed(connectors.Disabled, nil)}, "FAIL", "WARN", "disabled"},
		{[]connectors.Inspection{probed(connectors.Disabled, nil), unknown}, "FAIL", "FAIL", "unknown_driver"},
	} {
		got := doctor.Judge(c.found, at)
		last := got.Connections[len(got.Connections)-1]
		if got.Status != c.overall || last.State != c.state || last.Reason != c.why {
			t.Errorf("%+v, want %s, %s (%s)", got, c.overall, c.state, c.why)
		}
	}
	text, err := canon.C1(doctor.Judge([]connectors.Inspection{healthy}, at))
	if want := `{"checked_at":"2026-01-02T03:04:05Z","connections":[{"connection_id":"c","reason":"healthy","state":"PASS"}],"status":"PASS"}`; err != nil || string(text) != want {
		t.Errorf("%s %v; want string(text) == want", text, err)
	}
}
