package mcpclient_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
)

// A schema with infinitely recursive references would crash the process at the first call; one whose references double
// would take hours.
func TestReferencesHaveAnEnd(t *testing.T) {
	t.Parallel()
	var doubled strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubled, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for name, c := range map[string]struct{ schema, want string }{
		"itself":           {`{"type":"object","$ref":"#"}`, "refers to itself"},
		"a part of itself": {`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, "refers to itself"},
		"each other":       {`{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "refers to itself"},
		"doubling":         {`{"type":"object","$ref":"#/$defs/d0","$defs":{` + doubled.String() + `"d40":{}}}`, "refers to itself, or to too much"},
		"elsewhere":        {`{"type":"object","$ref":"http://127.0.0.1/schema"}`, "not in it"},
		"a file":           {`{"type":"object","$ref":"other.json"}`, "not in it"},
		"an anchor":        {`{"type":"object","$ref":"#there","$defs":{"a":{"$anchor":"there"}}}`, "not in it"},
		"nowhere":          {`{"type":"object","$ref":"#/$defs/a"}`, "not in it"},
		"a dynamic one":    {`{"type":"object","$dynamicRef":"#"}`, "not in it"},
		"a list":           {`{"type":"object","allOf":[{}],"$ref":"#/allOf/7"}`, "not in it"},
	} {
		if got, err := mcpclient.CleanSchema([]byte(c.schema)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %s, %v; want an error with %q", name, got, err, c.want)
		}
	}
	for _, schema := range []string{
		`{"$defs":{"page":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/page"},"b":{"$ref":"#/$defs/page"}},"type":"object"}`,
		`{"$defs":{"a/b":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/a~1b"},"id":{"type":"string"}},"type":"object"}`,
		`{"additionalProperties":false,"properties":{"description":{"type":"string"},"examples":{"type":"array"}},"type":"object"}`,
		`{"allOf":[{"required":["a"]}],"anyOf":[{"$ref":"#/allOf/0"}],"type":"object"}`,
	} {
		if got, err := mcpclient.CleanSchema([]byte(schema)); err != nil || string(got) != schema {
			t.Errorf("got %s, %v; want %s as it is", got, err, schema)
		}
	}
}
