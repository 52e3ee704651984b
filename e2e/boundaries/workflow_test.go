package boundaries

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
)

// The workflow and .ci/run run the same checks: one that is missing in either would fail unnoticed.
func TestWorkflowChecksWhatCIRuns(t *testing.T) {
	script, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, m := range regexp.MustCompile(`(?m)(?:^|')make (lint|test|e2e)\b`).FindAllSubmatch(script, -1) {
		want = append(want, string(m[1]))
	}
	raw, err := os.ReadFile("../../.github/workflows/ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs struct {
			Check struct {
				Strategy struct {
					Matrix struct{ Target []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(raw, &workflow); err != nil {
		t.Fatal(err)
	}
	got := workflow.Jobs.Check.Strategy.Matrix.Target
	slices.Sort(got)
	slices.Sort(want)
	if len(want) != 3 || !slices.Equal(got, want) {
		t.Errorf("the workflow makes %v, .ci/run makes %v; want lint, test and e2e of both", got, want)
	}
}
