package synthesis

// ReportSchema is the name of the report.
const ReportSchema = "marginal-evidence-synthesis-report-v0.1"

// Report is the synthesis. The order of its keys is part of it.
type Report struct {
	Schema        string     `json:"schema"`
	SynthesisID   string     `json:"synthesis_id"`
	EvidenceClass string     `json:"evidence_class"`
	Authority     string     `json:"authority"`
	Analysis      Analysis   `json:"analysis"`
	Cohorts       []Cohort   `json:"cohorts"` // by benchmark id
	Strategies    []Strategy `json:"strategies"`
	Warnings      []string   `json:"warnings"`
	Provenance    Provenance `json:"provenance"`
}

// Analysis describes the combined reports.
type Analysis struct {
	Mode        string `json:"mode"`
	RuleVersion string `json:"selection_rule_version"`
	Benchmarks  int    `json:"benchmark_count"`
	HoldoutRows int    `json:"total_holdout_non_probe_candidates"`
}

// Cohort is one benchmark.
type Cohort struct {
	BenchmarkID   string `json:"benchmark_id"`
	GateID        string `json:"gate_id"`
	Report        string `json:"report"` // its path in the config
	ReportDigest  string `json:"report_digest_sha256"`
	DesignDigest  string `json:"design_input_digest_sha256"`
	HoldoutDigest string `json:"holdout_input_digest_sha256"`
	HoldoutRows   int    `json:"holdout_non_probe_candidates"`
}

// Strategy is one strategy over all cohorts.
type Strategy struct {
	Strategy            string     `json:"strategy"`
	Cohorts             int        `json:"cohorts_total"`
	SelectionResolved   int        `json:"selection_resolved"`
	SelectionUnresolved int        `json:"selection_unresolved"`
	Evaluated           int        `json:"holdout_evaluated"`
	NotEvaluated        int        `json:"holdout_not_evaluated"`
	ErrorDelta          ErrorDelta `json:"panel_error_delta"`
	VotesDelta          VotesDelta `json:"effective_votes_delta"`
	Outcomes            []Outcome  `json:"cohort_outcomes"`
}

// ErrorDelta sums up the panel error deltas. Unresolved are all cohorts without one.
type ErrorDelta struct {
	Measured     int      `json:"measured"`
	Unresolved   int      `json:"unresolved"`
	Improved     int      `json:"improved"`
	Unchanged    int      `json:"unchanged"`
	Worsened     int      `json:"worsened"`
	MacroMean    *float64 `json:"macro_mean"`                // every cohort counts the same
	WeightedMean *float64 `json:"holdout_row_weighted_mean"` // every holdout row counts the same
}

// VotesDelta sums up the deltas of effective votes. Unresolved are all cohorts without one.
type VotesDelta struct {
	Measured   int      `json:"measured"`
	Unresolved int      `json:"unresolved"`
	Positive   int      `json:"positive"`
	Unchanged  int      `json:"unchanged"`
	Negative   int      `json:"negative"`
	MacroMean  *float64 `json:"macro_mean"`
}

// Outcome is one cohort's.
type Outcome struct {
	BenchmarkID     string   `json:"benchmark_id"`
	SelectionStatus string   `json:"selection_status"`
	Verifier        *string  `json:"selected_verifier_id"`
	Status          string   `json:"status"`
	CandidateStatus *string  `json:"holdout_candidate_status"`
	ErrorDelta      *float64 `json:"panel_error_delta"`
	VotesDelta      *float64 `json:"delta_effective_votes"`
}

// Provenance names the tool and the inputs of the report.
type Provenance struct {
	Tool         string `json:"tool"`
	ToolVersion  string `json:"tool_version"`
	ConfigDigest string `json:"config_digest_sha256"`
	// InputDigest is of the list of cohorts, C2: every report's and matrix's digest is in it.
	InputDigest string `json:"synthesis_input_digest_sha256"`
}
