package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// maxLine limits the line of an action, in characters; its diff contains all arguments.
const maxLine = 300

// Changer makes the writes to a cluster.
type Changer interface {
	action.Cluster
	action.Probe
	Judge(role guard.Role, ops []operation.Expanded) guard.Verdict
}

// changer adds the writing tools of other servers.
type changer struct {
	Changer
	client *Client
}

// Changes returns the Changer for actions.
func (c *Client) Changes(cluster Changer) Changer { return changer{cluster, c} }

// planner does the same for the proposals of a turn.
type planner struct {
	turn.Planner
	client *Client
}

// Planner returns the planner for the proposals of a turn.
func (c *Client) Planner(cluster turn.Planner) turn.Planner { return planner{cluster, c} }

// Plan implements turn.Planner.
func (p planner) Plan(ctx context.Context, t turn.Turn, ops []operation.Operation) (action.Plan, error) {
	if !anyOfServer(ops) {
		return p.Planner.Plan(ctx, t, ops)
	}
	return p.client.plan(t.Who.Role, ops)
}

// Plan implements action.Cluster.
func (c changer) Plan(ctx context.Context, role guard.Role, ops []operation.Operation) (action.Plan, error) {
	if !anyOfServer(ops) {
		return c.Changer.Plan(ctx, role, ops)
	}
	return c.client.plan(role, ops)
}

func anyOfServer(ops []operation.Operation) bool {
	return slices.ContainsFunc(ops, func(o operation.Operation) bool { return o.Verb.OfServer() })
}

func isOfServer(ops []operation.Expanded) bool {
	return slices.ContainsFunc(ops, func(e operation.Expanded) bool { return e.Verb.OfServer() })
}

// plan plans an action of one call. It makes no request to the server: there is no dry run. The digest covers the
// arguments and the tool as described by its server.
func (c *Client) plan(role guard.Role, ops []operation.Operation) (action.Plan, error) {
	if len(ops) != 1 || ops[0].Verb != operation.WriteTool {
		return action.Plan{}, operation.Refuse(operation.InvalidArgument, "", "One call of another server's tool at a time, and nothing beside it.")
	}
	op := ops[0]
	s, err := c.server(op.Server)
	if err != nil {
		return action.Plan{}, err
	}
	_, t, err := s.check(op)
	if err != nil {
		return action.Plan{}, err
	}
	expanded := []operation.Expanded{{
		Operation: op, NoDryRun: true,
		Targets: []operation.Target{{Ref: operation.Ref{Kind: "Tool", Group: s.Name, Name: t.Tool.Tool}, UID: s.Name, Fingerprint: t.digest}},
	}}
	return action.Plan{
		Operations: expanded, Digest: operation.Digest("mcp:"+s.address(), expanded), Command: "call " + cutRunes(line(op), maxLine),
		Diff: argumentsDiff(op.Arguments), Verdict: judge(role, s.Name),
	}, nil
}

// address distinguishes a server from another of the same name in a later configuration.
func (s *Server) address() string {
	if s.URL != "" {
		return s.URL
	}
	return strings.Join(append([]string{s.Command}, s.Args...), "\x00")
}

// judge returns the verdict on a write by another server's tool: its effect is unknown, so it has the highest risk and
// always requires a decision.
func judge(role guard.Role, server string) guard.Verdict {
	v := guard.Verdict{Row: guard.HighWrite, Risk: operation.High, Confirms: []guard.Confirm{guard.NoDryRun}, Answer: guard.AlwaysAsk}
	v.Notes = []string{fmt.Sprintf("The server %s is not the cluster: the change is neither rehearsed nor read back, and the assistant cannot undo it.", server)}
	if guard.Permit(role, guard.HighWrite) == guard.Refuse {
		v.Answer, v.Code = guard.Refuse, "role_too_low"
		v.Reason = "The role " + string(role) + " may not do this: a change by another server's tool is a write of high risk."
	}
	return v
}

// argumentsDiff shows all arguments, as added lines.
func argumentsDiff(arguments string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(arguments), "", "  "); err != nil {
		return ""
	}
	lines := strings.Split(redact.Text(escapeHidden(b.String())), "\n")
	return "+ " + strings.Join(lines, "\n+ ")
}

// Judge decides without a call what a role may do.
func (c changer) Judge(role guard.Role, ops []operation.Expanded) guard.Verdict {
	if !isOfServer(ops) {
		return c.Changer.Judge(role, ops)
	}
	return judge(role, ops[0].Server)
}

// Execute implements action.Cluster. The call is made at most once: without a response its outcome stays unknown.
func (c changer) Execute(ctx context.Context, a action.Action) (string, error) {
	if !isOfServer(a.Observed) {
		return c.Changer.Execute(ctx, a)
	}
	op := a.Observed[0].Operation
	s, err := c.client.server(op.Server)
	if err != nil {
		return "", err
	}
	session, _, err := s.check(op)
	if err != nil {
		return "", operation.Refuse(operation.Unavailable, "", "%s Nothing was sent.", err)
	}
	got, err := s.call(ctx, session, op)
	var why *operation.Fault
	switch {
	case errors.Is(err, errUnanswered):
		return "", fmt.Errorf("%w: %w", action.ErrNoAnswer, err)
	case errors.As(err, &why):
		return "", why
	case err != nil:
		return "", fmt.Errorf("%w: %w", action.ErrNoAnswer, err)
	case got.failed:
		return "", operation.Refuse(operation.Rejected, "", "The tool reports a failure: %s", engine.QuoteLine(got.text))
	}
	return fmt.Sprintf("The server %s answers: %s", s.Name, engine.QuoteLine(got.text)), nil
}

// Verify implements action.Cluster.
func (c changer) Verify(ctx context.Context, a action.Action) (string, error) {
	if !isOfServer(a.Observed) {
		return c.Changer.Verify(ctx, a)
	}
	return "Not read back: what the server says is all that is known.", nil
}

// Probe implements action.Probe: whether a call took effect cannot be determined.
func (c changer) Probe(ctx context.Context, a action.Action) (action.Effect, error) {
	if !isOfServer(a.Observed) {
		return c.Changer.Probe(ctx, a)
	}
	return action.Unclear, nil
}
