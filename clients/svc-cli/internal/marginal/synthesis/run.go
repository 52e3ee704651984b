package synthesis

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal/benchmark"
)

const mode = "descriptive-cross-cohort-v0.1"

// Codes of reports that do not go together.
const (
	EvidenceClassMismatch = "evidence_class_mismatch"
	RepeatedCohort        = "repeated_cohort"
)

// warnings are part of every synthesis.
var warnings = []string{
	"descriptive_only: the figures describe these cohorts; they allow no routing and no merge.",
	"no_pooling: the rows of the cohorts are not pooled, and no figure is one of a joint population.",
	"no_significance: nothing here is tested for significance, and the order of strategies is no ranking.",
}

// cohort is one report that was read.
type cohort struct {
	Cohort
	report *benchmark.Report
}

// Run reads the reports and puts them together.
func Run(ctx context.Context, c *Config, read func(name string) (canon.Value, error), version string) (*Report, error) {
	var cohorts []cohort
	for _, name := range c.Reports {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x, err := readCohort(c, name, read)
		if err != nil {
			return nil, err
		}
		cohorts = append(cohorts, x)
	}
	if err := checkIndependent(cohorts); err != nil {
		return nil, err
	}
	slices.SortFunc(cohorts, func(a, b cohort) int { return strings.Compare(a.BenchmarkID, b.BenchmarkID) })
	r := &Report{
		Schema: ReportSchema, SynthesisID: c.SynthesisID, EvidenceClass: c.EvidenceClass, Authority: gate.DiagnosticOnly,
		Analysis:   Analysis{Mode: mode, RuleVersion: benchmark.RuleVersion, Benchmarks: len(cohorts)},
		Warnings:   slices.Clone(warnings),
		Provenance: Provenance{Tool: gate.Tool, ToolVersion: version, ConfigDigest: c.Digest},
	}
	for _, x := range cohorts {
		r.Cohorts = append(r.Cohorts, x.Cohort)
		r.Analysis.HoldoutRows += x.HoldoutRows
	}
	r.Provenance.InputDigest = canon.DigestHexC2(canon.MustFrom(r.Cohorts))
	for i, name := range benchmark.Strategies() {
		r.Strategies = append(r.Strategies, overCohorts(name, i, cohorts))
	}
	return r, nil
}

func readCohort(c *Config, name string, read func(string) (canon.Value, error)) (cohort, error) {
	doc, err := read(name)
	if err != nil {
		return cohort{}, err
	}
	report, err := benchmark.ReadReport(doc)
	if err == nil && report.EvidenceClass != c.EvidenceClass {
		err = &closed.Fault{Code: EvidenceClassMismatch, Path: "/evidence_class", Detail: "the synthesis is of " + c.EvidenceClass + " evidence"}
	}
	if err != nil {
		var f *closed.Fault
		if errors.As(err, &f) {
			err = &closed.Fault{Code: f.Code, Path: f.Path, Detail: name + ": " + f.Detail}
		}
		return cohort{}, err
	}
	return cohort{report: report, Cohort: Cohort{
		BenchmarkID: report.BenchmarkID, GateID: report.GateID, Report: name, ReportDigest: canon.DigestHexC2(doc),
		DesignDigest: report.Splits.Design.InputDigest, HoldoutDigest: report.Splits.Holdout.InputDigest,
		HoldoutRows: report.Splits.Holdout.Rows,
	}}, nil
}

// checkIndependent refuses what would count one thing twice.
func checkIndependent(cohorts []cohort) error {
	for _, kind := range []struct {
		what string
		of   func(cohort) string
	}{
		{"report", func(c cohort) string { return c.ReportDigest }},
		{"benchmark id", func(c cohort) string { return c.BenchmarkID }},
		{"design matrix", func(c cohort) string { return c.DesignDigest }},
		{"holdout matrix", func(c cohort) string { return c.HoldoutDigest }},
	} {
		first := map[string]string{}
		for _, c := range cohorts {
			if other, ok := first[kind.of(c)]; ok {
				return &closed.Fault{Code: RepeatedCohort, Detail: other + " and " + c.Report + " have the same " + kind.what}
			}
			first[kind.of(c)] = c.Report
		}
	}
	return nil
}

// overCohorts sums up the strategy at index i of every report.
func overCohorts(name string, i int, cohorts []cohort) Strategy {
	s := Strategy{Strategy: name, Cohorts: len(cohorts)}
	var errors, votes []float64
	var weighted gatestat.Sum
	rows := 0
	for _, c := range cohorts {
		h := c.report.Results[i]
		s.Outcomes = append(s.Outcomes, Outcome{
			BenchmarkID: c.BenchmarkID, SelectionStatus: h.SelectionStatus, Verifier: h.Verifier, Status: h.Status,
			CandidateStatus: h.CandidateStatus, ErrorDelta: h.ErrorDelta, VotesDelta: h.VotesDelta,
		})
		countAnswer(h.SelectionStatus == benchmark.Selected, &s.SelectionResolved, &s.SelectionUnresolved)
		countAnswer(h.Status != benchmark.NotEvaluated, &s.Evaluated, &s.NotEvaluated)
		if d := h.ErrorDelta; d != nil {
			errors = append(errors, *d)
			weighted.AddTimes(c.HoldoutRows, *d)
			rows += c.HoldoutRows
			*counterBySign(*d, &s.ErrorDelta.Worsened, &s.ErrorDelta.Unchanged, &s.ErrorDelta.Improved)++
		}
		if d := h.VotesDelta; d != nil {
			votes = append(votes, *d)
			*counterBySign(*d, &s.VotesDelta.Negative, &s.VotesDelta.Unchanged, &s.VotesDelta.Positive)++
		}
	}
	s.ErrorDelta.Measured, s.ErrorDelta.Unresolved = len(errors), len(cohorts)-len(errors)
	s.VotesDelta.Measured, s.VotesDelta.Unresolved = len(votes), len(cohorts)-len(votes)
	s.ErrorDelta.MacroMean, s.VotesDelta.MacroMean = meanOf(errors), meanOf(votes)
	if rows > 0 {
		w := weighted.Value() / float64(rows)
		s.ErrorDelta.WeightedMean = &w
	}
	return s
}

func countAnswer(yes bool, ifYes, ifNo *int) {
	if yes {
		*ifYes++
	} else {
		*ifNo++
	}
}

// counterBySign picks a counter by the sign of d.
func counterBySign(d float64, negative, zero, positive *int) *int {
	switch {
	case d < 0:
		return negative
	case d > 0:
		return positive
	}
	return zero
}

func meanOf(xs []float64) *float64 {
	if len(xs) == 0 {
		return nil
	}
	m := gatestat.Mean(xs)
	return &m
}
