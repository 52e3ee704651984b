package operation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Equal calls of another server's tool are equal operations; arguments that are not a JSON object are refused.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                              "{}",
		` { "b" : 1, "a" : "<x>" } `:    `{"a":"<x>","b":1}`,
		`{"n":12345678901234567890.10}`: `{"n":12345678901234567890.10}`,
	} {
		got, err := operation.NewToolCall(operation.ReadTool, "wiki", "search", []byte(given))
		if err != nil || got.Arguments != want {
			t.Errorf("%s: got %s, %v; want %s", given, got.Arguments, err, want)
		}
	}
	for name, c := range map[string]struct {
		verb                    operation.Verb
		server, tool, arguments string
	}{
		"a list":           {operation.ReadTool, "wiki", "search", "[]"},
		"a member twice":   {operation.ReadTool, "wiki", "search", `{"a":1,"a":2}`},
		"more behind it":   {operation.ReadTool, "wiki", "search", `{} {}`},
		"too long":         {operation.ReadTool, "wiki", "search", `{"a":"` + strings.Repeat("x", operation.MaxToolArguments) + `"}`},
		"a bad server":     {operation.ReadTool, "Wiki!", "search", "{}"},
		"a bad tool":       {operation.WriteTool, "wiki", "search it", "{}"},
		"a cluster's verb": {operation.Delete, "wiki", "search", "{}"},
		"no tool's name":   {operation.WriteTool, "wiki", "", "{}"},
	} {
		if got, err := operation.NewToolCall(c.verb, c.server, c.tool, []byte(c.arguments)); err == nil {
			t.Errorf("%s: got %+v; want a fault", name, got)
		}
	}
}

// Calls of other servers' tools are not operations on the cluster: no list of those contains them, and no tool call
// yields them.
func TestToolCallsAreNoClusterVerbs(t *testing.T) {
	t.Parallel()
	for verb, risk := range map[operation.Verb]operation.Risk{operation.ReadTool: operation.Low, operation.WriteTool: operation.High} {
		if got := (operation.Operation{Verb: verb}).Risk(); got != risk || verb.Writes() != (risk != operation.Low) || !verb.OfServer() || !verb.Known() {
			t.Errorf("%s: risk %s, writes %t; want %s", verb, got, verb.Writes(), risk)
		}
		if slices.Contains(operation.Verbs(), verb) || operation.Schema(verb) != nil || operation.About(verb) != "" {
			t.Errorf("%s is listed among the operations on the cluster; want it apart", verb)
		}
		if op, err := operation.Decode(verb, []byte(`{"server":"wiki","tool":"search","arguments":"{}"}`)); err == nil {
			t.Errorf("%s was decoded as %+v; want a fault", verb, op)
		}
	}
	if operation.Scale.OfServer() {
		t.Error("scale is taken for a tool of another server; want an operation on the cluster")
	}
}
