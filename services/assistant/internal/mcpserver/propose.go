package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/registry"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// proposeName is the name of the one tool that does not only read.
const proposeName = "propose_change"

// proposeArguments name a change either by its kubectl line or by operation and arguments.
type proposeArguments struct {
	Kubectl   string         `json:"kubectl,omitempty" jsonschema:"The change as a kubectl line, such as: kubectl scale deployment/api -n shop --replicas=3"`
	Operation string         `json:"operation,omitempty" jsonschema:"In place of kubectl: the operation, such as scale."`
	Arguments map[string]any `json:"arguments,omitempty" jsonschema:"Arguments of the operation, such as kind, name, namespace and replicas."`
	Reason    string         `json:"reason,omitempty" jsonschema:"Why, for the person who decides; at most 500 characters."`
	SessionID string         `json:"session_id,omitempty" jsonschema:"Session of the caller in which it waits; left out: a new one."`
}

// Proposal is a change that waits for a person.
type Proposal struct {
	ActionID      string    `json:"action_id"`
	SessionID     string    `json:"session_id"`
	Cluster       string    `json:"cluster,omitempty"`
	State         string    `json:"state" jsonschema:"pending: nothing has changed"`
	Command       string    `json:"command"`
	Risk          string    `json:"risk_level"`
	AlwaysConfirm bool      `json:"always_confirm"`
	Notes         []string  `json:"notes"`
	Diff          string    `json:"diff"`
	Digest        string    `json:"digest"`
	ExpiresAt     time.Time `json:"expires_at"`
	// Approve is where a person decides; this protocol has no tool for it.
	Approve string `json:"approve"`
}

const maxReason = 500 // characters

var proposeSchemas = struct{ arguments, proposal *jsonschema.Schema }{registry.SchemaFor[proposeArguments](), registry.SchemaFor[Proposal]()}

// proposeTool is the tool as it is offered for clusters that are configured by name, or for one that is not.
func proposeTool(clusters []string) *mcp.Tool {
	destructive, closed := true, false
	arguments, proposal := proposeSchemas.arguments, proposeSchemas.proposal
	if clusters == nil {
		proposal = registry.WithoutCluster(proposal)
	} else {
		arguments = arguments.CloneSchemas()
		of := &jsonschema.Schema{Type: "string", Description: "The cluster; left out: that of the session, or " + clusters[0] + "."}
		for _, name := range clusters {
			of.Enum = append(of.Enum, name)
		}
		arguments.Properties[registry.ClusterArgument] = of
	}
	return &mcp.Tool{
		Name: proposeName,
		Description: "Propose one change of the cluster: it is checked, rehearsed on the server and shown with its diff, and waits until a person approves it elsewhere. " +
			"Nothing changes by this call. Operations: " + strings.Join(writes(), ", ") + ".",
		InputSchema: arguments, OutputSchema: proposal,
		// Whatever the approved change does; the call itself only proposes.
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &destructive, OpenWorldHint: &closed},
	}
}

func writes() []string {
	var names []string
	for _, v := range operation.Verbs() {
		if v.Writes() {
			names = append(names, string(v))
		}
	}
	return names
}

// parse reads the change.
func (a proposeArguments) parse() (operation.Operation, error) {
	if (a.Kubectl == "") == (a.Operation == "") {
		return operation.Operation{}, operation.Refuse(operation.InvalidArgument, "kubectl", "Give either kubectl, or operation and arguments.")
	}
	var op operation.Operation
	var err error
	if a.Kubectl != "" {
		op, err = kubectl.Parse(a.Kubectl)
	} else {
		var raw []byte
		if raw, err = json.Marshal(a.Arguments); err == nil && a.Arguments == nil {
			raw = []byte("{}")
		}
		if err == nil {
			op, err = operation.Decode(operation.Verb(a.Operation), raw)
		}
	}
	if err != nil {
		return op, err
	}
	if !op.Verb.Writes() || op.DryRun {
		return op, operation.Refuse(operation.InvalidArgument, "operation", "%s changes nothing; call the tool of that name, or leave the dry run out: each proposal is rehearsed.", op.Verb)
	}
	return op, nil
}

// decodeArguments reads the arguments; unknown members are refused.
func decodeArguments(raw json.RawMessage) (a proposeArguments, err error) {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil && !errors.Is(err, io.EOF) {
		return a, operation.Refuse(operation.InvalidArgument, "", "The arguments of %s do not fit its schema: %s.", proposeName, strings.TrimPrefix(err.Error(), "json: "))
	}
	if len([]rune(a.Reason)) > maxReason {
		return a, operation.Refuse(operation.TooLarge, "reason", "The reason is over %d characters.", maxReason)
	}
	if a.SessionID != "" && !chat.ValidSessionID(a.SessionID) {
		return a, operation.Refuse(operation.InvalidArgument, "session_id", "session_id must be 1 to 128 letters, digits, dots, colons, dashes and underscores.")
	}
	return a, nil
}

// propose makes the change a pending action of a session, by a turn as chat would.
func (s *Server) propose(ctx context.Context, who event.Who, raw json.RawMessage) *mcp.CallToolResult {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	began := s.Now()
	a, text, err := s.proposeChange(ctx, who, raw)
	s.record(ctx, who, event.ToolCall{Tool: proposeName, Cluster: a.Cluster, DurationMS: s.Now().Sub(began).Milliseconds()}, err)
	if err != nil {
		return s.failed(ctx, err)
	}
	return s.answer(a.Cluster, text, proposalOf(a))
}

func (s *Server) proposeChange(ctx context.Context, who event.Who, raw json.RawMessage) (made action.Action, text string, err error) {
	cluster, raw, err := s.cutCluster(raw)
	if err != nil {
		return made, "", err
	}
	arguments, err := decodeArguments(raw)
	if err != nil {
		return made, "", err
	}
	op, err := arguments.parse()
	if err != nil {
		return made, "", err
	}
	session := arguments.SessionID
	if session == "" {
		session = uuid.Must(uuid.NewV7()).String()
	}
	type result struct {
		made    action.Action
		refused error
	}
	results := make(chan result, 1) // the turn outlives a caller that leaves
	reader, err := s.Turns.Begin(ctx, turn.Request{
		Session: session, Cluster: cluster, Who: who, Chat: chat.Request{Query: "Proposed over the Model Context Protocol: " + redact.Typed(kubectl.Render(op)), NoDecisions: true},
		Program: &turn.Program{
			Kind: turn.KindProposal, Engine: proposer{op, redact.Typed(arguments.Reason)},
			Proposed: func(a action.Action, err error) {
				select {
				case results <- result{a, err}:
				default: // one is reported
				}
			},
		},
	})
	if err != nil {
		return made, "", err
	}
	defer reader.Close()
	for {
		_, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return made, "", err
		}
	}
	select {
	case r := <-results:
		if r.refused != nil {
			return made, "", r.refused
		}
		return r.made, proposalText(r.made), nil
	default:
		return made, "", operation.Refuse(operation.Unavailable, "", "The change could not be proposed now; see the session %s for the reason.", session)
	}
}

// proposer is the engine of a turn in which a program proposes a change: there is nothing to find out.
type proposer struct {
	op     operation.Operation
	reason string
}

// Investigate is part of turn.Investigator. A program's choice is treated like a language model's: no person requested
// it in a message, so it always needs approval.
func (p proposer) Investigate(_ context.Context, t turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
	text := "A program proposes this change over the Model Context Protocol."
	if p.reason != "" {
		text += " Its reason: " + engine.QuoteLine(p.reason)
	}
	sink.Token(text)
	return turn.Outcome{Write: []operation.Operation{p.op}, Choice: &guard.Choice{Scope: t.Scope, Program: true}}, nil
}

func proposalOf(a action.Action) Proposal {
	return Proposal{
		ActionID: a.ID.String(), SessionID: a.Session, Cluster: a.Cluster, State: string(a.State), Command: a.Command, Risk: string(a.Risk), AlwaysConfirm: a.AlwaysConfirm,
		Notes: append([]string{}, a.Notes...), Diff: a.Diff, Digest: a.Digest, ExpiresAt: a.ExpiresAt.UTC(),
		Approve: fmt.Sprintf("A person approves or denies it in the chat of session %s with `approve %s` or `deny %s`, in the dashboard, or with POST /v1/sessions/%s/actions/%s.", a.Session, a.ID, a.ID, a.Session, a.ID),
	}
}

func proposalText(a action.Action) string {
	p := proposalOf(a)
	in := ""
	if p.Cluster != "" {
		in = " in cluster " + p.Cluster
	}
	text := fmt.Sprintf("Nothing has changed yet. The change%s waits for a person until %s:\n\n    %s\n\nRisk: %s.\n", in, p.ExpiresAt.Format(time.RFC3339), p.Command, p.Risk)
	for _, n := range p.Notes {
		text += "- " + n + "\n"
	}
	if p.Diff != "" {
		text += "\n" + p.Diff + "\n"
	}
	return text + "\n" + p.Approve + "\n"
}
