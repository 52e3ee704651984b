package connectors

import (
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Status is a connector's state at a probe.
type Status string

// The states of a probed connector. The offline drivers never find one degraded; the
// readers of probes know the state all the same.
const (
	Healthy     Status = "healthy"
	Degraded    Status = "degraded"
	Unavailable Status = "unavailable"
	Disabled    Status = "disabled"
)

// Codes of failed probes.
const (
	UnknownDriver     = "unknown_driver"
	SecretUnavailable = "secret_unavailable"
)

// Capabilities are those of a driver, whatever its profile requests.
type Capabilities struct {
	Tiers              []string `json:"tiers"`
	TaskClasses        []string `json:"task_classes"`
	Tools              []string `json:"tools"`
	CandidateTypes     []string `json:"candidate_types"`
	MaxRisk            string   `json:"max_risk"`
	ExternalProcessing bool     `json:"external_processing"`
}

// Driver names a driver.
type Driver struct {
	Kind    string `json:"kind"`
	Driver  string `json:"driver"`
	Version string `json:"version"`
}

// Failure is why a connector is unavailable.
type Failure struct {
	Kind string `json:"kind"`
	Code string `json:"code"`
}

// Observed holds a probe's observations of the driver.
type Observed struct {
	Capabilities Capabilities `json:"capabilities"`
}

// Auth reports whether the profile refers to a secret. No probe reads one.
type Auth struct {
	Configured bool `json:"configured"`
}

// Probe is the result of a probe.
type Probe struct {
	ConnectionID string   `json:"connection_id"`
	Status       Status   `json:"status"`
	CheckedAt    string   `json:"checked_at"`
	Driver       Driver   `json:"driver"`
	Observed     Observed `json:"observed"`
	Auth         Auth     `json:"auth"`
	Warnings     []string `json:"warnings"`
	Failure      *Failure `json:"failure"`
}

// ProbeError is why there is no result.
type ProbeError struct {
	Code string `json:"code"`
}

// Inspection is a connector with its probe, or the reason why there is none.
type Inspection struct {
	ConnectionID string      `json:"connection_id"`
	Kind         string      `json:"kind"`
	Driver       string      `json:"driver"`
	Probe        *Probe      `json:"probe"`
	Error        *ProbeError `json:"error"`
}

const fakeVersion = "0.1"

// fakeDrivers are the drivers of this build: they replace real ones and make no requests.
func fakeDrivers() map[[2]string]Capabilities {
	return map[[2]string]Capabilities{
		{"scm", "fake-scm"}: {Tiers: []string{"T0"}, TaskClasses: []string{"scm"}, Tools: []string{"git"},
			CandidateTypes: []string{"repository_reference"}, MaxRisk: "medium"},
		{"agent", "fake-agent"}: {Tiers: []string{"T1", "T2"}, TaskClasses: []string{"coder", "docs", "tests"}, Tools: []string{"git", "pytest"},
			CandidateTypes: []string{"artifact_bundle", "github_pull_request"}, MaxRisk: "medium"},
		{"model", "fake-model"}: {Tiers: []string{"T1", "T2", "T3"}, TaskClasses: []string{"inference", "reasoning"}, Tools: []string{},
			CandidateTypes: []string{"text"}, MaxRisk: "medium", ExternalProcessing: true},
		{"execution", "fake-execution"}: {Tiers: []string{"T0"}, TaskClasses: []string{"execution"}, Tools: []string{"python", "shell"},
			CandidateTypes: []string{"command_result"}, MaxRisk: "medium"},
	}
}

// Inspect probes connectors offline: no network, no secret, no provider.
func Inspect(all []Connector, at time.Time) []Inspection {
	known, out := fakeDrivers(), make([]Inspection, 0, len(all))
	for _, c := range all {
		i := Inspection{ConnectionID: c.ID, Kind: c.Kind, Driver: c.Driver}
		if can, ok := known[[2]string{c.Kind, c.Driver}]; ok {
			i.Probe = probeConnector(c, can, at)
		} else {
			i.Error = &ProbeError{UnknownDriver}
		}
		out = append(out, i)
	}
	return out
}

func probeConnector(c Connector, can Capabilities, at time.Time) *Probe {
	p := &Probe{
		ConnectionID: c.ID, Status: Healthy, CheckedAt: spine.FormatTime(at),
		Driver:   Driver{c.Kind, c.Driver, fakeVersion},
		Observed: Observed{can}, Auth: Auth{c.AuthRefConfigured}, Warnings: []string{},
	}
	switch {
	case !c.Enabled:
		p.Status = Disabled
	case c.AuthRefConfigured:
		// A fake does not need a secret and reads none, so it cannot report one as present.
		p.Status, p.Failure = Unavailable, &Failure{"configuration", SecretUnavailable}
	}
	return p
}

// Outcome is the probe's status in one word, and for an unavailable connector the code
// of its failure.
func (i Inspection) Outcome() (status Status, reason string) {
	switch {
	case i.Error != nil:
		return Unavailable, i.Error.Code
	case i.Probe.Failure != nil:
		return i.Probe.Status, i.Probe.Failure.Code
	}
	return i.Probe.Status, string(i.Probe.Status)
}

// RiskRank orders the classes of risk from 0, the lowest.
func RiskRank(risk string) int { return slices.Index(spine.Risks(), risk) }

// TierRank orders the tiers from 0, the lowest.
func TierRank(tier string) int { return slices.Index(Tiers(), tier) }
