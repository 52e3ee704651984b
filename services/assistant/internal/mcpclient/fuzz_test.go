package mcpclient_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

var endpointName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// hasHidden reports whether a text has characters that a person would not see.
func hasHidden(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	})
}

// FuzzForeignTool: whatever a server declares or answers, a model gets an object schema, bounded, and without hidden
// text.
func FuzzForeignTool(f *testing.F) {
	for _, s := range []string{
		`{"type":"object"}`, `{"type":"array"}`, `[]`, `null`, `{"type":"object","properties":{"a":{"type":"string","description":"x\u001b\u202ey"}}}`,
		`{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{"type":"object","properties":{"a":{"pattern":"("}}}`,
		`{"type":"object","properties":{"a":{"enum":[1,"b",null,{"c":["\u0000"]}]}}}`, "plain text \x00\xff", `{"type":"object","required":7}`,
		`{"type":"object","allOf":[{"$ref":"#"}]}`, `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"type":"object"}}}`,
	} {
		f.Add(s, "search.all")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		if operation.ValidToolName(name) {
			if got := mcpclient.OfferedName("wiki", name); !endpointName.MatchString(got) {
				t.Errorf("%q is offered as %q; want a name that endpoints take", name, got)
			}
		}
		if got := mcpclient.TextOf(&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}); hasHidden(got) || got == "" {
			t.Errorf("the answer %q became %q; want text without anything hidden", text, got)
		}
		raw, err := mcpclient.CleanSchema([]byte(text))
		if err != nil {
			return
		}
		var schema map[string]any
		if json.Unmarshal(raw, &schema) != nil || schema["type"] != "object" || len(raw) > 8<<10 || hasHidden(string(raw)) {
			t.Errorf("%q became %q; want the bounded schema of an object", text, raw)
		}
		again, err := mcpclient.CleanSchema(raw)
		if err != nil || string(again) != string(raw) {
			t.Errorf("%q became %q when cleaned again, %v; want it unchanged", raw, again, err)
		}
	})
}
