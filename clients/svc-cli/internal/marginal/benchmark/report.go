package benchmark

import (
	"math/big"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal"
)

// ReportSchema is the name of the report.
const ReportSchema = "marginal-evidence-benchmark-report-v0.1"

// Report is the outcome of a benchmark. The order of its keys is part of it.
type Report struct {
	Schema        string     `json:"schema"`
	BenchmarkID   string     `json:"benchmark_id"`
	GateID        string     `json:"gate_id"`
	EvidenceClass string     `json:"evidence_class"`
	Authority     string     `json:"authority"`
	Analysis      Analysis   `json:"analysis"`
	Splits        Splits     `json:"splits"`
	Plan          Plan       `json:"selection_plan"`
	Results       []Result   `json:"holdout_results"`
	Warnings      []string   `json:"warnings"`
	Provenance    Provenance `json:"provenance"`
}

// Analysis describes the comparison. Ids are in the order of the design matrix.
type Analysis struct {
	Current    []string           `json:"current_verifier_ids"`
	Candidates []string           `json:"candidate_verifier_ids"`
	Families   map[string]string  `json:"verifier_families"`
	RandomSeed *big.Int           `json:"random_seed"`
	Bootstrap  gatestat.Bootstrap `json:"bootstrap"`
	Quorum     float64            `json:"quorum"`
}

// Splits are the two matrices.
type Splits struct {
	Design  Split `json:"design"`
	Holdout Split `json:"holdout"`
}

// Split is one matrix.
type Split struct {
	Matrix      string `json:"matrix"` // its path in the config
	InputDigest string `json:"input_digest_sha256"`
	Rows        int    `json:"non_probe_candidates"`
	Probes      int    `json:"probe_candidates"`
}

// What became of a choice on the holdout.
const (
	Evaluated           = "evaluated"
	EvaluatedUnresolved = "evaluated_with_unresolved_metrics"
	NotEvaluated        = "not_evaluated"
)

// Result is the outcome of one strategy's choice on the holdout. Without a choice everything is
// null.
type Result struct {
	Strategy        string                `json:"strategy"`
	SelectionStatus string                `json:"selection_status"`
	Verifier        *string               `json:"selected_verifier_id"`
	Status          string                `json:"status"`
	CandidateStatus *string               `json:"holdout_candidate_status"`
	ErrorDelta      *float64              `json:"panel_error_delta"`
	VotesDelta      *float64              `json:"delta_effective_votes"`
	Accuracy        *float64              `json:"standalone_accuracy"`
	Correlation     *float64              `json:"mean_error_correlation_with_current_panel"`
	Uncertainty     *marginal.Uncertainty `json:"uncertainty"`
	Probes          *marginal.ProbeEffect `json:"probe_effect"`
	Warnings        []string              `json:"warnings"`
}

// Provenance names the tool and the inputs of the report.
type Provenance struct {
	Tool         string `json:"tool"`
	ToolVersion  string `json:"tool_version"`
	ConfigDigest string `json:"config_digest_sha256"`
	PlanDigest   string `json:"selection_plan_digest_sha256"`
}
