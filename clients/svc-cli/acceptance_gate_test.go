package svccli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The rows of the acceptance table that are about gates, on the program itself. The figures are those of the contract.

// figures reads a report and looks up places in it, "candidates.0.id" for example.
type figures struct {
	t   *testing.T
	doc any
}

func decodeReport(t *testing.T, r result) figures {
	t.Helper()
	var doc any
	if err := json.Unmarshal([]byte(requireSuccess(t, r).out), &doc); err != nil {
		t.Fatal(err)
	}
	return figures{t, doc}
}

func (f figures) at(path string) any {
	f.t.Helper()
	v := f.doc
	for part := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			next, there := x[part]
			if !there {
				f.t.Fatalf("%s: there is no %s; want there", path, part)
			}
			v = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(x) {
				f.t.Fatalf("%s: there is no element %s; want i < len(x)", path, part)
			}
			v = x[i]
		default:
			f.t.Fatalf("%s: nothing lies below %v", path, v)
		}
	}
	return v
}

// want compares: floats to 1e-12, all else exactly.
func (f figures) want(all map[string]any) {
	f.t.Helper()
	for path, want := range all {
		got := f.at(path)
		if i, isInt := want.(int); isInt {
			want = float64(i)
		}
		if x, isFloat := want.(float64); isFloat {
			if y, isFloat := got.(float64); !isFloat || math.Abs(x-y) > 1e-12 {
				f.t.Errorf("%s is %v, want %v", path, got, want)
			}
		} else if got != want {
			f.t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

func TestRow65(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	run := func(words string) figures { return decodeReport(t, runWords(t, dir, words)) }

	run("gate-audit gate/panel.json --bootstrap").want(map[string]any{
		"schema": "gate-audit-report-v0.2", "gate_id": "example-five-verifier-gate",
		"provenance.input_digest_sha256": "23caa4c4cc57e91c31262bc9e830ccaecdb7884b7bf97d739c37d0615d6b2d8a",
		"panel.mean_verifier_accuracy":   .8, "panel.mean_pairwise_error_correlation": .09163977794943223,
		"panel.error": .16666666666666666, "panel.false_accept_rate": .25, "panel.false_reject_rate": .125,
		"panel.effective_votes": 1.6944444444444438, "panel.heuristic_n_eff": 3.6588245300435087, "panel.effective_votes_ceiling": 9.31624758940236,
		"probes.breached": 2, "probes.total": 3, "uncertainty.replicates": 2000, "uncertainty.seed": 0, "uncertainty.confidence_level": .95,
		"uncertainty.metrics.panel_error.ci_low": 0, "uncertainty.metrics.panel_error.ci_high": .4166666666666667,
		"uncertainty.metrics.mean_verifier_accuracy.ci_low": .6666666666666666, "uncertainty.metrics.mean_verifier_accuracy.ci_high": .9166666666666666,
		"uncertainty.metrics.mean_pairwise_error_correlation.ci_low":          -.17407765595569788,
		"uncertainty.metrics.mean_pairwise_error_correlation.ci_high":         .3933996418221948,
		"uncertainty.metrics.mean_pairwise_error_correlation.replicates_used": 1992,
		"uncertainty.metrics.effective_votes.ci_low":                          1, "uncertainty.metrics.effective_votes.ci_high": 199,
		"uncertainty.metrics.effective_votes.ci_high_censored": true,
	})
	run("gate-audit gate/panel.json").want(map[string]any{"schema": "gate-audit-report-v0.1"})
	run("gate-marginal gate/panel.json --current reviewer-a reviewer-b --candidate reviewer-d").want(map[string]any{
		"schema": "marginal-evidence-report-v0.1", "candidates.0.id": "reviewer-d", "candidates.0.panel_error_delta": 0.0,
		"candidates.0.mean_error_correlation_with_current_panel": -.2581988897471611,
		"provenance.analysis_digest_sha256":                      "6f6fd26c77c1a74d2f3a99b411242cfa3035e1ab6f167788e0cca62b702b8d29",
	})

	design := run("gate-marginal gate/design.json --current reviewer-a --current reviewer-b --bootstrap --bootstrap-replicates 200 --bootstrap-seed 23 --bootstrap-confidence-level .9")
	design.want(map[string]any{
		"candidates.0.id": "reviewer-c", "candidates.0.status": "unresolved", "candidates.0.unresolved_reasons.0": "augmented_effective_votes_censored",
		"candidates.0.standalone_accuracy": .875, "candidates.0.panel_error_delta": .125,
		"candidates.0.uncertainty.panel_error_delta.ci_low": 0, "candidates.0.uncertainty.panel_error_delta.ci_high": .375,
		"candidates.0.uncertainty.delta_effective_votes.replicates_used": 0, "candidates.0.uncertainty.delta_effective_votes.ci_low": nil,
		"candidates.0.mean_error_correlation_with_current_panel": -.18053751654656763,
		"candidates.1.id": "reviewer-d", "candidates.1.status": "measured", "candidates.1.standalone_accuracy": .75, "candidates.1.panel_error_delta": -.125,
		"candidates.1.uncertainty.panel_error_delta.ci_low": -.25, "candidates.1.uncertainty.panel_error_delta.ci_high": 0,
		"candidates.1.delta_effective_votes":                    -1.3128205128205126,
		"candidates.1.uncertainty.delta_effective_votes.ci_low": -7.129191972032035, "candidates.1.uncertainty.delta_effective_votes.ci_high": 0,
		"candidates.1.uncertainty.delta_effective_votes.replicates_used": 144,
		"candidates.1.mean_error_correlation_with_current_panel":         .3908910548820038,
		"candidates.2.id": "reviewer-e", "candidates.2.status": "unresolved", "candidates.2.standalone_accuracy": .75,
		"candidates.2.panel_error_delta": .125, "candidates.2.mean_error_correlation_with_current_panel": -.27577561178466287,
	})

	run("gate-marginal-benchmark gate/benchmark.json").want(map[string]any{
		"schema":                              "marginal-evidence-benchmark-report-v0.1",
		"splits.design.input_digest_sha256":   "cbf868ca1e71c0c6701a0d923f6fb1a821b13230daa8e781d89cc783fc4e3ced",
		"splits.holdout.input_digest_sha256":  "32da9f612eb5b0d863260ce6ee5dee5c5445271f278fb66885f817dce4c85168",
		"selection_plan.selectors.0.strategy": "marginal_effective_votes", "selection_plan.selectors.0.selected_verifier_id": nil,
		"selection_plan.selectors.0.reason_code": "unresolved_design_candidate_metrics",
		"selection_plan.selectors.1.strategy":    "random_eligible", "selection_plan.selectors.1.selected_verifier_id": "reviewer-c",
		"selection_plan.selectors.2.strategy": "highest_standalone_accuracy", "selection_plan.selectors.2.selected_verifier_id": "reviewer-c",
		"selection_plan.selectors.3.strategy": "different_family_first", "selection_plan.selectors.3.selected_verifier_id": "reviewer-c",
		"selection_plan.selectors.4.strategy": "minimum_mean_pairwise_error_correlation", "selection_plan.selectors.4.selected_verifier_id": "reviewer-e",
		"holdout_results.0.status": "not_evaluated", "holdout_results.1.status": "evaluated",
		"holdout_results.1.panel_error_delta": 0, "holdout_results.1.delta_effective_votes": .419510314247157,
		"holdout_results.1.mean_error_correlation_with_current_panel": .05755772154867046,
		"holdout_results.4.status":                                    "evaluated_with_unresolved_metrics", "holdout_results.4.delta_effective_votes": nil,
		"holdout_results.4.holdout_candidate_status": "unresolved",
	})

	// A synthesis of two reports, one of them made just now.
	requireSuccess(t, runWords(t, dir, "gate-marginal-benchmark gate/benchmark.json --out gate/benchmark-report.json"))
	s := run("gate-marginal-synthesis gate/synthesis.json")
	second := decodeReport(t, runWords(t, dir, "gate-marginal-benchmark gate/benchmark-2.json"))
	// Both cohorts evaluate the most accurate verifier: 8 rows with delta 0 and 16 rows with the second's.
	delta := second.at("holdout_results.2.panel_error_delta").(float64)
	votes := second.at("holdout_results.2.delta_effective_votes").(float64)
	if delta == 0 {
		t.Fatal("the second cohort proves nothing")
	}
	s.want(map[string]any{
		"schema": "marginal-evidence-synthesis-report-v0.1", "analysis.benchmark_count": 2, "analysis.total_holdout_non_probe_candidates": 24,
		"cohorts.0.benchmark_id": "heldout-marginal-example", "cohorts.1.benchmark_id": "second-cohort-example",
		"strategies.2.strategy": "highest_standalone_accuracy", "strategies.2.panel_error_delta.measured": 2,
		"strategies.2.panel_error_delta.improved": 1, "strategies.2.panel_error_delta.unchanged": 1, "strategies.2.panel_error_delta.worsened": 0,
		"strategies.2.panel_error_delta.macro_mean": delta / 2, "strategies.2.panel_error_delta.holdout_row_weighted_mean": delta * 16 / 24,
		"strategies.2.effective_votes_delta.macro_mean": (votes + .419510314247157) / 2,
		"strategies.0.selection_resolved":               1, "strategies.0.selection_unresolved": 1, "strategies.0.holdout_not_evaluated": 1,
		"strategies.0.panel_error_delta.measured": 1, "strategies.0.panel_error_delta.unresolved": 1,
	})
}

func TestRow66(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	panel := filepath.Join(dir, "gate", "panel.json")
	before, err := os.ReadFile(panel)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link.json": "gate/panel.json", "dangling.json": "new.json", "folder": "gate"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(panel, filepath.Join(dir, "hard.json")); err != nil {
		t.Fatal(err)
	}
	for words, says := range map[string]string{
		"gate-audit gate/panel.json --out gate/panel.json":                                                 "output_collision",
		"gate-audit gate/panel.json --out ./gate/../gate/panel.json":                                       "output_collision",
		"gate-audit gate/panel.json --out link.json":                                                       "output_collision",
		"gate-audit gate/panel.json --out folder/panel.json":                                               "output_collision",
		"gate-audit gate/panel.json --out hard.json":                                                       "output_collision",
		"gate-audit link.json --markdown gate/panel.json":                                                  "output_collision",
		"gate-audit gate/panel.json --out a.json --markdown a.json":                                        "output_collision",
		"gate-audit gate/panel.json --out new.json --markdown dangling.json":                               "output_collision",
		"gate-audit-dependence gate/panel.json --out gate/panel.json":                                      "output_collision",
		"gate-marginal gate/panel.json --current reviewer-a --out link.json":                               "output_collision",
		"gate-marginal-benchmark gate/benchmark.json --out gate/benchmark.json":                            "output_collision",
		"gate-marginal-benchmark gate/benchmark.json --out gate/holdout.json":                              "output_collision",
		"gate-marginal-benchmark gate/benchmark.json --out folder/design.json":                             "output_collision",
		"gate-marginal-synthesis gate/synthesis.json --out gate/benchmark-2-report.json":                   "output_collision",
		"gate-audit gate/panel.json --bootstrap-seed 1":                                                    "--bootstrap-seed has no effect without --bootstrap",
		"gate-audit gate/panel.json --bootstrap-replicates 2000":                                           "--bootstrap-replicates has no effect",
		"gate-marginal gate/panel.json --current reviewer-a --bootstrap-confidence-level .9":               "--bootstrap-confidence-level has no effect",
		"gate-audit gate/panel.json --bootstrap --bootstrap-replicates 99":                                 "invalid_replicates",
		"gate-audit gate/panel.json --bootstrap --bootstrap-confidence-level 1":                            "invalid_confidence_level",
		"gate-audit gate/panel.json --bootstrap --bootstrap-confidence-level NaN":                          "invalid_confidence_level",
		"gate-audit gate/panel.json --bootstrap --bootstrap-seed 1.5":                                      "integer",
		"gate-audit gate/panel.json --out= ":                                                               "needs the name of a file",
		"gate-marginal gate/panel.json":                                                                    "--current ID",
		"gate-marginal gate/panel.json --current nobody":                                                   "unknown_verifier",
		"gate-marginal gate/panel.json --current reviewer-a --candidate reviewer-a":                        "duplicate_verifier",
		"gate-marginal gate/panel.json --current reviewer-a reviewer-a":                                    "duplicate_verifier",
		"gate-marginal gate/holdout.json --current reviewer-a reviewer-b reviewer-c reviewer-d reviewer-e": "no_candidate_verifier",
	} {
		r := runWords(t, dir, words)
		if r.code != 2 || r.out != "" || !strings.Contains(r.err, says) || !strings.HasPrefix(r.err, "error: ") {
			t.Errorf("%s: exit %d, %q, %q; want %s", words, r.code, r.out, r.err, says)
		}
	}
	if after, err := os.ReadFile(panel); err != nil || string(after) != string(before) {
		t.Error("the input was changed")
	}
	for _, name := range []string{"new.json", "a.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Error(name, "was written", "want an error")
		}
	}
}
