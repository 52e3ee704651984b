package marginal

import (
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// ReportSchema is the name of the report.
const ReportSchema = "marginal-evidence-report-v0.1"

// Report is the marginal evidence of some candidates. The order of its keys is part of it.
type Report struct {
	Schema        string      `json:"schema"`
	GateID        string      `json:"gate_id"`
	EvidenceClass string      `json:"evidence_class"`
	Authority     string      `json:"authority"`
	Analysis      Analysis    `json:"analysis"`
	CurrentPanel  PanelReport `json:"current_panel"`
	Candidates    []Candidate `json:"candidates"`
	Warnings      []string    `json:"warnings"`
	Provenance    Provenance  `json:"provenance"`
}

// Analysis describes the comparison. Ids are in the order of the matrix.
type Analysis struct {
	Current    []string            `json:"current_verifier_ids"`
	Candidates []string            `json:"candidate_verifier_ids"`
	Bootstrap  *gatestat.Bootstrap `json:"bootstrap"`
	Quorum     float64             `json:"quorum"`
	Rows       int                 `json:"non_probe_candidates"`
	Probes     int                 `json:"probe_candidates"`
}

// PanelReport describes the current panel.
type PanelReport struct {
	NominalVotes  int      `json:"nominal_votes"`
	Error         float64  `json:"error"`
	Accuracy      float64  `json:"mean_verifier_accuracy"`
	Correlation   *float64 `json:"mean_pairwise_error_correlation"`
	Votes         *float64 `json:"effective_votes"`
	VotesCensored bool     `json:"effective_votes_censored"`
}

// States of a candidate.
const (
	Measured   = "measured"
	Unresolved = "unresolved"
)

// Reasons why a candidate is unresolved.
const (
	AugmentedCensored  = "augmented_effective_votes_censored"
	AugmentedUndefined = "augmented_effective_votes_undefined"
	Unmeasurable       = "candidate_error_correlation_unmeasurable"
	CurrentCensored    = "current_effective_votes_censored"
	CurrentUndefined   = "current_effective_votes_undefined"
	TooFewRows         = "insufficient_non_probe_candidates_for_inference"
)

// Candidate is the marginal evidence of one verifier.
type Candidate struct {
	ID                string            `json:"id"`
	Status            string            `json:"status"`
	Reasons           []string          `json:"unresolved_reasons"`
	Accuracy          float64           `json:"standalone_accuracy"`
	CurrentError      float64           `json:"current_panel_error"`
	AugmentedError    float64           `json:"augmented_panel_error"`
	ErrorDelta        float64           `json:"panel_error_delta"` // above 0: the panel with the candidate errs less
	CurrentVotes      *float64          `json:"current_effective_votes"`
	AugmentedVotes    *float64          `json:"augmented_effective_votes"`
	VotesDelta        *float64          `json:"delta_effective_votes"`
	CurrentCensored   bool              `json:"current_effective_votes_censored"`
	AugmentedCensored bool              `json:"augmented_effective_votes_censored"`
	Correlation       *float64          `json:"mean_error_correlation_with_current_panel"`
	Pairs             []PairCorrelation `json:"pairwise_error_correlations"`
	Transitions       Transitions       `json:"transition_counts"`
	Probes            *ProbeEffect      `json:"probe_effect"`
	Uncertainty       *Uncertainty      `json:"uncertainty"`
	Warnings          []string          `json:"warnings"`
}

// PairCorrelation is the correlation of the candidate's errors with one current verifier's; nil if unmeasurable.
type PairCorrelation struct {
	Current     string   `json:"current_verifier_id"`
	Correlation *float64 `json:"error_correlation"`
}

// Transitions counts rows by the effect of the candidate.
type Transitions struct {
	CorrectOnErrors  int `json:"candidate_correct_on_current_panel_errors"`
	WrongOnCorrect   int `json:"candidate_wrong_on_current_panel_correct_rows"`
	Changed          int `json:"panel_decisions_changed"`
	ChangedToCorrect int `json:"panel_decisions_changed_to_correct"`
	ChangedToWrong   int `json:"panel_decisions_changed_to_wrong"`
}

// ProbeEffect counts probes by the effect of the candidate.
type ProbeEffect struct {
	Total             int `json:"total"`
	CurrentBreached   int `json:"current_breached"`
	AugmentedBreached int `json:"augmented_breached"`
	// Prevented counts the probes that only the current panel accepts. Probes that the candidate adds are in
	// AugmentedBreached.
	Prevented     int     `json:"breaches_prevented"`
	CurrentRate   float64 `json:"current_breach_rate"`
	AugmentedRate float64 `json:"augmented_breach_rate"`
}

// Uncertainty holds the intervals of a candidate's deltas.
type Uncertainty struct {
	ErrorDelta gatestat.Metric `json:"panel_error_delta"`
	VotesDelta gatestat.Metric `json:"delta_effective_votes"`
}

// Provenance names the tool and the input of the report.
type Provenance struct {
	gate.Provenance
	AnalysisDigest string `json:"analysis_digest_sha256"`
}
