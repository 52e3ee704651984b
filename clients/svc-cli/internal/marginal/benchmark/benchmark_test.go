package benchmark

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/configdir"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
)

func parseText(t testing.TB, text string) canon.Value {
	t.Helper()
	v, err := canon.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func faultCode(err error) string {
	var f *closed.Fault
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

func TestConfigsThatAreRefused(t *testing.T) {
	t.Parallel()
	good := string(samples.File("gate/benchmark.json"))
	if c, err := ReadConfig(parseText(t, good)); err != nil || c.RandomSeed.Int64() != 17 || c.Bootstrap.Replicates != 200 {
		t.Fatal(c, err, "want c.RandomSeed.Int64() == 17 && c.Bootstrap.Replicates == 200")
	}
	for _, c := range []struct{ from, to, code string }{
		{`"random_seed": 17,`, ``, gate.MissingField},
		{`"random_seed": 17`, `"random_seed": 17, "more": 1`, gate.UnknownField},
		{`"random_seed": 17`, `"random_seed": 17.0`, gate.InvalidType},
		{`config-v0.1`, `config-v0.2`, gate.InvalidValue},
		{`"design.json"`, `"/etc/passwd"`, configdir.OutsideFolder},
		{`"holdout.json"`, `"../x"`, configdir.OutsideFolder},
		{`"reviewer-c",`, `"reviewer-a",`, marginal.DuplicateVerifier},
		{`"reviewer-c",`, `"reviewer-d",`, marginal.DuplicateVerifier},
		{`"reviewer-e": "family-e"`, `"reviewer-f": "family-e"`, gate.MissingField},
		{`"reviewer-e": "family-e"`, `"reviewer-e": "family-e", "reviewer-f": "x"`, gate.UnknownField},
		{`"replicates": 200`, `"replicates": 99`, gatestat.InvalidReplicates},
		{`"replicates": 200`, `"replicates": 9223372036854775807`, gatestat.InvalidReplicates},
		{`"confidence_level": 0.9`, `"confidence_level": 1`, gatestat.InvalidConfidenceLevel},
		{`"seed": 23`, `"seed": "23"`, gate.InvalidType},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Errorf("%s is not there; want text != good", c.from)
		}
		if _, err := ReadConfig(parseText(t, text)); faultCode(err) != c.code {
			t.Errorf("%s -> %s: %v, want %s", c.from, c.to, err, c.code)
		}
	}
}

func measuredCandidate(id string, accuracy, delta, low, high float64) marginal.Candidate {
	phi := accuracy - 1
	return marginal.Candidate{ID: id, Status: marginal.Measured, Accuracy: accuracy, VotesDelta: &delta, Correlation: &phi,
		Uncertainty: &marginal.Uncertainty{VotesDelta: gatestat.Metric{Point: &delta, CILow: &low, CIHigh: &high}}}
}

func TestMarginalVotesChooseOnlyBeyondDoubt(t *testing.T) {
	t.Parallel()
	noInterval := measuredCandidate("z", .5, 9, 0, 0)
	noInterval.Uncertainty.VotesDelta.CILow = nil
	for _, c := range []struct {
		name, reason string
		candidates   []marginal.Candidate
	}{
		{"one candidate", separated, []marginal.Candidate{measuredCandidate("a", .5, -1, -2, 0)}},
		{"apart", separated, []marginal.Candidate{measuredCandidate("b", .5, 1, 0, 2), measuredCandidate("a", .5, 5, 2.5, 9), measuredCandidate("c", .5, 0, -1, 2.4)}},
		{"touching", notSeparated, []marginal.Candidate{measuredCandidate("a", .5, 5, 2, 9), measuredCandidate("b", .5, 1, 0, 2)}},
		{"tie", pointTie, []marginal.Candidate{measuredCandidate("a", .5, 5, 4, 9), measuredCandidate("b", .5, 5, 4, 9)}},
		{"a tie that was overtaken", separated, []marginal.Candidate{measuredCandidate("b", .5, 1, 0, 2), measuredCandidate("c", .5, 1, 0, 2), measuredCandidate("a", .5, 5, 4, 9)}},
		{"a tie below", separated, []marginal.Candidate{measuredCandidate("a", .5, 5, 4, 9), measuredCandidate("b", .5, 1, 0, 2), measuredCandidate("c", .5, 1, 0, 2)}},
		{"one unresolved", unresolvedMetrics, []marginal.Candidate{measuredCandidate("a", .5, 5, 4, 9), {ID: "b", Status: marginal.Unresolved}}},
		{"one without interval", unresolvedMetrics, []marginal.Candidate{measuredCandidate("a", .5, 5, 4, 9), noInterval}},
	} {
		s := byMarginalVotes(c.candidates)
		if s.Reason != c.reason || (c.reason == separated) != (s.Verifier != nil && *s.Verifier == "a" && *s.Score == *s.Score) {
			t.Errorf(`%s: %+v; want s.Reason == c.reason && (c.reason == separated) == (s.Verifier != nil && *s.Verifier == "a" && *s.Score == *s.Score)`, c.name, s)
		}
	}
}

func TestOtherStrategies(t *testing.T) {
	t.Parallel()
	candidates := []marginal.Candidate{measuredCandidate("a", .6, 0, 0, 0), measuredCandidate("b", .9, 0, 0, 0), measuredCandidate("c", .9, 0, 0, 0)}
	*candidates[0].Correlation, *candidates[1].Correlation, *candidates[2].Correlation = .2, .1, .1
	if c := mostAccurate(candidates); c.ID != "b" {
		t.Error("a tie of accuracy goes to the first:", c.ID, `want "b"`)
	}
	if s := byLowestCorrelation(candidates); *s.Verifier != "b" || *s.Score != .1 {
		t.Errorf(`%+v; want *s.Verifier == "b" && *s.Score == .1`, s)
	}
	candidates[2].Accuracy = .95
	if s := byLowestCorrelation(candidates); *s.Verifier != "c" {
		t.Errorf(`a tie of correlation goes to the most accurate: %+v; want *s.Verifier == "c"`, s)
	}
	candidates[0].Correlation = nil
	if s := byLowestCorrelation(candidates); s.Verifier != nil || s.Reason != unmeasurable {
		t.Errorf("%+v; want s.Verifier == nil && s.Reason == unmeasurable", s)
	}
	config := &Config{Families: map[string]string{"x": "f", "a": "g", "b": "f", "c": "f"}}
	if s := byFamily(config, []string{"x"}, candidates); *s.Verifier != "a" || s.Reason != newFamily {
		t.Errorf(`%+v; want *s.Verifier == "a" && s.Reason == newFamily`, s)
	}
	config.Families["a"] = "f"
	if s := byFamily(config, []string{"x"}, candidates); *s.Verifier != "c" || s.Reason != noNewFamily || *s.Score != .95 {
		t.Errorf(`%+v; want *s.Verifier == "c" && s.Reason == noNewFamily && *s.Score == .95`, s)
	}
	if i := randomIndex(big.NewInt(17), []string{"reviewer-c", "reviewer-d", "reviewer-e"}); i != 0 {
		t.Error("seed 17 chooses", i, "want 0")
	}
}

// A report is taken as it was written, and refused after any change that its own parts contradict.
func TestReadReport(t *testing.T) {
	t.Parallel()
	good := string(samples.File("gate/benchmark-2-report.json"))
	if _, err := ReadReport(parseText(t, good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, code string }{
		{`"benchmark_id"`, `"benchmark"`, InvalidReport},
		{`"benchmark_id": "second-cohort-example",`, ``, InvalidReport},
		{`"quorum": 0.5`, `"quorum": 1`, InvalidReport},
		{`"replicates": 200`, `"replicates": 200.0`, InvalidReport},
		{`"seed": 23`, `"seed": null`, InvalidReport},
		{`"seed": 23`, `"seed": 1e3`, InvalidReport},
		{`"authority": "diagnostic_only"`, `"authority": "merge"`, InconsistentPart},
		{`"evidence_class": "synthetic"`, `"evidence_class": "other"`, InconsistentPart},
		{`"reason_code": "largest_interval_separated_design_delta_effective_votes"`, `"reason_code": "design_accuracy_then_source_order"`, InconsistentPart},
		{`"selected_verifier_id": "reviewer-d"`, `"selected_verifier_id": "reviewer-e"`, PlanDigestWrong},
		{`"selected_verifier_id": "reviewer-d"`, `"selected_verifier_id": "reviewer-a"`, InconsistentPart},
		{`"selected_verifier_id": "reviewer-d"`, `"selected_verifier_id": null`, InconsistentPart},
		{`"digest_sha256": "`, `"digest_sha256": "0`, PlanDigestWrong},
		{`"status": "evaluated"`, `"status": "not_evaluated"`, InconsistentPart},
		{`"holdout_candidate_status": "measured"`, `"holdout_candidate_status": "unresolved"`, InconsistentPart},
		{`"panel_error_delta": 0.0625`, `"panel_error_delta": 1.5`, InconsistentPart},
		{`"panel_error_delta": 0.0625`, `"panel_error_delta": null`, InconsistentPart},
		{`"probe_candidates": 2`, `"probe_candidates": -1`, InconsistentPart},
		{`"config_digest_sha256": "`, `"config_digest_sha256": "g`, InconsistentPart},
		{`"selection_plan_digest_sha256": "`, `"selection_plan_digest_sha256": "0`, PlanDigestWrong},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Errorf("%s is not there; want text != good", c.from)
		}
		if _, err := ReadReport(parseText(t, text)); faultCode(err) != c.code {
			t.Errorf("%s -> %s: %v, want %s", c.from, c.to, err, c.code)
		}
	}
	if _, err := ReadReport(parseText(t, `[]`)); faultCode(err) != InvalidReport {
		t.Error(err, "want faultCode(err) ==", InvalidReport)
	}
}

// What is read of a report is all of it: written again it is the same.
func FuzzReadReport(f *testing.F) {
	f.Add(string(samples.File("gate/benchmark-report.json")))
	f.Add(string(samples.File("gate/benchmark-2-report.json")))
	f.Add(`{"analysis":{"random_seed":1e5}}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := canon.Parse([]byte(text), canon.MaxBytes(canon.MaxFile))
		if err != nil {
			return
		}
		r, err := ReadReport(v)
		if err != nil {
			if faultCode(err) == "" {
				t.Fatal(err, `want faultCode(err) != ""`)
			}
			return
		}
		if canon.Digest(canon.MustFrom(r)) != canon.Digest(v) {
			t.Fatal("something of the report was not read")
		}
	})
}

// A config is refused with a place, or names two files that lie within its folder and verifiers that each have a family.
func FuzzReadConfig(f *testing.F) {
	f.Add(string(samples.File("gate/benchmark.json")))
	f.Add(string(samples.File("gate/benchmark-2.json")))
	f.Fuzz(func(t *testing.T, text string) {
		v, err := canon.Parse([]byte(text), canon.MaxBytes(canon.MaxFile))
		if err != nil {
			return
		}
		c, err := ReadConfig(v)
		if err != nil {
			if faultCode(err) == "" {
				t.Fatal(err, `want faultCode(err) != ""`)
			}
			return
		}
		if !configdir.IsRelative(c.Design) || !configdir.IsRelative(c.Holdout) || c.Bootstrap.Check() != nil || len(c.Families) != len(c.Current)+len(c.Candidates) {
			t.Fatalf("%+v; want configdir.IsRelative(c.Design) && configdir.IsRelative(c.Holdout) && c.Bootstrap.Check() == nil && len(c.Families) == len(c.Current) + len(c.Candidates)", c)
		}
	})
}

// The holdout's verdicts have no influence on the plan.
func TestThePlanIsBlindToTheHoldout(t *testing.T) {
	t.Parallel()
	run := func(holdout string) *Report {
		c, err := ReadConfig(parseText(t, string(samples.File("gate/benchmark-2.json"))))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), c, func(name string) (canon.Value, error) {
			if name == "holdout-2.json" {
				return parseText(t, holdout), nil
			}
			return parseText(t, string(samples.File("gate/"+name))), nil
		}, Options{Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	holdout := string(samples.File("gate/holdout-2.json"))
	swap := strings.NewReplacer(`: "accept"`, `: "reject"`, `: "reject"`, `: "accept"`, `"ground_truth": "accept"`, `"ground_truth": "accept"`, `"ground_truth": "reject"`, `"ground_truth": "reject"`)
	a, b := run(holdout), run(swap.Replace(holdout))
	if a.Plan.Digest != b.Plan.Digest || a.Splits.Holdout.InputDigest == b.Splits.Holdout.InputDigest {
		t.Error("the plan depends on the holdout")
	}
	x, _ := json.Marshal(a.Results)
	y, _ := json.Marshal(b.Results)
	if string(x) == string(y) {
		t.Error("the results do not depend on the holdout")
	}
}
