package operation

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// Verbs that call a tool of another server. They are not operations on the cluster, so [Verbs] does not list them and
// [Decode] does not return them: only [NewToolCall] does.
const (
	ReadTool  Verb = "read_tool"
	WriteTool Verb = "write_tool"
)

var serverSpecs = map[Verb]*spec{
	ReadTool:  {ReadTool, Low, noRef, "", []string{"server", "tool", "arguments"}, []string{"server", "tool", "arguments"}},
	WriteTool: {WriteTool, High, noRef, "", []string{"server", "tool", "arguments"}, []string{"server", "tool", "arguments"}},
}

// OfServer reports whether the verb calls a tool of another server.
func (v Verb) OfServer() bool { return serverSpecs[v] != nil }

// MaxToolArguments limits the arguments of one call of another server's tool, in bytes.
const MaxToolArguments = 16 << 10

var toolExpr = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)

// ValidToolName reports whether another server's tool may have this name.
func ValidToolName(name string) bool { return toolExpr.MatchString(name) }

// NewToolCall returns the call of another server's tool. Empty arguments mean none. The error is a *Fault.
func NewToolCall(v Verb, server, tool string, arguments []byte) (Operation, error) {
	if !v.OfServer() {
		return Operation{}, Refuse(UnknownVerb, "verb", "%s calls no tool of another server.", Quote(string(v)))
	}
	if len(arguments) > 2*MaxToolArguments {
		return Operation{}, Refuse(TooLarge, "arguments", "The arguments are over %d bytes.", MaxToolArguments)
	}
	plain, err := canonicalObject(arguments)
	if err != nil {
		return Operation{}, err
	}
	o := Operation{Verb: v, Server: server, Tool: tool, Arguments: plain}
	return o, o.Validate()
}

// canonicalObject returns the canonical form of equal JSON objects: compact, keys sorted, numbers as written.
func canonicalObject(raw []byte) (string, error) {
	if _, err := objectMembers(raw); err != nil { // detects duplicate members, too
		return "", err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return "{}", nil
	}
	bad := Refuse(InvalidArgument, "arguments", "The arguments are no JSON object.")
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var members map[string]any
	if err := dec.Decode(&members); err != nil {
		return "", bad
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(members); err != nil {
		return "", bad
	}
	return string(bytes.TrimSpace(out.Bytes())), nil
}

func (o Operation) validServerTool() error {
	if !o.Verb.OfServer() {
		return nil
	}
	if !validLabel(o.Server) {
		return Refuse(InvalidArgument, "server", "%s is no name of a server.", Quote(o.Server))
	}
	if !ValidToolName(o.Tool) {
		return Refuse(InvalidArgument, "tool", "%s is no name of a tool.", Quote(o.Tool))
	}
	if len(o.Arguments) > MaxToolArguments {
		return Refuse(TooLarge, "arguments", "The arguments are over %d bytes.", MaxToolArguments)
	}
	if plain, err := canonicalObject([]byte(o.Arguments)); err != nil || plain != o.Arguments {
		return Refuse(InvalidArgument, "arguments", "The arguments are no JSON object in its one form.")
	}
	return nil
}
