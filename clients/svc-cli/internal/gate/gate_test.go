package gate_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
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

// matrixText makes a document of rows of verdicts, A for accept and R for reject; p in truth is a probe.
func matrixText(quorum, truth string, rows ...string) string {
	word := map[rune]string{'A': "accept", 'R': "reject", 'p': "reject"}
	var candidates, verifiers []string
	for i, c := range truth {
		probe := ""
		if c == 'p' {
			probe = `,"probe":true`
		}
		candidates = append(candidates, fmt.Sprintf(`{"id":"c%d","ground_truth":"%s"%s}`, i, word[c], probe))
	}
	for v, row := range rows {
		var verdicts []string
		for i, c := range row {
			verdicts = append(verdicts, fmt.Sprintf(`"c%d":"%s"`, i, word[c]))
		}
		verifiers = append(verifiers, fmt.Sprintf(`{"id":"v%d","verdicts":{%s}}`, v, strings.Join(verdicts, ",")))
	}
	return fmt.Sprintf(`{"gate_id":"g","evidence_class":"synthetic","quorum":%s,"candidates":[%s],"verifiers":[%s]}`,
		quorum, strings.Join(candidates, ","), strings.Join(verifiers, ","))
}

func auditText(t testing.TB, text string, b *gatestat.Bootstrap) *gate.Report {
	t.Helper()
	r, err := gate.Audit(t.Context(), parseText(t, text), gate.Options{Version: "test", Bootstrap: b})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkNear(t testing.TB, name string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-12 {
		t.Errorf("%s: %v, want %v", name, showNumber(got), want)
	}
}

func showNumber(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

func TestThePublishedPanel(t *testing.T) {
	t.Parallel()
	r := auditText(t, string(samples.File("gate/panel.json")), &gatestat.Bootstrap{Replicates: 2000, Seed: new(big.Int), ConfidenceLevel: 0.95})
	if r.Provenance.InputDigest != "23caa4c4cc57e91c31262bc9e830ccaecdb7884b7bf97d739c37d0615d6b2d8a" {
		t.Error(r.Provenance.InputDigest, `want "23caa4c4cc57e91c31262bc9e830ccaecdb7884b7bf97d739c37d0615d6b2d8a"`)
	}
	checkNear(t, "a", &r.Panel.Accuracy, .8)
	checkNear(t, "rho", r.Panel.Correlation, .09163977794943223)
	checkNear(t, "error", &r.Panel.Error, .16666666666666666)
	checkNear(t, "false accepts", r.Panel.FalseAccept, .25)
	checkNear(t, "false rejects", r.Panel.FalseReject, .125)
	checkNear(t, "effective votes", r.Panel.Votes, 1.6944444444444438)
	checkNear(t, "heuristic", r.Panel.Heuristic, 3.6588245300435087)
	ceiling, _ := r.Panel.Ceiling.(float64)
	checkNear(t, "ceiling", &ceiling, 9.31624758940236)
	if r.Probes.Breached != 2 || r.Probes.Total != 3 {
		t.Errorf("%+v; want r.Probes.Breached == 2 && r.Probes.Total == 3", r.Probes)
	}
	m := r.Uncertainty.Metrics
	checkNear(t, "error low", m.Error.CILow, 0)
	checkNear(t, "error high", m.Error.CIHigh, .4166666666666667)
	checkNear(t, "a low", m.Accuracy.CILow, .6666666666666666)
	checkNear(t, "a high", m.Accuracy.CIHigh, .9166666666666666)
	checkNear(t, "rho low", m.Correlation.CILow, -.17407765595569788)
	checkNear(t, "rho high", m.Correlation.CIHigh, .3933996418221948)
	checkNear(t, "votes low", m.Votes.CILow, 1)
	checkNear(t, "votes high", m.Votes.CIHigh, 199)
	if m.Correlation.ReplicatesUsed != 1992 || !m.Votes.HighCensored {
		t.Errorf("%+v; want m.Correlation.ReplicatesUsed == 1992 && m.Votes.HighCensored", m)
	}
}

func TestEdges(t *testing.T) {
	t.Parallel()
	b := &gatestat.Bootstrap{Replicates: 100, Seed: big.NewInt(3), ConfidenceLevel: 0.9}
	for _, c := range []struct {
		name, quorum, truth string
		rows                []string
		check               func(*gate.Report) bool
		warns               string // the codes
	}{
		{"one verifier", "0.5", "ARAR", []string{"ARAA"}, func(r *gate.Report) bool {
			return r.Panel.Correlation == nil && r.Panel.SkippedPairs == 0 && *r.Panel.Votes == 1 && r.Panel.Ceiling == nil
		}, "correlation_not_measurable"},
		{"no error at all", "0.5", "ARAR", []string{"ARAR", "ARAR"}, func(r *gate.Report) bool {
			return r.Panel.Correlation == nil && r.Panel.SkippedPairs == 1 && *r.Panel.Votes == 1 && r.Panel.Heuristic == nil
		}, "correlation_not_measurable"},
		{"all wrong", "0.5", "ARAR", []string{"RARA", "RARA"}, func(r *gate.Report) bool {
			return r.Panel.Votes == nil && r.Panel.Error == 1 && *r.Panel.FalseAccept == 1 && *r.Panel.FalseReject == 1
		}, "verifier_not_better_than_chance verifier_not_better_than_chance correlation_not_measurable panel_not_better_than_chance"},
		{"chance", "0.5", "ARAR", []string{"AAAA"}, func(r *gate.Report) bool { return r.Panel.Votes == nil && r.Panel.Ceiling == nil },
			"verifier_not_better_than_chance correlation_not_measurable panel_not_better_than_chance"},
		{"errors that never meet", "0.5", "AAAAAA", []string{"RAAAAA", "ARAAAA", "AARAAA"}, func(r *gate.Report) bool {
			return *r.Panel.Votes == 199 && r.Panel.Ceiling == gate.Unbounded && r.Panel.Heuristic == nil && r.Panel.FalseAccept == nil
		}, "effective_votes_saturated"},
		{"only a probe is breached", "0.5", "ARp", []string{"ARA"}, func(r *gate.Report) bool {
			return r.Panel.Error == 0 && r.Probes.Breached == 1 && r.Probes.ByKind["unspecified"].Breached == 1 && r.Inputs.KnownBad == 1
		}, "correlation_not_measurable probes_breached"},
		{"quorum 0: one vote accepts", "0", "RR", []string{"AR", "RR"}, func(r *gate.Report) bool { return r.Panel.Error == .5 },
			"verifier_not_better_than_chance correlation_not_measurable"},
		{"minus 0 is 0", "-0.0", "RR", []string{"AR", "RR"}, func(r *gate.Report) bool { return !math.Signbit(r.Panel.Quorum) },
			"verifier_not_better_than_chance correlation_not_measurable"},
		{"quorum near 1: every vote is needed", "0.99", "AA", []string{"AR", "AA"}, func(r *gate.Report) bool { return r.Panel.Error == .5 },
			"verifier_not_better_than_chance correlation_not_measurable"},
		{"half of two is no majority", "0.5", "AR", []string{"AA", "RR"}, func(r *gate.Report) bool { return r.Panel.Error == .5 && *r.Panel.FalseReject == 1 },
			"verifier_not_better_than_chance verifier_not_better_than_chance panel_not_better_than_chance"},
		{"clones", "0.5", "ARARAR", []string{"RRARAR", "RRARAR", "RRARAR"}, func(r *gate.Report) bool {
			return *r.Panel.Correlation == 1 && *r.Panel.Heuristic == 1 && *r.Panel.Votes == 1 && r.Panel.Ceiling == 1.0
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := auditText(t, matrixText(c.quorum, c.truth, c.rows...), b)
			var codes []string
			for _, w := range r.Warnings {
				code, _, _ := strings.Cut(w, ": ")
				codes = append(codes, code)
			}
			if !c.check(r) || strings.Join(codes, " ") != c.warns {
				t.Errorf("%v\n%s; want c.check(r) && strings.Join(codes, \" \") == c.warns", codes, r.Markdown())
			}
			if few := len(c.truth) < gatestat.MinRows; few != (r.Uncertainty.Metrics == nil) || few == r.Uncertainty.Sufficient {
				t.Errorf("%+v; want few == (r.Uncertainty.Metrics == nil) && few != r.Uncertainty.Sufficient", r.Uncertainty)
			}
			if _, err := canon.R(canon.MustFrom(r)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMatricesThatAreRefused(t *testing.T) {
	t.Parallel()
	good := matrixText("0.5", "ARp", "ARR")
	if _, err := gate.Read(parseText(t, good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, code, path string }{
		{`"gate_id":"g",`, "", gate.MissingField, "/gate_id"},
		{`"g"`, `""`, gate.InvalidValue, "/gate_id"},
		{`"g"`, `7`, gate.InvalidType, "/gate_id"},
		{"synthetic", "other", gate.InvalidValue, "/evidence_class"},
		{`"quorum":0.5`, `"quorum":1`, gate.InvalidValue, "/quorum"},
		{`"quorum":0.5`, `"quorum":-1e-9`, gate.InvalidValue, "/quorum"},
		{`"quorum":0.5`, `"quorum":null`, gate.InvalidType, "/quorum"},
		{`"quorum":0.5`, `"quorum":1` + strings.Repeat("0", 400), gate.InvalidValue, "/quorum"},
		{`"id":"c1"`, `"id":"c0"`, gate.DuplicateID, "/candidates/1/id"},
		{`"c1","ground_truth":"reject"`, `"c1","ground_truth":"maybe"`, gate.InvalidValue, "/candidates/1/ground_truth"},
		{`"reject","probe"`, `"accept","probe"`, gate.InvalidProbe, "/candidates/2/ground_truth"},
		{`"ground_truth":"accept"`, `"ground_truth":"accept","probe_kind":"k"`, gate.InvalidProbe, "/candidates/0/probe_kind"},
		{`"probe":true`, `"probe":1`, gate.InvalidType, "/candidates/2/probe"},
		{`"id":"c1","ground_truth":"reject"`, `"id":"c1","ground_truth":"reject","probe":true`, gate.TooFewCandidates, "/candidates"},
		{`"v0"`, `"` + strings.Repeat("ä", 257) + `"`, gate.InvalidValue, "/verifiers/0/id"},
		{`,"c2":"reject"`, ``, gate.MissingField, "/verifiers/0/verdicts/c2"},
		{`"c2":"reject"`, `"c2":"reject","c3":"reject"`, gate.UnknownCandidate, "/verifiers/0/verdicts/c3"},
		{`"c2":"reject"`, `"c2":null`, gate.InvalidType, "/verifiers/0/verdicts/c2"},
		{`{"c0":`, `[],"x":{"c0":`, gate.InvalidType, "/verifiers/0/verdicts"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		_, err := gate.Read(parseText(t, text))
		var f *closed.Fault
		if !errors.As(err, &f) || f.Code != c.code || f.Path != c.path {
			t.Errorf("%s -> %s: %v, want %s at %s", c.from, c.to, err, c.code, c.path)
		}
	}
	for text, code := range map[string]string{
		`[]`: gate.InvalidDocument,
		`{"gate_id":"g","evidence_class":"observed","candidates":[{"id":"a","ground_truth":"accept"},{"id":"b","ground_truth":"accept"}],"verifiers":[]}`: gate.InvalidValue,
		matrixText("0.5", "AR", slices.Repeat([]string{"AR"}, gate.MaxVerifiers+1)...):                                                                    gate.TooManyVerifiers,
	} {
		_, err := gate.Read(parseText(t, text))
		var f *closed.Fault
		if !errors.As(err, &f) || f.Code != code {
			t.Errorf("%.60s: %v, want %s", text, err, code)
		}
	}
}

func TestForeignKeysAreDigestedOnly(t *testing.T) {
	t.Parallel()
	plain := matrixText("0.5", "ARAR", "ARAA")
	noted := strings.Replace(plain, `"gate_id"`, `"note":"ä","gate_id"`, 1)
	a, b := auditText(t, plain, nil), auditText(t, noted, nil)
	if a.Provenance.InputDigest == b.Provenance.InputDigest {
		t.Error("the digest does not cover the note")
	}
	b.Provenance = a.Provenance
	if x, y := canon.Digest(canon.MustFrom(a)), canon.Digest(canon.MustFrom(b)); x != y {
		t.Error("the note changed the report")
	}
}

func TestDependence(t *testing.T) {
	t.Parallel()
	m, err := gate.Read(parseText(t, strings.Replace(matrixText("0.5", "ARAR", "ARAA", "RRAA", "ARAR"), `"v2"`, `"a"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	d := m.Dependence("test")
	if !slices.Equal(d.VerifierIDs, []string{"a", "v0", "v1"}) || len(d.Pairs) != 3 || len(d.Warnings) != 1 {
		t.Fatalf(`%+v; want slices.Equal(d.VerifierIDs, []string{"a", "v0", "v1"}) && len(d.Pairs) == 3 && len(d.Warnings) == 1`, d)
	}
	p := d.Pairs[2]
	if p.A != "v0" || p.B != "v1" || !p.Measurable || p.Joint != 1 || p.AErrors != 1 || p.BErrors != 2 {
		t.Errorf(`%+v; want p.A == "v0" && p.B == "v1" && p.Measurable && p.Joint == 1 && p.AErrors == 1 && p.BErrors == 2`, p)
	}
	checkNear(t, "phi", p.Phi, 1/math.Sqrt(3))
	if p := d.Pairs[0]; p.Measurable || p.Phi != nil || p.AErrors != 0 {
		t.Errorf("%+v; want !p.Measurable && p.Phi == nil && p.AErrors == 0", p)
	}
	one, err := gate.Read(parseText(t, matrixText("0.5", "AR", "AR")))
	if err != nil {
		t.Fatal(err)
	}
	if d := one.Dependence("test"); len(d.Pairs) != 0 || len(d.Warnings) != 1 {
		t.Errorf("%+v; want len(d.Pairs) == 0 && len(d.Warnings) == 1", d)
	}
}

func TestMarkdownHoldsOnlyItsOwnMarkup(t *testing.T) {
	t.Parallel()
	text := strings.Replace(matrixText("0.5", "ARAR", "ARAA", "AAAA"), `"v1"`, `"a|b\n# <b>![x](http://e)\u202e"`, 1)
	md := string(auditText(t, text, nil).Markdown())
	if !strings.Contains(md, "| a\\|b \\# \\<b\\>!\\[x\\](http://e)  | 0.5000 | 2 |") || !strings.HasPrefix(md, "# 2 verifiers ~ 6.57 effective votes\n") {
		t.Error(md, "want strings.Contains(md, \"| a\\\\|b \\\\# \\\\<b\\\\>!\\\\[x\\\\](http://e) | 0.5000 | 2 |\") && strings.HasPrefix(md, \"# 2 verifiers ~ 6.57 effective votes\\n\")")
	}
	md = string(auditText(t, matrixText("0.5", "AR", "AA"), nil).Markdown())
	if !strings.HasPrefix(md, "# 1 verifier ~ undefined effective votes\n") {
		t.Error(md, "want strings.HasPrefix(md, \"# 1 verifier ~ undefined effective votes\\n\")")
	}
	md = string(auditText(t, matrixText("0.5", "AAAAAA", "RAAAAA", "ARAAAA", "AARAAA"), nil).Markdown())
	if !strings.HasPrefix(md, "# 3 verifiers ~ >= 199 effective votes\n") || !strings.Contains(md, "| Ceiling of effective votes | unbounded |") {
		t.Error(md, "want strings.HasPrefix(md, \"# 3 verifiers ~ >= 199 effective votes\\n\") && strings.Contains(md, \"| Ceiling of effective votes | unbounded |\")")
	}
}

// Matrices that nearly fill a document of 2 MiB are read and audited quickly, and a bootstrap of the common size takes
// about a second.
func TestLargeMatrices(t *testing.T) {
	t.Parallel()
	random := func(rows, verifiers int) string {
		r := rand.New(rand.NewPCG(7, 7))
		truth := make([]byte, rows)
		for i := range truth {
			truth[i] = "AR"[r.IntN(2)]
		}
		all := make([]string, verifiers)
		for v := range all {
			row := slices.Clone(truth)
			for i := range row {
				if r.IntN(5) == 0 {
					row[i] = 'A' + 'R' - row[i]
				}
			}
			all[v] = string(row)
		}
		return matrixText("0.5", string(truth), all...)
	}
	for _, c := range []struct{ rows, verifiers, replicates int }{{1000, 10, 2000}, {700, 128, 100}, {15_000, 4, 200}} {
		text := random(c.rows, c.verifiers)
		if len(text) > canon.MaxFile {
			t.Fatalf("%d rows of %d verifiers are no file; want len(text) <= canon.MaxFile", c.rows, c.verifiers)
		}
		start := time.Now()
		r := auditText(t, text, &gatestat.Bootstrap{Replicates: c.replicates, Seed: big.NewInt(1), ConfidenceLevel: 0.95})
		took := time.Since(start)
		t.Logf("%d rows, %d verifiers, %d replicates: %v", c.rows, c.verifiers, c.replicates, took)
		if took > time.Minute || r.Uncertainty.Metrics.Correlation.ReplicatesUsed != c.replicates {
			t.Errorf("%v; want took <= time.Minute && r.Uncertainty.Metrics.Correlation.ReplicatesUsed == c.replicates", took)
		}
	}
}

// The most replicates of a large matrix would take an hour; they are refused at once.
func TestBootstrapsThatWouldTakeTooLong(t *testing.T) {
	t.Parallel()
	rows := slices.Repeat([]string{strings.Repeat("A", 100)}, gate.MaxVerifiers)
	_, err := gate.Audit(t.Context(), parseText(t, matrixText("0.5", strings.Repeat("AR", 50), rows...)),
		gate.Options{Bootstrap: &gatestat.Bootstrap{Replicates: gatestat.MaxReplicates, Seed: new(big.Int), ConfidenceLevel: 0.9}})
	var f *closed.Fault
	if !errors.As(err, &f) || f.Code != gatestat.TooMuchWork || !strings.Contains(f.Detail, "use ") {
		t.Error(err, `want errors.As(err, &f) && f.Code == gatestat.TooMuchWork && strings.Contains(f.Detail, "use ")`)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(string(samples.File("gate/panel.json")))
	f.Add(matrixText("0", "ARp", "ARR", "AAA"))
	f.Add(`{"gate_id":"g","evidence_class":"observed","quorum":1e-320,"candidates":[{"id":"a","ground_truth":"accept"}],"verifiers":[{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := canon.Parse([]byte(text), canon.MaxBytes(canon.MaxFile))
		if err != nil {
			return
		}
		// A matrix is refused with a place, or makes a report that can be written and contains no impossible figure.
		r, err := gate.Audit(t.Context(), v, gate.Options{Version: "test"})
		if err != nil {
			var fault *closed.Fault
			if !errors.As(err, &fault) || fault.Code == "" || fault.Detail == "" {
				t.Fatal(err, `want errors.As(err, &fault) && fault.Code != "" && fault.Detail != ""`)
			}
			return
		}
		if _, err := canon.R(canon.MustFrom(r)); err != nil {
			t.Fatal(err)
		}
		p := r.Panel
		if p.Error < 0 || p.Error > 1 || p.Accuracy < 0 || p.Accuracy > 1 || p.Votes != nil && (*p.Votes < 1 || *p.Votes > gatestat.Saturated) ||
			p.Correlation != nil && math.Abs(*p.Correlation) > 1 || r.Inputs.KnownGood+r.Inputs.KnownBad != r.Inputs.NonProbeCandidates {
			t.Fatalf("%+v; want p.Error >= 0 && p.Error <= 1 && p.Accuracy >= 0 && p.Accuracy <= 1 && (p.Votes == nil || !*p.Votes < 1 || *p.Votes > gatestat.Saturated) && …", p)
		}
		_ = r.Markdown()
	})
}
