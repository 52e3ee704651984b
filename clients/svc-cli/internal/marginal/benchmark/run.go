package benchmark

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal"
)

// Codes of matrices that do not make a benchmark.
const (
	SplitMismatch = "split_mismatch"
	SplitOverlap  = "split_overlap"
)

// Options of a run.
type Options struct {
	Version  string // of the program, for the provenance
	Progress gatestat.Progress
}

// Run reads the matrices that the config names, lets the strategies choose on the design, freezes the plan and
// measures the choices on the holdout.
func Run(ctx context.Context, c *Config, read func(name string) (canon.Value, error), o Options) (*Report, error) {
	design, err := readMatrix(c.Design, read)
	if err != nil {
		return nil, err
	}
	holdout, err := readMatrix(c.Holdout, read)
	if err != nil {
		return nil, err
	}
	if err := checkSplits(design, holdout); err != nil {
		return nil, err
	}
	onDesign, err := marginal.Select(design, c.Current, c.Candidates)
	if err != nil {
		return nil, inFile(c.Design, err)
	}
	// Before anything is chosen, so that the choice cannot depend on it.
	if _, err := marginal.Select(holdout, c.Current, c.Candidates); err != nil {
		return nil, inFile(c.Holdout, err)
	}
	candidates, err := marginal.Measure(ctx, design, onDesign, &c.Bootstrap, o.Progress)
	if err != nil {
		return nil, err
	}
	plan := newPlan(c, design.IDs(onDesign.Current), candidates)
	results, err := evaluatePlan(ctx, c, plan, holdout, o.Progress)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Schema: ReportSchema, BenchmarkID: c.BenchmarkID, GateID: design.GateID, EvidenceClass: design.EvidenceClass,
		Authority: gate.DiagnosticOnly,
		Analysis: Analysis{
			Current: plan.Current, Candidates: plan.Candidates, Families: c.Families,
			RandomSeed: c.RandomSeed, Bootstrap: c.Bootstrap, Quorum: design.Quorum,
		},
		Splits: Splits{Design: describeSplit(c.Design, design), Holdout: describeSplit(c.Holdout, holdout)},
		Plan:   *plan, Results: results, Warnings: []string{},
		Provenance: Provenance{Tool: gate.Tool, ToolVersion: o.Version, ConfigDigest: c.Digest, PlanDigest: plan.Digest},
	}
	r.warn(design, holdout)
	return r, nil
}

func readMatrix(name string, read func(string) (canon.Value, error)) (*gate.Matrix, error) {
	doc, err := read(name)
	if err != nil {
		return nil, err
	}
	m, err := gate.Read(doc)
	return m, inFile(name, err)
}

// inFile adds the name of the file that has the fault.
func inFile(name string, err error) error {
	var f *closed.Fault
	if errors.As(err, &f) {
		return &closed.Fault{Code: f.Code, Path: f.Path, Detail: name + ": " + f.Detail}
	}
	return err
}

// checkSplits returns a fault unless two matrices are of one gate and share no candidate, probes included: the data on
// which a strategy chose cannot test the choice.
func checkSplits(design, holdout *gate.Matrix) error {
	mismatch := func(key string) error {
		return &closed.Fault{Code: SplitMismatch, Path: canon.Pointer("", key), Detail: "the design and the holdout matrix differ here"}
	}
	switch {
	case design.GateID != holdout.GateID:
		return mismatch("gate_id")
	case design.EvidenceClass != holdout.EvidenceClass:
		return mismatch("evidence_class")
	case design.Quorum != holdout.Quorum:
		return mismatch("quorum")
	}
	seen := map[string]bool{}
	for _, c := range design.Candidates {
		seen[c.ID] = true
	}
	for i, c := range holdout.Candidates {
		if seen[c.ID] {
			return &closed.Fault{Code: SplitOverlap, Path: canon.Element("/candidates", i) + "/id", Detail: "the design matrix has this candidate of the holdout too"}
		}
	}
	return nil
}

func describeSplit(name string, m *gate.Matrix) Split {
	return Split{Matrix: name, InputDigest: m.Digest, Rows: len(m.Rows()), Probes: len(m.Probes())}
}

// evaluatePlan measures the plan's choices, each verifier once.
func evaluatePlan(ctx context.Context, c *Config, p *Plan, holdout *gate.Matrix, progress gatestat.Progress) ([]Result, error) {
	chosen := map[string]bool{}
	var ids []string
	for _, s := range p.Selectors {
		if s.Verifier != nil && !chosen[*s.Verifier] {
			chosen[*s.Verifier] = true
			ids = append(ids, *s.Verifier)
		}
	}
	// The random strategy always chooses, so there is one.
	s, err := marginal.Select(holdout, p.Current, ids)
	if err != nil {
		return nil, inFile(c.Holdout, err)
	}
	measured, err := marginal.Measure(ctx, holdout, s, &c.Bootstrap, progress)
	if err != nil {
		return nil, err
	}
	byID := map[string]*marginal.Candidate{}
	for i := range measured {
		byID[measured[i].ID] = &measured[i]
	}
	out := make([]Result, len(p.Selectors))
	for i, s := range p.Selectors {
		out[i] = Result{Strategy: s.Strategy, SelectionStatus: s.Status, Status: NotEvaluated, Warnings: []string{}}
		if s.Verifier != nil {
			out[i].measured(byID[*s.Verifier])
		}
	}
	return out, nil
}

func (r *Result) measured(c *marginal.Candidate) {
	r.Verifier, r.CandidateStatus, r.Status = &c.ID, &c.Status, Evaluated
	if c.Status != marginal.Measured {
		r.Status = EvaluatedUnresolved
	}
	r.ErrorDelta, r.VotesDelta, r.Accuracy, r.Correlation = &c.ErrorDelta, c.VotesDelta, &c.Accuracy, c.Correlation
	r.Uncertainty, r.Probes, r.Warnings = c.Uncertainty, c.Probes, c.Warnings
}

func (r *Report) warn(design, holdout *gate.Matrix) {
	for _, m := range []struct {
		split string
		m     *gate.Matrix
	}{{"design", design}, {"holdout", holdout}} {
		if n := len(m.m.Rows()); n < gatestat.MinRows {
			r.Warnings = append(r.Warnings, fmt.Sprintf("too_few_%s_candidates_for_inference: %d candidates that are no probes are too few for an interval; %d are needed.", m.split, n, gatestat.MinRows))
		}
	}
	for _, s := range r.Plan.Selectors {
		if s.Status == Unresolved {
			r.Warnings = append(r.Warnings, fmt.Sprintf("selection_unresolved: %s chose no verifier (%s).", s.Strategy, s.Reason))
		}
	}
}
