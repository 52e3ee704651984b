package turn

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
)

// direct is a Toolbox outside of a running turn: its calls are not shown.
type direct struct {
	tools Tools
	turn  Turn
}

// ReadWith returns a toolbox for the caller of t, for protocols in which one request is one call. Its errors are those of
// the tools.
func ReadWith(tools Tools, t Turn) Toolbox { return direct{tools, t} }

// Call is part of Toolbox.
func (d direct) Call(ctx context.Context, op operation.Operation) (Output, error) {
	if err := op.Validate(); err != nil {
		return Output{}, err
	}
	if op.Verb.Writes() && !op.DryRun {
		return Output{}, operation.Refuse(operation.ForbiddenVerb, "verb", "%s changes the cluster; it has to be proposed.", op.Verb)
	}
	return d.tools.Run(ctx, d.turn, op)
}

// Snapshot is part of Toolbox.
func (d direct) Snapshot(ctx context.Context, namespace string) (*engine.Snapshot, error) {
	return d.tools.Snapshot(ctx, d.turn, namespace, func(operation.Operation) func(Output, error) { return func(Output, error) {} })
}

// Runbooks is part of Toolbox.
func (d direct) Runbooks(of ...runbook.Subject) []runbook.Quote { return d.tools.Runbooks(of...) }

// MetricLabels is part of Toolbox.
func (d direct) MetricLabels(ctx context.Context, metric string, pods, known []types.NamespacedName) (MetricLabels, error) {
	return d.tools.MetricLabels(ctx, d.turn, metric, pods, known)
}
