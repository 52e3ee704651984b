package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// refusal answers requests that are no call of the protocol: with an error of JSON-RPC that says in a sentence what is wrong
// and what to do. The protocol's library answers them with a few words of plain text, which it does as a ResponseWriter.
type refusal struct {
	http.ResponseWriter
	id     json.RawMessage // of the message; nil: it has none, or could not be read
	status int             // of the text that comes next; 0: none does
}

// newRefusal answers the sender of a message.
func newRefusal(w http.ResponseWriter, message []byte) *refusal {
	r := &refusal{ResponseWriter: w}
	var m struct{ ID json.RawMessage }
	if json.Unmarshal(message, &m) == nil && len(m.ID) > 0 && strings.IndexByte(`"-0123456789`, m.ID[0]) >= 0 {
		r.id = m.ID
	}
	return r
}

// WriteHeader is part of http.ResponseWriter.
func (r *refusal) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(r.Header().Get("Content-Type"), "text/plain") {
		r.status = status
		return
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write is part of http.ResponseWriter.
func (r *refusal) Write(text []byte) (int, error) {
	if r.status == 0 {
		return r.ResponseWriter.Write(text)
	}
	status, said := r.status, string(bytes.TrimSpace(text))
	r.status = 0
	code := int64(jsonrpc.CodeInvalidRequest)
	if strings.HasPrefix(said, malformed) {
		code = jsonrpc.CodeParseError
	}
	return len(text), r.write(status, code, sentenceFor(said))
}

// Unwrap lets http.ResponseController reach what flushes.
func (r *refusal) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// write writes the answer.
func (r *refusal) write(status int, code int64, message string) error {
	answer := map[string]any{"jsonrpc": "2.0", "error": map[string]any{"code": code, "message": message}}
	if r.id != nil {
		answer["id"] = r.id // the protocol leaves it out where it is not known
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode a refusal: %w", err)
	}
	r.Header().Set("Content-Type", "application/json")
	r.ResponseWriter.WriteHeader(status)
	_, err = r.ResponseWriter.Write(raw)
	return err
}

// malformed begins what the library says of a body that is no JSON-RPC.
const malformed = "malformed payload: "

// sentenceFor says in a sentence what the library says in a few words.
func sentenceFor(said string) string {
	switch {
	case strings.HasPrefix(said, "Accept must"):
		return "Send the header Accept: application/json, text/event-stream. The protocol asks each client to take both."
	case strings.Contains(said, "Unsupported protocol version"):
		_, versions, _ := strings.Cut(strings.TrimSuffix(said, ")"), "supported versions: ")
		return "The version in the header MCP-Protocol-Version is not supported. Send one of " + strings.ReplaceAll(versions, ",", ", ") + ", or leave the header out."
	case strings.Contains(said, "non-empty body"):
		return "The request has no body. Send one message of JSON-RPC 2.0."
	case strings.HasPrefix(said, malformed):
		return "The body is no message of JSON-RPC 2.0: " + strings.TrimPrefix(said, malformed) + ". Send one object with jsonrpc, method and params, and with an id if it is a request."
	case strings.Contains(said, "Last-Event-ID"):
		return "No stream can be resumed here. Send the message again without the header Last-Event-ID."
	}
	return "The message is not one of the Model Context Protocol: " + said + ". Send a method of the protocol, such as tools/list or tools/call."
}
