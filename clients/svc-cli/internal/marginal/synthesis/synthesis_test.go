package synthesis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/configdir"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal/benchmark"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal/synthesis"
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
	good := string(samples.File("gate/synthesis.json"))
	for _, c := range []struct{ from, to, code string }{
		{`"benchmark-report.json"`, `"benchmark-2-report.json"`, configdir.SameFile},
		{`"benchmark-report.json"`, `"./benchmark-2-report.json"`, configdir.SameFile},
		{`"benchmark-report.json"`, `"../x.json"`, configdir.OutsideFolder},
		{`"benchmark-report.json",`, ``, gate.InvalidValue},
		{`dominance-v0.1`, `dominance-v0.2`, gate.InvalidValue},
		{`"synthetic"`, `"other"`, gate.InvalidValue},
		{`"synthesis_id"`, `"id"`, gate.MissingField},
		{`{`, `{"more":1,`, gate.UnknownField},
		{`"benchmark-report.json"`, `"a"` + manyNames(synthesis.MaxReports), synthesis.TooManyReports},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Errorf("%s is not there; want text != good", c.from)
		}
		if _, err := synthesis.ReadConfig(parseText(t, text)); faultCode(err) != c.code {
			t.Errorf("%s -> %s: %v, want %s", c.from, c.to, err, c.code)
		}
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"` + strings.Repeat("n", i+1) + `"`)
	}
	return b.String()
}

// runPair puts two reports together, of which change alters the second.
func runPair(t *testing.T, change func(string) string) (*synthesis.Report, error) {
	t.Helper()
	c, err := synthesis.ReadConfig(parseText(t, string(samples.File("gate/synthesis.json"))))
	if err != nil {
		t.Fatal(err)
	}
	return synthesis.Run(t.Context(), c, func(name string) (canon.Value, error) {
		text := string(samples.File("gate/" + name))
		if name == "benchmark-2-report.json" {
			text = change(text)
		}
		return parseText(t, text), nil
	}, "test")
}

func TestReportsThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	first := string(samples.File("gate/benchmark-report.json"))
	digest := func(split string) string {
		_, after, _ := strings.Cut(first, `"`+split+`": {`)
		_, after, _ = strings.Cut(after, `"input_digest_sha256": "`)
		return after[:64]
	}
	own := string(samples.File("gate/benchmark-2-report.json"))
	ownDigest := func(split string) string {
		_, after, _ := strings.Cut(own, `"`+split+`": {`)
		_, after, _ = strings.Cut(after, `"input_digest_sha256": "`)
		return after[:64]
	}
	replace := func(from, to string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(s, from, to) }
	}
	for name, c := range map[string]struct {
		change func(string) string
		code   string
	}{
		"as it is":          {func(s string) string { return s }, ""},
		"the same report":   {func(string) string { return first }, synthesis.RepeatedCohort},
		"the same id":       {replace("second-cohort-example", "heldout-marginal-example"), synthesis.RepeatedCohort},
		"the same design":   {replace(ownDigest("design"), digest("design")), synthesis.RepeatedCohort},
		"the same holdout":  {replace(ownDigest("holdout"), digest("holdout")), synthesis.RepeatedCohort},
		"another class":     {replace(`"evidence_class": "synthetic"`, `"evidence_class": "observed"`), synthesis.EvidenceClassMismatch},
		"an altered choice": {replace(`"selected_verifier_id": "reviewer-d"`, `"selected_verifier_id": "reviewer-e"`), benchmark.PlanDigestWrong},
	} {
		if _, err := runPair(t, c.change); faultCode(err) != c.code || c.code == "" && err != nil {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
}

// A config is refused with a place, or names two or more distinct files within its folder.
func FuzzReadConfig(f *testing.F) {
	f.Add(string(samples.File("gate/synthesis.json")))
	f.Fuzz(func(t *testing.T, text string) {
		v, err := canon.Parse([]byte(text), canon.MaxBytes(canon.MaxFile))
		if err != nil {
			return
		}
		c, err := synthesis.ReadConfig(v)
		if err != nil {
			if faultCode(err) == "" {
				t.Fatal(err, `want faultCode(err) != ""`)
			}
			return
		}
		seen := map[string]bool{}
		for _, name := range c.Reports {
			if !configdir.IsRelative(name) || seen[name] {
				t.Fatal(c.Reports, "want configdir.IsRelative(name) && !seen[name]")
			}
			seen[name] = true
		}
		if len(seen) < 2 {
			t.Fatal(c.Reports, "want len(seen) >= 2")
		}
	})
}
