package route

import (
	"slices"
	"testing"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"/api/v1/status":                        {Status, ""},
		"/api/v1/runs":                          {Runs, ""},
		"/api/v1/runs/":                         {},
		"/api/v1/runs/run/demo:0001":            {Run, "run/demo:0001"},
		"/api/v1/runs/run%2Fdemo%3a0001":        {Run, "run/demo:0001"},
		"/api/v1/runs/X/attempts":               {RunAttempts, "X"},
		"/api/v1/runs/X%2Fattempts":             {Run, "X/attempts"},
		"/api/v1/runs/X/attempts/evidence":      {RunEvidence, "X/attempts"},
		"/api/v1/runs/X/decisions":              {},
		"/api/v1/runs/attempts":                 {Run, "attempts"},
		"/api/v1/runs//attempts":                {Run, "/attempts"},
		"/api/v1/runs/%2e%2e/x":                 {Run, "../x"},
		"/api/v1/runs/../status":                {Run, "../status"},
		"/api/v1/runs/a%252Fb":                  {Run, "a%2Fb"},
		"/api/v1/runs/a%2":                      {Run, "a%2"},
		"/api/v1/runs/a%2Fb%zz":                 {Run, "a%2Fb%zz"},
		"/api/v1/work-units/a/attempts":         {WorkUnit, "a/attempts"},
		"/api/v1/work-units/":                   {},
		"/api/v1/projects/project/demo":         {Project, "project/demo"},
		"/api/v1/projects":                      {},
		"/api/v1/connections/x":                 {Connection, "x"},
		"/api/v1/events/stream":                 {StreamEvents, ""},
		"/api/v1/events/checkpoint":             {Checkpoint, ""},
		"/api/v1/events/evt-000000000001/proof": {Proof, "evt-000000000001"},
		"/api/v1/events/proof":                  {},
		"/api/v1/events//proof":                 {},
		"/api/v1/events/":                       {},
		"/api/v1/human-decisions":               {},
		"/api/v1/Status":                        {},
		"/api/v1//status":                       {},
		"/api/v1/%73tatus":                      {},
		"/metrics":                              {Prometheus, ""},
		"/nope":                                 {},
		"":                                      {},
	} {
		op, id := Match(path)
		name := ""
		if op != nil {
			name = op.ID
		}
		if name != want[0] || id != want[1] {
			t.Errorf("%s: %q %q, want %q", path, name, id, want)
		}
	}
}

func TestQueryNamesAreSorted(t *testing.T) {
	t.Parallel()
	for _, o := range Table() {
		if !slices.IsSorted(o.Query) {
			t.Errorf("%s: %v; want slices.IsSorted(o.Query)", o.ID, o.Query)
		}
	}
}

// FuzzMatch: an id is never empty, never longer than the path, and only where a path
// has one.
func FuzzMatch(f *testing.F) {
	f.Add("/api/v1/runs/a%2Fb/attempts")
	f.Add("/api/v1/events/%/proof")
	f.Fuzz(func(t *testing.T, path string) {
		op, id := Match(path)
		if op == nil {
			if id != "" {
				t.Fatal("an id without an endpoint")
			}
			return
		}
		if op.hasID() != (id != "") || len(id) > len(path) {
			t.Fatalf(`%s: %q; want op.hasID() == (id != "") && len(id) <= len(path)`, op.ID, id)
		}
	})
}
