package localloop

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/control"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/report"
)

// The warnings of a report. The first is in every report.
const (
	warnBase           = "Worker success is not verified correctness."
	warnDisagreement   = "The verifiers' recommendations differ; neither is a decision."
	warnControlFailure = "At least one attempt ended in an error, so its candidate was not judged."
	warnNoAdvice       = "No attempt has a recommendation."
)

// The files of a run, beside the verification results.
const (
	RecordFile   = "run-record.json"
	ReportFile   = "evidence-report.json"
	MarkdownFile = "evidence-report.md"
	ReplayFile   = "replay-source.json"
	StepsFile    = "NEXT_STEPS.md"
)

// ReplayKind is the kind of a replay source.
const ReplayKind = "svc-replay-source"

// ReplaySource names the inputs and outputs of a run.
type ReplaySource struct {
	SchemaVersion          string             `json:"schema_version"`
	Kind                   string             `json:"kind"`
	Config                 string             `json:"config"` // its file name; its folder can be anywhere
	ConfigDigest           string             `json:"config_digest"`
	RunRecord              string             `json:"run_record"`
	EvidenceReportJSON     string             `json:"evidence_report_json"`
	EvidenceReportMarkdown string             `json:"evidence_report_markdown"`
	VerificationResults    map[string]*string `json:"verification_results"` // by attempt; null if it was not verified
}

// outcome makes every document of a run and every file.
func (s *Source) outcome(unit *workunit.Unit, ctl *control.Control, attempts []attempt) (*Outcome, error) {
	out := &Outcome{Record: s.record(unit, ctl, attempts), Results: map[string]*verification.Result{}, Files: map[string][]byte{}}
	out.Report = evidenceReport(out.Record)
	if err := out.Report.Check(); err != nil {
		return nil, fmt.Errorf("the evidence report is not valid: %w", err)
	}
	replay := ReplaySource{
		SchemaVersion: RecordVersion, Kind: ReplayKind, Config: s.Name, ConfigDigest: s.Config.Digest,
		RunRecord: RecordFile, EvidenceReportJSON: ReportFile, EvidenceReportMarkdown: MarkdownFile, VerificationResults: map[string]*string{},
	}
	documents := map[string]any{RecordFile: out.Record, ReportFile: out.Report}
	for _, a := range attempts {
		replay.VerificationResults[a.config.ID] = nil
		if a.result != nil {
			name := a.config.ResultFile()
			replay.VerificationResults[a.config.ID] = &name
			out.Results[a.config.ID] = a.result
			documents[name] = a.result
		}
	}
	documents[ReplayFile] = replay
	for name, doc := range documents {
		data, err := writeDocument(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.Files[name] = data
	}
	out.Files[MarkdownFile] = renderMarkdown(out, attempts)
	out.Files[StepsFile] = nextSteps(out, sourceRevision(unit, ctl, attempts))
	return out, nil
}

// writeDocument returns a document in form P.
func writeDocument(doc any) ([]byte, error) {
	v, err := canon.From(doc)
	if err != nil {
		return nil, err
	}
	return canon.P(v)
}

// FileNames lists the files of a run, sorted.
func (o *Outcome) FileNames() []string { return slices.Sorted(maps.Keys(o.Files)) }

// evidenceReport makes the report of a run from its record alone.
func evidenceReport(rec *Record) *report.Report {
	r := &report.Report{
		SchemaVersion: report.SchemaVersion, Kind: report.Kind, RunID: rec.RunID, SourceRunKind: report.SourceRunKind,
		SourceRunDigest: canon.Digest(rec), SourceConfigDigest: rec.ConfigDigest, OrchestratorVersion: rec.OrchestratorVersion,
		WorkUnit:             report.WorkUnit(rec.WorkUnit),
		VerifierPolicyDigest: rec.VerifierPolicyDigest,
		HumanDecision:        report.Decision{Status: report.Pending, IntegrationAuthority: report.IntegrationAuthority},
	}
	for _, a := range rec.Attempts {
		r.Attempts = append(r.Attempts, evidenceAttempt(a))
	}
	r.Summary = report.Summarize(r.Attempts)
	r.Warnings = reportWarnings(r)
	return r
}

func evidenceAttempt(a AttemptRecord) report.Attempt {
	out := report.Attempt{AttemptID: a.AttemptID, Order: a.Order, WorkerAdapter: a.WorkerAdapter, State: a.State, EvidenceState: a.State, Error: a.Error}
	if m := a.ResultManifest; m != nil {
		out.Worker = &report.Worker{ID: m.WorkerID, Status: m.WorkerStatus, ResultManifestID: m.ID, ResultManifestDigest: m.Digest}
	}
	v := a.Verification
	if v == nil {
		return out
	}
	out.Verifier = &report.Verifier{ID: v.VerifierID, Status: v.Status, Recommendation: v.Recommendation, VerificationSemanticDigest: v.SemanticDigest, Checks: []report.Check{}}
	for _, c := range v.Checks {
		out.Verifier.Checks = append(out.Verifier.Checks, report.Check{ID: c.ID, Status: c.Status, Required: c.Required})
	}
	switch v.Recommendation {
	case report.AcceptCandidate:
		out.EvidenceState = report.Supported
	case report.RejectCandidate:
		out.EvidenceState = report.Rejected
	default:
		out.EvidenceState = report.Inconclusive
	}
	return out
}

func reportWarnings(r *report.Report) []string {
	out := []string{warnBase}
	if r.Summary.VerificationDisagreement {
		out = append(out, warnDisagreement)
	}
	if r.Summary.ControlFailurePresent {
		out = append(out, warnControlFailure)
	}
	if r.Summary.ControlErrors == r.Summary.AttemptCount {
		out = append(out, warnNoAdvice)
	}
	return out
}

// sourceRevision returns the revision that the run was about, or "" if it is not
// known.
func sourceRevision(unit *workunit.Unit, ctl *control.Control, attempts []attempt) string {
	if ctl.SourceRevision != "" {
		return ctl.SourceRevision
	}
	found := unit.SourceRevision
	for _, a := range attempts {
		switch {
		case a.manifest == nil || a.manifest.SourceRevision == found:
		case found != "":
			return "" // they differ
		default:
			found = a.manifest.SourceRevision
		}
	}
	return found
}
