package cost_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// exchange is a request and its answer in the documentation.
var exchange = regexp.MustCompile("(?s)```http\n([A-Z]+) (\\S+)\n(.*?)\n?\n(\\d{3})\n(.*?)```")

// The documentation's exchanges, in order, on an empty database.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/costs.md")
	if err != nil {
		t.Fatal(err)
	}
	found := exchange.FindAllStringSubmatch(string(text), -1)
	if n := strings.Count(string(text), "```http"); len(found) != n || n < 8 {
		t.Fatalf("%d of %d exchanges were read; want len(found) == n && n >= 8", len(found), n)
	}
	p := controlplanetest.Start(t)
	for _, m := range found {
		status, err := strconv.Atoi(m[4])
		if err != nil {
			t.Fatal(err)
		}
		var body any
		if m[3] != "" {
			body = m[3]
		}
		var want any
		if err := json.Unmarshal([]byte(m[5]), &want); err != nil {
			t.Fatalf("%s %s: %v: %s", m[1], m[2], err, m[5])
		}
		got := p.Want(status, m[1], m[2], controlplanetest.Operator, body).Object(t)
		if err := containsDocument(any(got), want); err != nil {
			t.Errorf("%s %s: %v", m[1], m[2], err)
		}
	}
}

// containsDocument returns an error at the first value of want that got lacks; members absent from want may be
// anything.
func containsDocument(got, want any) error {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no object", got)
		}
		for name, w := range want {
			v, ok := have[name]
			if !ok {
				return fmt.Errorf("%s is missing", name)
			}
			if err := containsDocument(v, w); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return fmt.Errorf("%v, want %v", got, want)
		}
		for i, w := range want {
			if err := containsDocument(have[i], w); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
	default:
		if got != want {
			return fmt.Errorf("%v, want %v", got, want)
		}
	}
	return nil
}
