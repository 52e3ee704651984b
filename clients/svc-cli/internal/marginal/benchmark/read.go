package benchmark

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal"
)

// Codes of a report that is refused.
const (
	InvalidReport    = "invalid_benchmark_report"
	PlanDigestWrong  = "selection_plan_digest_mismatch"
	InconsistentPart = "inconsistent_benchmark_report"
)

// ReadReport reads a report and checks everything that does not need the matrices: its shape to the last key, the
// digest of its plan, and that its parts are consistent. A fault is a *closed.Fault.
func ReadReport(doc canon.Value) (*Report, error) {
	r, err := decodeReport(doc)
	if err != nil {
		return nil, err
	}
	x := checker{r: closed.NewReader(gate.Codes)}
	x.head(r)
	x.plan(r)
	x.results(r)
	if f := x.r.Fault(); f != nil {
		return nil, f
	}
	return r, nil
}

// decodeReport reads a document of exactly the report's shape: encoded again it must equal its input. That covers
// missing and unknown keys, floats written as integers and all else in which two readers could differ.
func decodeReport(doc canon.Value) (*Report, error) {
	text, err := canon.C1(doc)
	if err != nil {
		return nil, &closed.Fault{Code: InvalidReport, Detail: err.Error()}
	}
	var r Report
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, &closed.Fault{Code: InvalidReport, Detail: "this is no report of gate-marginal-benchmark: " + clipMessage(err.Error())}
	}
	if r.Analysis.RandomSeed == nil || r.Analysis.Bootstrap.Seed == nil {
		return nil, &closed.Fault{Code: InvalidReport, Path: "/analysis", Detail: "a seed is missing"}
	}
	again, err := canon.From(&r)
	if err != nil {
		return nil, &closed.Fault{Code: InvalidReport, Detail: clipMessage(err.Error())}
	}
	if path, same := firstDifference(doc, again, ""); !same {
		return nil, &closed.Fault{Code: InvalidReport, Path: path, Detail: "gate-marginal-benchmark writes another kind of value here, or none"}
	}
	return &r, nil
}

// clipMessage keeps a message, which may quote the document, short.
func clipMessage(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}

// firstDifference is the first place where two documents differ, their order of keys apart.
func firstDifference(a, b canon.Value, path string) (string, bool) {
	switch a := a.(type) {
	case *canon.Object:
		b, ok := b.(*canon.Object)
		if !ok {
			return path, false
		}
		keys := append(a.Keys(), b.Keys()...)
		slices.Sort(keys)
		for _, k := range slices.Compact(keys) {
			x, inA := a.Get(k)
			y, inB := b.Get(k)
			if inA != inB {
				return canon.Pointer(path, k), false
			}
			if at, same := firstDifference(x, y, canon.Pointer(path, k)); !same {
				return at, false
			}
		}
		return "", true
	case canon.Array:
		b, ok := b.(canon.Array)
		if !ok || len(a) != len(b) {
			return path, false
		}
		for i := range a {
			if at, same := firstDifference(a[i], b[i], canon.Element(path, i)); !same {
				return at, false
			}
		}
		return "", true
	}
	// The rest are scalars; another kind on the other side compares unequal.
	switch b.(type) {
	case *canon.Object, canon.Array:
		return path, false
	}
	return path, a == b
}

// checker holds the parts of a report against each other.
type checker struct{ r *closed.Reader }

// must records a fault unless ok.
func (x checker) must(ok bool, path, detail string) {
	if !ok {
		x.r.Fail(InconsistentPart, path, "%s", detail)
	}
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}\z`)

func (x checker) head(r *Report) {
	x.must(r.Schema == ReportSchema, "/schema", "expected "+ReportSchema)
	x.must(gate.IsID(r.BenchmarkID), "/benchmark_id", "expected "+gate.WhatID)
	x.must(gate.IsID(r.GateID), "/gate_id", "expected "+gate.WhatID)
	x.must(r.EvidenceClass == "synthetic" || r.EvidenceClass == "observed", "/evidence_class", "expected synthetic or observed")
	x.must(r.Authority == gate.DiagnosticOnly, "/authority", "expected "+gate.DiagnosticOnly)
	x.must(r.Provenance.Tool == gate.Tool, "/provenance/tool", "expected "+gate.Tool)
	for path, digest := range map[string]string{
		"/splits/design/input_digest_sha256": r.Splits.Design.InputDigest, "/splits/holdout/input_digest_sha256": r.Splits.Holdout.InputDigest,
		"/provenance/config_digest_sha256": r.Provenance.ConfigDigest,
	} {
		x.must(hexDigest.MatchString(digest), path, "expected 64 lower-case hexadecimal digits")
	}
	for path, s := range map[string]Split{"/splits/design": r.Splits.Design, "/splits/holdout": r.Splits.Holdout} {
		x.must(s.Rows >= 2 && s.Rows <= canon.MaxFile && s.Probes >= 0 && s.Probes <= canon.MaxFile, path, "no matrix holds that many candidates")
	}
	x.must(r.Splits.Design.InputDigest != r.Splits.Holdout.InputDigest, "/splits/holdout/input_digest_sha256", "design and holdout must differ")
	if err := r.Analysis.Bootstrap.Check(); err != nil {
		x.must(false, "/analysis/bootstrap", err.(*closed.Fault).Detail)
	}
}

func (x checker) plan(r *Report) {
	p := &r.Plan
	x.must(p.RuleVersion == RuleVersion, "/selection_plan/rule_version", "expected "+RuleVersion)
	x.must(p.Source == designOnly, "/selection_plan/source", "expected "+designOnly)
	x.must(slices.Equal(p.Current, r.Analysis.Current) && slices.Equal(p.Candidates, r.Analysis.Candidates) && len(p.Candidates) > 0,
		"/selection_plan", "the plan and the analysis must name the same verifiers")
	strategies := Strategies()
	x.must(len(p.Selectors) == len(strategies), "/selection_plan/selectors", "expected every strategy once")
	for i, s := range p.Selectors {
		path := canon.Element("/selection_plan/selectors", i)
		if !x.r.OK() {
			return
		}
		x.must(s.Strategy == strategies[i], path+"/strategy", "expected "+strategies[i])
		x.must(slices.Contains(reasons[[2]string{s.Strategy, s.Status}], s.Reason), path+"/reason_code", "the strategy has no such outcome")
		x.must((s.Verifier != nil) == (s.Status == Selected), path+"/selected_verifier_id", "expected a verifier if one was chosen, and only then")
		x.must(s.Verifier == nil || slices.Contains(p.Candidates, *s.Verifier), path+"/selected_verifier_id", "only a candidate can be chosen")
	}
	if x.r.OK() && (p.Digest != p.digest() || p.Digest != r.Provenance.PlanDigest) {
		x.r.Fail(PlanDigestWrong, "/selection_plan/digest_sha256", "the digest is not that of the plan, so the plan was changed after it was frozen")
	}
}

func (x checker) results(r *Report) {
	x.must(len(r.Results) == len(r.Plan.Selectors), "/holdout_results", "expected every strategy once")
	for i, h := range r.Results {
		path := canon.Element("/holdout_results", i)
		if !x.r.OK() {
			return
		}
		s := r.Plan.Selectors[i]
		x.must(h.Strategy == s.Strategy && h.SelectionStatus == s.Status && equalStrings(h.Verifier, s.Verifier), path, "the result must repeat the plan's choice")
		want, state := NotEvaluated, h.CandidateStatus
		if s.Verifier != nil {
			want = EvaluatedUnresolved
			if state != nil && *state == marginal.Measured {
				want = Evaluated
			}
			x.must(state != nil && (*state == marginal.Measured || *state == marginal.Unresolved), path+"/holdout_candidate_status", "expected measured or unresolved")
			x.must(h.ErrorDelta != nil && *h.ErrorDelta >= -1 && *h.ErrorDelta <= 1, path+"/panel_error_delta", "expected a number from -1 to 1")
			x.must(want != Evaluated || h.VotesDelta != nil, path+"/delta_effective_votes", "a measured candidate has this number")
			x.must(h.Accuracy != nil, path+"/standalone_accuracy", "an evaluated verifier has an accuracy")
		} else {
			x.must(state == nil && h.ErrorDelta == nil && h.VotesDelta == nil && h.Accuracy == nil && h.Correlation == nil && h.Uncertainty == nil && h.Probes == nil,
				path, "nothing can be known about no choice")
		}
		x.must(h.Status == want, path+"/status", "expected "+want)
	}
}

func equalStrings(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
