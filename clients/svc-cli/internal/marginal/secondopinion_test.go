package marginal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal"
)

type object = map[string]any

// opinion is the result of testdata/second_opinion.py for a case.
type opinion struct {
	Digest string `json:"digest"`
	Panel  struct {
		Error, A, Rho, Votes, Heuristic *float64
		FalseAccept                     *float64 `json:"false_accept"`
		FalseReject                     *float64 `json:"false_reject"`
		Ceiling                         any
		Skipped, Breached               int
	} `json:"panel"`
	Intervals  map[string]interval `json:"intervals"`
	Candidates []struct {
		ID                                             string
		Accuracy                                       float64
		ErrorDelta                                     float64  `json:"error_delta"`
		VotesDelta                                     *float64 `json:"votes_delta"`
		Correlation                                    *float64
		Changed, Rescued, Spoiled, Prevented, Breached int
		Intervals                                      map[string]interval `json:"intervals"`
	} `json:"candidates"`
}

type interval struct {
	Point, Low, High *float64
	Used             int
}

// randomCase makes a matrix in which all kinds of panels occur: few and many rows, verifiers better and worse than
// chance, perfect ones, clones, and every quorum.
func randomCase(r *rand.Rand) object {
	rows, verifiers, probes := 2+r.IntN(14), 2+r.IntN(6), r.IntN(4)
	word := func(b bool) string {
		if b {
			return "accept"
		}
		return "reject"
	}
	var candidates, all []any
	truth := make([]bool, rows+probes)
	for i := range truth {
		truth[i] = i < rows && r.IntN(2) == 0
		c := object{"id": fmt.Sprintf("ç%d", i), "ground_truth": word(truth[i])}
		if i >= rows {
			c["probe"] = true
		}
		candidates = append(candidates, c)
	}
	var last []bool
	for v := range verifiers {
		wrong := []float64{0, 0.1, 0.2, 0.3, 0.5, 0.9}[r.IntN(6)]
		accepts := make([]bool, len(truth))
		for i := range truth {
			accepts[i] = truth[i] != (r.Float64() < wrong)
		}
		if last != nil && r.IntN(6) == 0 {
			accepts = last // a clone
		}
		last = accepts
		verdicts := object{}
		for i, c := range candidates {
			verdicts[c.(object)["id"].(string)] = word(accepts[i])
		}
		all = append(all, object{"id": fmt.Sprintf("v%d", v), "verdicts": verdicts})
	}
	current := []any{"v0"}
	if verifiers > 2 && r.IntN(2) == 0 {
		current = append(current, "v1")
	}
	seed := big.NewInt(r.Int64() - r.Int64())
	if r.IntN(3) == 0 {
		seed.Lsh(seed, uint(r.IntN(200)))
	}
	return object{
		"matrix":    object{"gate_id": "g", "evidence_class": "observed", "quorum": []float64{0.5, 0.5, 0.5, 0, 0.25, 1.0 / 3, 2.0 / 3, 0.7, 0.999}[r.IntN(9)], "candidates": candidates, "verifiers": all},
		"current":   current,
		"bootstrap": object{"replicates": 100, "seed": seed, "confidence_level": []float64{0.5, 0.9, 0.95}[r.IntN(3)]},
	}
}

// The formulas, written once more in another language, give the same figures on random matrices.
func TestSecondOpinion(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the second opinion needs python3: %v", err)
	}
	const cases = 40
	r := rand.New(rand.NewPCG(2026, 11))
	var in bytes.Buffer
	docs := make([]object, cases)
	for i := range docs {
		docs[i] = randomCase(r)
		if err := json.NewEncoder(&in).Encode(docs[i]); err != nil {
			t.Fatal(err)
		}
	}
	lines := bytes.Split(bytes.Clone(in.Bytes()), []byte("\n"))
	cmd := exec.CommandContext(t.Context(), python, "testdata/second_opinion.py")
	cmd.Stdin = &in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	opinions := json.NewDecoder(bytes.NewReader(out))
	seen := map[string]int{}
	for i := range docs {
		var want opinion
		if err := opinions.Decode(&want); err != nil {
			t.Fatal(err)
		}
		parsed, err := canon.Parse(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		doc, _ := parsed.(*canon.Object).Get("matrix")
		x := &comparer{t: t, where: fmt.Sprintf("case %d", i), doc: string(lines[i]), seen: seen}
		x.compare(doc, docs[i], want)
		if t.Failed() {
			return
		}
	}
	// The cases cover the situations for which they were made.
	for _, kind := range []string{"votes undefined", "votes censored", "votes between", "rho undefined", "unbounded", "too few rows", "votes delta", "no votes delta"} {
		if seen[kind] == 0 {
			t.Errorf("no case has %s; want seen[kind] != 0", kind)
		}
	}
}

type comparer struct {
	t          *testing.T
	where, doc string
	seen       map[string]int
}

func (x *comparer) compare(doc canon.Value, c object, want opinion) {
	spec := c["bootstrap"].(object)
	b := &gatestat.Bootstrap{Replicates: 100, Seed: spec["seed"].(*big.Int), ConfidenceLevel: spec["confidence_level"].(float64)}
	m, err := gate.Read(doc)
	if err != nil {
		x.t.Fatal(err)
	}
	r, err := m.Audit(x.t.Context(), gate.Options{Bootstrap: b})
	if err != nil {
		x.t.Fatal(err)
	}
	p := want.Panel
	x.same("digest", r.Provenance.InputDigest, want.Digest)
	x.near("error", &r.Panel.Error, p.Error)
	x.near("a", &r.Panel.Accuracy, p.A)
	x.near("rho", r.Panel.Correlation, p.Rho)
	x.near("votes", r.Panel.Votes, p.Votes)
	x.near("heuristic", r.Panel.Heuristic, p.Heuristic)
	x.near("false accepts", r.Panel.FalseAccept, p.FalseAccept)
	x.near("false rejects", r.Panel.FalseReject, p.FalseReject)
	x.same("skipped", r.Panel.SkippedPairs, p.Skipped)
	if ceiling, ok := p.Ceiling.(float64); ok {
		got, _ := r.Panel.Ceiling.(float64)
		x.near("ceiling", &got, &ceiling)
	} else {
		x.same("ceiling", r.Panel.Ceiling, p.Ceiling)
	}
	if r.Probes != nil {
		x.same("breached", r.Probes.Breached, p.Breached)
	}
	if u := r.Uncertainty; u.Metrics != nil {
		x.interval("error", u.Metrics.Error, want.Intervals["error"])
		x.interval("a", u.Metrics.Accuracy, want.Intervals["a"])
		x.interval("rho", u.Metrics.Correlation, want.Intervals["rho"])
		x.interval("votes", u.Metrics.Votes.Metric, want.Intervals["votes"])
	}
	x.note(r)

	var current []string
	for _, id := range c["current"].([]any) {
		current = append(current, id.(string))
	}
	report, err := marginal.Analyse(x.t.Context(), m, marginal.Options{Current: current, Bootstrap: b})
	if err != nil {
		x.t.Fatal(err)
	}
	x.same("candidates", len(report.Candidates), len(want.Candidates))
	for i, w := range want.Candidates {
		g := report.Candidates[i]
		x.same("id", g.ID, w.ID)
		x.near("accuracy", &g.Accuracy, &w.Accuracy)
		x.near("error delta", &g.ErrorDelta, &w.ErrorDelta)
		x.near("votes delta", g.VotesDelta, w.VotesDelta)
		x.near("correlation", g.Correlation, w.Correlation)
		x.same("changed", g.Transitions.Changed, w.Changed)
		x.same("rescued", g.Transitions.CorrectOnErrors, w.Rescued)
		x.same("spoiled", g.Transitions.WrongOnCorrect, w.Spoiled)
		if g.Probes != nil {
			x.same("prevented", g.Probes.Prevented, w.Prevented)
			x.same("breached", g.Probes.AugmentedBreached, w.Breached)
		}
		x.same("intervals", g.Uncertainty != nil, w.Intervals != nil)
		if g.Uncertainty != nil {
			x.interval("error delta", g.Uncertainty.ErrorDelta, w.Intervals["error_delta"])
			x.interval("votes delta", g.Uncertainty.VotesDelta, w.Intervals["votes_delta"])
		}
		if g.VotesDelta != nil {
			x.seen["votes delta"]++
		} else {
			x.seen["no votes delta"]++
		}
	}
}

// note counts the kinds of figures that came up.
func (x *comparer) note(r *gate.Report) {
	switch v := r.Panel.Votes; {
	case v == nil:
		x.seen["votes undefined"]++
	case *v == gatestat.Saturated:
		x.seen["votes censored"]++
	case *v > 1:
		x.seen["votes between"]++
	}
	if r.Panel.Correlation == nil {
		x.seen["rho undefined"]++
	}
	if r.Panel.Ceiling == gate.Unbounded {
		x.seen["unbounded"]++
	}
	if !r.Uncertainty.Sufficient {
		x.seen["too few rows"]++
	}
}

func (x *comparer) same(what string, got, want any) {
	x.t.Helper()
	if got != want {
		x.t.Errorf("%s: %s: %v, the second opinion is %v\n%s", x.where, what, got, want, x.doc)
	}
}

func (x *comparer) near(what string, got, want *float64) {
	x.t.Helper()
	if (got == nil) != (want == nil) || got != nil && math.Abs(*got-*want) > 1e-12*max(1, math.Abs(*want)) {
		x.t.Errorf("%s: %s: %v, the second opinion is %v\n%s", x.where, what, showNumber(got), showNumber(want), x.doc)
	}
}

func showNumber(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}

func (x *comparer) interval(what string, got gatestat.Metric, want interval) {
	x.t.Helper()
	x.near(what, got.Point, want.Point)
	x.near(what+" low", got.CILow, want.Low)
	x.near(what+" high", got.CIHigh, want.High)
	x.same(what+" used", got.ReplicatesUsed, want.Used)
}
