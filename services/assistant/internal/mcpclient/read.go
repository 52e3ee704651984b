package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// tools adds the calls of other servers' tools to the reads of the cluster.
type tools struct {
	turn.Tools
	client *Client
}

// Tools returns the tools for a turn's toolbox.
func (c *Client) Tools(cluster turn.Tools) turn.Tools { return tools{cluster, c} }

// Line implements turn.Tools.
func (t tools) Line(by turn.Turn, op operation.Operation) string {
	if op.Verb.OfServer() {
		return line(op)
	}
	return t.Tools.Line(by, op)
}

// line describes a call in one line for people.
func line(op operation.Operation) string {
	return fmt.Sprintf("tool %s of the server %s with %s", op.Tool, op.Server, redact.Typed(escapeHidden(op.Arguments)))
}

// escapeHidden escapes invisible characters of JSON, and backquotes, so that a person approves exactly what is shown
// and no markup in it takes effect.
func escapeHidden(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '`' || r != '\n' && r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) && r != ' ' {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Run implements turn.Tools.
func (t tools) Run(ctx context.Context, by turn.Turn, op operation.Operation) (turn.Output, error) {
	if !op.Verb.OfServer() {
		return t.Tools.Run(ctx, by, op)
	}
	began := t.client.Now()
	out, err := t.client.read(ctx, by, op)
	t.client.record(ctx, by, op, t.client.Now().Sub(began), err)
	return out, err
}

func (c *Client) read(ctx context.Context, by turn.Turn, op operation.Operation) (turn.Output, error) {
	if guard.Permit(by.Who.Role, guard.Read) != guard.Allow {
		return turn.Output{}, &action.Refused{Code: "role_too_low", Reason: "The role may not read."}
	}
	if op.Verb != operation.ReadTool {
		return turn.Output{}, operation.Refuse(operation.ForbiddenVerb, "verb", "The tool %s changes something; it has to be proposed.", operation.Quote(op.Tool))
	}
	s, err := c.server(op.Server)
	if err != nil {
		return turn.Output{}, err
	}
	session, _, err := s.check(op)
	if err != nil {
		return turn.Output{}, err
	}
	got, err := s.call(ctx, session, op)
	if err != nil {
		var why *operation.Fault
		if errors.As(err, &why) {
			err = why
		}
		return turn.Output{}, err
	}
	text := got.text
	if got.failed {
		text = "The tool reports a failure: " + text
	}
	return turn.Output{Text: text, Truncated: got.truncated, Untrusted: []string{got.text}}, nil
}

// record writes the fact that a tool was called, without its arguments and answer. The answer is returned even if that
// fails: the session shows the call, too.
func (c *Client) record(ctx context.Context, by turn.Turn, op operation.Operation, took time.Duration, failed error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	outcome := event.OK
	var denied *action.Refused
	if errors.As(failed, &denied) {
		outcome = event.Denied
	} else if failed != nil {
		outcome = event.Failed
	}
	name := op.Server + "/" + op.Tool
	err := c.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Facts(by.Who, c.Now(), "tool_called", "tool.called", name, "tool:"+name, outcome,
			event.ToolCall{Tool: op.Tool, Server: op.Server, Session: by.Session, Role: string(by.Who.Role), Outcome: outcome, DurationMS: took.Milliseconds()},
			map[string]any{"tool": op.Tool, "server": op.Server, "session": by.Session, "duration_ms": took.Milliseconds()})...)
	})
	if err != nil {
		c.Log.WarnContext(ctx, "a call of another server's tool could not be recorded", slog.Any("err", err))
	}
}
