package marginal

import (
	"context"
	"fmt"

	"github.com/mlp-platform/platform/libs/evidence/canon"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// Options of an analysis.
type Options struct {
	Current, Candidates []string // verifiers; without candidates, all that are not current
	Version             string   // of the program, for the provenance
	Bootstrap           *gatestat.Bootstrap
	Progress            gatestat.Progress
}

// Analyse makes the report.
func Analyse(ctx context.Context, m *gate.Matrix, o Options) (*Report, error) {
	s, err := Select(m, o.Current, o.Candidates)
	if err != nil {
		return nil, err
	}
	candidates, err := Measure(ctx, m, s, o.Bootstrap, o.Progress)
	if err != nil {
		return nil, err
	}
	panel := m.Measure(m.Panel(s.Current))
	r := &Report{
		Schema: ReportSchema, GateID: m.GateID, EvidenceClass: m.EvidenceClass, Authority: gate.DiagnosticOnly,
		Analysis: Analysis{
			Current: m.IDs(s.Current), Candidates: m.IDs(s.Candidates), Bootstrap: o.Bootstrap,
			Quorum: m.Quorum, Rows: len(m.Rows()), Probes: len(m.Probes()),
		},
		CurrentPanel: PanelReport{
			NominalVotes: len(s.Current), Error: panel.Error, Accuracy: panel.Accuracy, Correlation: panel.Correlation,
			Votes: panel.Votes, VotesCensored: panel.Censored(),
		},
		Candidates: candidates, Warnings: Warnings(m, panel),
	}
	r.Provenance.Provenance = gate.Provenance{Tool: gate.Tool, ToolVersion: o.Version, InputDigest: m.Digest}
	r.Provenance.AnalysisDigest = r.Analysis.digest()
	return r, nil
}

// digest covers the question, not the content of the matrix.
func (a Analysis) digest() string {
	return canon.DigestHexC2(canon.MustFrom(struct {
		Current    []string            `json:"current_verifier_ids"`
		Candidates []string            `json:"candidate_verifier_ids"`
		Bootstrap  *gatestat.Bootstrap `json:"bootstrap"`
	}{a.Current, a.Candidates, a.Bootstrap}))
}

// Warnings are about the rows and the current panel, which all candidates have in common.
func Warnings(m *gate.Matrix, current gate.Measures) []string {
	out := []string{}
	warn := func(code, format string, args ...any) { out = append(out, code+": "+fmt.Sprintf(format, args...)) }
	if n := len(m.Rows()); n < gatestat.MinRows {
		warn("too_few_candidates_for_inference", "%d candidates that are no probes are too few for an interval; %d are needed.", n, gatestat.MinRows)
	}
	if current.Accuracy <= 0.5 {
		warn("current_panel_not_better_than_chance", "the current verifiers are right on half of the candidates or fewer on average.")
	}
	if current.UndefinedAtQuorum() {
		warn(gate.UndefinedAtQuorum, gate.UndefinedAtQuorumText)
	}
	if current.Censored() {
		warn("current_effective_votes_saturated", "the current panel makes too few errors here to distinguish more than %.0f effective votes.", gatestat.Saturated)
	}
	return out
}
