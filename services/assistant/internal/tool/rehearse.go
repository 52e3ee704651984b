package tool

import (
	"context"
	"fmt"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// diff shows what applying a manifest would change.
func (c *call) diff(ctx context.Context) (turn.Output, error) {
	apply := operation.Operation{Verb: operation.Apply, Namespace: c.op.Namespace, Manifest: c.op.Manifest, DryRun: true}
	return c.plan(ctx, apply)
}

// rehearse sends a write to the server as a dry run.
func (c *call) rehearse(ctx context.Context) (turn.Output, error) {
	if !c.op.DryRun {
		return turn.Output{}, operation.Refuse(operation.ForbiddenVerb, "verb", "%s changes the cluster; it has to be proposed.", c.op.Verb)
	}
	return c.plan(ctx, c.op)
}

func (c *call) plan(ctx context.Context, op operation.Operation) (turn.Output, error) {
	plan, err := c.Planner.Plan(ctx, c.by, []operation.Operation{op})
	if err != nil {
		return turn.Output{}, err
	}
	// A write that is always refused is not rehearsed either: the server's answer could reveal what is hidden.
	if v := plan.Verdict; v.Answer == guard.Refuse {
		return turn.Output{}, &action.Refused{Code: v.Code, Reason: v.Reason}
	}
	if plan.Diff == "" {
		return turn.Output{Text: "Nothing would change.\n"}, nil
	}
	return turn.Output{Text: fmt.Sprintf("This would change, and was only tried:\n%s", plan.Diff)}, nil
}
