package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
)

const (
	maxText       = 64 << 10 // bytes of a result that are examined
	maxCharacters = 6000     // of a result that are shown, as for a log
)

// answer is a tool's result for people and models: redacted and truncated.
type answer struct {
	text      string
	truncated bool
	failed    bool // reported by the tool
}

// check finds the tool of a call and refuses arguments that may not be sent. The error is a *operation.Fault.
func (s *server) check(op operation.Operation) (*mcp.ClientSession, offered, error) {
	session, t, err := s.find(op.Tool)
	if err != nil {
		return nil, t, err
	}
	if t.Writes != op.Verb.Writes() {
		return nil, t, operation.Refuse(operation.ForbiddenVerb, "tool", "The tool %s of the server %s has to be proposed, as it changes something; or it only reads and cannot be.", t.Tool.Tool, s.Name)
	}
	var arguments map[string]any
	if err := json.Unmarshal([]byte(op.Arguments), &arguments); err != nil {
		return nil, t, operation.Refuse(operation.InvalidArgument, "arguments", "The arguments are no JSON object.")
	}
	if path := secretIn("", arguments, 0); path != "" {
		return nil, t, operation.Refuse(operation.InvalidArgument, "arguments", "%s holds what looks like a secret; it is not sent to another server.", path)
	}
	if err := t.arguments.Validate(arguments); err != nil {
		return nil, t, operation.Refuse(operation.InvalidArgument, "arguments", "The arguments of %s do not fit its schema: %s.", t.Name, cutRunes(strings.TrimSuffix(cleanLine(innermost(err).Error(), maxAbout), "."), maxAbout))
	}
	return session, t, nil
}

// innermost returns the last error of a chain in which each names one step of the validation.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// secretIn returns the path of a value that may not be sent, or empty: a known value of a Secret, or one that is secret
// by its form or its name.
func secretIn(name string, v any, depth int) (path string) {
	if depth > maxDepth {
		return "An argument that is nested too deeply"
	}
	switch v := v.(type) {
	case string:
		if isSecret(name, v) {
			return "The argument " + operation.Quote(name)
		}
	case []any:
		for _, one := range v {
			if path = secretIn(name, one, depth+1); path != "" {
				return path
			}
		}
	case map[string]any:
		for member, one := range v {
			if redact.Text(member) != member {
				return "The name of an argument"
			}
			if path = secretIn(member, one, depth+1); path != "" {
				return path
			}
		}
	}
	return ""
}

// isSecret reports whether the value of an argument may not be sent.
func isSecret(name, v string) bool {
	if redact.Text(v) != v {
		return true
	}
	if pageOrThing.MatchString(name) && !credential.MatchString(name) {
		name = "" // judged by its form alone
	}
	return redact.Value(name, v) != v
}

// Arguments named key and token are more often those of issues and pages than credentials.
var (
	pageOrThing = regexp.MustCompile(`(?i)(?:key|token)s?$`)
	credential  = regexp.MustCompile(`(?i)api|access|auth|private|secret|bearer|pass`)
)

// errUnanswered means that a call was sent and got no response: it is unknown whether it took effect.
var errUnanswered = errors.New("no answer came")

// call makes a call that was checked. An error that wraps errUnanswered leaves open whether the server acted; any other
// error is a *operation.Fault, or that of ctx.
func (s *server) call(ctx context.Context, session *mcp.ClientSession, op operation.Operation) (answer, error) {
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
	case <-limited.Done():
		if ctx.Err() != nil {
			return answer{}, context.Cause(ctx)
		}
		return answer{}, operation.Refuse(operation.Unavailable, "server", "The server %s has %d calls to answer already.", s.Name, maxCalls)
	}
	got, err := within(limited, func() (*mcp.CallToolResult, error) {
		defer func() { <-s.slots }()
		return session.CallTool(limited, &mcp.CallToolParams{Name: op.Tool, Arguments: json.RawMessage(op.Arguments)})
	})
	if err != nil {
		return answer{}, s.failed(ctx, limited, op, err)
	}
	return textOf(got), nil
}

// failed turns the error of a call into a sentence.
func (s *server) failed(ctx, limited context.Context, op operation.Operation, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errUnanswered, context.Cause(ctx))
	}
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && limited.Err() == nil && !ofLibrary(refused.Code) {
		return operation.Refuse(operation.Rejected, "", "The server %s refuses the call of %s: %s", s.Name, op.Tool, engine.QuoteCode(redact.Text(cleanText(refused.Message))))
	}
	s.log.WarnContext(ctx, "a call of another server's tool failed", slog.String("server", s.Name), slog.String("tool", op.Tool), slog.String("err", cleanLine(redact.Text(err.Error()), maxAbout)))
	select {
	case s.look <- struct{}{}:
	default: // a check is already requested
	}
	why := operation.Refuse(operation.Unavailable, "", "The server %s ended the call of %s without an answer that can be read.", s.Name, op.Tool)
	if limited.Err() != nil {
		why = operation.Refuse(operation.TimedOut, "", "The server %s did not answer the call of %s within %s.", s.Name, op.Tool, s.Timeout)
	}
	return fmt.Errorf("%w: %w", errUnanswered, why)
}

// ofLibrary reports whether a code is one by which the library itself reports a failed connection, so that the call may
// have arrived.
func ofLibrary(code int64) bool {
	switch code {
	case -32001, -32003, -32004, -32005: // unknown, client closing, server closing, rejected by the transport
		return true
	}
	return false
}

// textOf returns the text of a result; the rest is ignored.
func textOf(r *mcp.CallToolResult) answer {
	var b strings.Builder
	others, cut := 0, false
	for _, c := range r.Content {
		t, ok := c.(*mcp.TextContent)
		if !ok {
			others++
			continue
		}
		room := maxText - b.Len()
		if room <= 0 {
			cut = true
			break
		}
		piece := t.Text
		if len(piece) > room {
			piece, cut = strings.ToValidUTF8(piece[:room], ""), true
		}
		b.WriteString(piece)
		b.WriteByte('\n')
	}
	text, clipped := clip.Head(redact.Text(cleanText(strings.TrimSpace(b.String()))), maxCharacters, "request less")
	if strings.TrimSpace(text) == "" {
		text = "The answer has no text."
	}
	if cut && !clipped {
		text += "\n[the rest of the answer is left out]"
	}
	if others > 0 {
		text += fmt.Sprintf("\n[%d parts of the answer are no text and are left out]", others)
	}
	return answer{text: text, truncated: cut || clipped || others > 0, failed: r.IsError}
}
