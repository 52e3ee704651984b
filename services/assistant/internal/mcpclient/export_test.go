package mcpclient

import "github.com/modelcontextprotocol/go-sdk/mcp"

// CleanSchema cleans and checks the schema of a tool, for tests.
func CleanSchema(given []byte) ([]byte, error) {
	raw, resolved, err := cleanSchema(given)
	if err == nil {
		_ = resolved.Validate(map[string]any{"a": []any{"b", map[string]any{"c": 1.0}}}) // it must end
	}
	return raw, err
}

// OfferedName exports offeredName for tests.
func OfferedName(server, tool string) string { return offeredName(server, tool) }

// TextOf exports textOf for tests.
func TextOf(r *mcp.CallToolResult) string { return textOf(r).text }
