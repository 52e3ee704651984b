package gate

import (
	"math/big"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// Names of the reports.
const (
	ReportSchema          = "gate-audit-report-v0.1"
	BootstrapReportSchema = "gate-audit-report-v0.2" // with the section of intervals
	DependenceSchema      = "gate-audit-dependence-v0.1"
	// DiagnosticOnly is the authority of what describes verifiers without judging a gate.
	DiagnosticOnly = "diagnostic_only"
)

// Report is the audit of a gate. The order of its keys is part of it.
type Report struct {
	Schema        string           `json:"schema"`
	GateID        string           `json:"gate_id"`
	EvidenceClass string           `json:"evidence_class"`
	Inputs        Inputs           `json:"inputs"`
	Verifiers     []VerifierReport `json:"verifiers"`
	Panel         PanelReport      `json:"panel"`
	Uncertainty   *Uncertainty     `json:"uncertainty,omitempty"`
	Probes        *Probes          `json:"probes"`
	Warnings      []string         `json:"warnings"`
	Provenance    Provenance       `json:"provenance"`
}

// Inputs counts the content of the matrix.
type Inputs struct {
	Candidates         int `json:"candidates"`
	NonProbeCandidates int `json:"non_probe_candidates"`
	ProbeCandidates    int `json:"probe_candidates"`
	Verifiers          int `json:"verifiers"`
	KnownGood          int `json:"known_good"` // of those that are no probes
	KnownBad           int `json:"known_bad"`
}

// VerifierReport describes one verifier.
type VerifierReport struct {
	ID       string  `json:"id"`
	Accuracy float64 `json:"accuracy"`
	Errors   int     `json:"errors"`
}

// PanelReport describes all verifiers together.
type PanelReport struct {
	Quorum       float64  `json:"quorum"`
	NominalVotes int      `json:"nominal_votes"`
	Accuracy     float64  `json:"mean_verifier_accuracy"`
	Correlation  *float64 `json:"mean_pairwise_error_correlation"`
	SkippedPairs int      `json:"skipped_correlation_pairs"`
	Error        float64  `json:"error"`
	FalseAccept  *float64 `json:"false_accept_rate"`
	FalseReject  *float64 `json:"false_reject_rate"`
	Votes        *float64 `json:"effective_votes"`
	Heuristic    *float64 `json:"heuristic_n_eff"`
	Ceiling      any      `json:"effective_votes_ceiling"` // a float64, Unbounded or nil
}

// Unbounded is the ceiling of verifiers whose errors are not positively correlated.
const Unbounded = "unbounded"

// Uncertainty is the section of a bootstrap.
type Uncertainty struct {
	Method          string   `json:"method"`
	SamplingUnit    string   `json:"sampling_unit"`
	ConfidenceLevel float64  `json:"confidence_level"`
	Replicates      int      `json:"replicates"`
	Seed            *big.Int `json:"seed"`
	Rows            int      `json:"non_probe_candidates"`
	MinRows         int      `json:"min_candidates_for_inference"`
	Sufficient      bool     `json:"sufficient_for_inference"`
	Metrics         *Metrics `json:"metrics"`
}

// Metrics are the figures with an interval.
type Metrics struct {
	Error       gatestat.Metric `json:"panel_error"`
	Accuracy    gatestat.Metric `json:"mean_verifier_accuracy"`
	Correlation gatestat.Metric `json:"mean_pairwise_error_correlation"`
	Votes       VotesMetric     `json:"effective_votes"`
}

// VotesMetric also reports whether the upper end is at the limit of what can be measured.
type VotesMetric struct {
	gatestat.Metric
	HighCensored bool `json:"ci_high_censored"`
}

// Probes counts the probes that the panel accepted.
type Probes struct {
	ProbeCount
	ByKind map[string]ProbeCount `json:"by_kind"`
}

// ProbeCount counts probes.
type ProbeCount struct {
	Total    int     `json:"total"`
	Breached int     `json:"breached"`
	Rate     float64 `json:"breach_rate"`
}

// Provenance names the tool and the input of a report.
type Provenance struct {
	Tool        string `json:"tool"`
	ToolVersion string `json:"tool_version"`
	InputDigest string `json:"input_digest_sha256"`
}

// Tool is the name of the program in a provenance.
const Tool = "svc"

// Dependence shows which verifiers are wrong together.
type Dependence struct {
	Schema        string     `json:"schema"`
	GateID        string     `json:"gate_id"`
	EvidenceClass string     `json:"evidence_class"`
	Authority     string     `json:"authority"`
	Rows          int        `json:"non_probe_candidate_count"`
	VerifierIDs   []string   `json:"verifier_ids"`
	Pairs         []Pair     `json:"pairs"`
	Warnings      []string   `json:"warnings"`
	Provenance    Provenance `json:"provenance"`
}

// Pair is two verifiers.
type Pair struct {
	A          string   `json:"verifier_a"`
	B          string   `json:"verifier_b"`
	Phi        *float64 `json:"phi_error"` // nil unless measurable
	Measurable bool     `json:"measurable"`
	Joint      int      `json:"joint_error_count"`
	AErrors    int      `json:"a_error_count"`
	BErrors    int      `json:"b_error_count"`
}
