package doctor

import (
	"slices"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// The verdicts, from the best.
const (
	Pass = "PASS"
	Warn = "WARN"
	Fail = "FAIL"
)

// Readiness is the answer about a profile.
type Readiness struct {
	CheckedAt   string       `json:"checked_at"`
	Status      string       `json:"status"` // the worst of the connectors'
	Connections []Connection `json:"connections"`
}

// Connection is the answer about one connector.
type Connection struct {
	ConnectionID string `json:"connection_id"`
	State        string `json:"state"`
	Reason       string `json:"reason"` // the probe's status, or the code it failed with
}

// Judge turns probes into verdicts.
func Judge(found []connectors.Inspection, at time.Time) Readiness {
	out := Readiness{CheckedAt: spine.FormatTime(at), Status: Pass, Connections: []Connection{}}
	order := []string{Pass, Warn, Fail}
	for _, i := range found {
		status, reason := i.Outcome()
		state := Fail
		switch status {
		case connectors.Healthy:
			state = Pass
		case connectors.Degraded, connectors.Disabled:
			state = Warn
		}
		out.Connections = append(out.Connections, Connection{i.ConnectionID, state, reason})
		if slices.Index(order, state) > slices.Index(order, out.Status) {
			out.Status = state
		}
	}
	return out
}
