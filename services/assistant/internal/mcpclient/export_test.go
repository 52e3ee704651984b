package mcpclient

import "github.com/modelcontextprotocol/go-sdk/mcp"

// CleanSchema is for tests of what a server may say of its tools.
func CleanSchema(given []byte) ([]byte, error) {
	raw, resolved, err := cleanSchema(given)
	if err == nil {
		_ = resolved.Validate(map[string]any{"a": []any{"b", map[string]any{"c": 1.0}}}) // it must end
	}
	return raw, err
}

// OfferedName is for tests of names.
func OfferedName(server, tool string) string { return offeredName(server, tool) }

// TextOf is for tests of answers.
func TextOf(r *mcp.CallToolResult) string { return textOf(r).text }
