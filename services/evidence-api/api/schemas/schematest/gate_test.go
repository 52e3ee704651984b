package schematest_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

const (
	smallMatrix = `{"gate_id":"g","evidence_class":"observed","candidates":[{"id":"a","ground_truth":"accept"},` +
		`{"id":"b","ground_truth":"reject"},{"id":"p","ground_truth":"reject","probe":true,"probe_kind":"k"}],` +
		`"verifiers":[{"id":"v","verdicts":{"a":"accept","b":"reject","p":"reject"}}]}`
)

// A matrix may hold further keys, but the ones that are read are constrained.
func TestMatrices(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"as it is":                   {"", ""},
		"a key of the writer's own":  {`"gate_id"`, `"note":{"by":"me"},"gate_id"`},
		"a candidate's own key":      {`"id":"a"`, `"id":"a","note":1`},
		"a quorum":                   {`"gate_id"`, `"quorum":0,"gate_id"`},
		"no probe, and said so":      {`"ground_truth":"accept"`, `"ground_truth":"accept","probe":false`},
		"a probe without a kind":     {`,"probe_kind":"k"`, ""},
		"!no gate":                   {`"gate_id":"g",`, ""},
		"!no class":                  {`"evidence_class":"observed",`, ""},
		"!another class":             {"observed", "seen"},
		"!quorum 1":                  {`"gate_id"`, `"quorum":1,"gate_id"`},
		"!quorum below 0":            {`"gate_id"`, `"quorum":-0.1,"gate_id"`},
		"!another verdict":           {`"b":"reject"`, `"b":"perhaps"`},
		"!an empty id":               {`"id":"v"`, `"id":""`},
		"!a long id":                 {`"id":"v"`, `"id":"` + strings.Repeat("v", 257) + `"`},
		"!a kind without a probe":    {`"ground_truth":"accept"`, `"ground_truth":"accept","probe_kind":"k"`},
		"!an accepted probe":         {`"ground_truth":"reject","probe"`, `"ground_truth":"accept","probe"`},
		"!one candidate, one probe":  {`{"id":"b","ground_truth":"reject"},`, ""},
		"!no verifier":               {`{"id":"v","verdicts":{"a":"accept","b":"reject","p":"reject"}}`, ""},
		"!verdicts that are no map":  {`{"a":"accept","b":"reject","p":"reject"}`, "[]"},
		"!a candidate without truth": {`,"ground_truth":"accept"`, ""},
	} {
		text := strings.Replace(smallMatrix, change[0], change[1], 1)
		if change[0] != "" && text == smallMatrix {
			t.Errorf(`%s: nothing changed; want (change[0] == "" || text != smallMatrix)`, name)
		}
		if err := schematest.ValidateBytes(t, "gate-audit-matrix", []byte(text)); (err != nil) != strings.HasPrefix(name, "!") {
			t.Errorf(`%s: %v; want (err != nil) == strings.HasPrefix(name, "!")`, name, err)
		}
	}
}
