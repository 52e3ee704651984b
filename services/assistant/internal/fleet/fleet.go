// Package fleet directs what turns and actions do to the cluster that they are of. What is of a cluster that is not
// configured any more reaches none.
package fleet

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Member has the parts that read and change one cluster.
type Member struct {
	Tools   turn.Tools
	Planner turn.Planner
	Changes action.Target
	Engine  turn.Investigator
}

// Fleet is turn.Tools, turn.Planner and turn.Investigator of several clusters.
type Fleet struct {
	names   clustername.Names
	members []Member // in the order of names
}

// New returns a fleet. members are in the order of the names, and there is at least one.
func New(names clustername.Names, members []Member) *Fleet { return &Fleet{names, members} }

// member finds the cluster that a stored name means. Its error is a refusal whose text is a sentence.
func (f *Fleet) member(cluster string) (Member, error) {
	i, err := f.names.Index(cluster)
	if err != nil {
		return Member{}, err
	}
	return f.members[i], nil
}

// Target returns what changes a cluster.
func (f *Fleet) Target(cluster string) (action.Target, error) {
	m, err := f.member(cluster)
	return m.Changes, err
}

// Line is part of turn.Tools. It calls no cluster, and lines of all clusters look alike.
func (f *Fleet) Line(t turn.Turn, op operation.Operation) string {
	m, err := f.member(t.Cluster)
	if err != nil {
		m = f.members[0]
	}
	return m.Tools.Line(t, op)
}

// Run is part of turn.Tools.
func (f *Fleet) Run(ctx context.Context, t turn.Turn, op operation.Operation) (turn.Output, error) {
	m, err := f.member(t.Cluster)
	if err != nil {
		return turn.Output{}, err
	}
	return m.Tools.Run(ctx, t, op)
}

// Snapshot is part of turn.Tools.
func (f *Fleet) Snapshot(ctx context.Context, t turn.Turn, namespace string, show func(operation.Operation) func(turn.Output, error)) (*engine.Snapshot, error) {
	m, err := f.member(t.Cluster)
	if err != nil {
		return nil, err
	}
	return m.Tools.Snapshot(ctx, t, namespace, show)
}

// Runbooks is part of turn.Tools. The folder is the same for all clusters.
func (f *Fleet) Runbooks(of ...runbook.Subject) []runbook.Quote {
	return f.members[0].Tools.Runbooks(of...)
}

// MetricLabels is part of turn.Tools.
func (f *Fleet) MetricLabels(ctx context.Context, t turn.Turn, metric string, pods, known []types.NamespacedName) (turn.MetricLabels, error) {
	m, err := f.member(t.Cluster)
	if err != nil {
		return turn.MetricLabels{}, err
	}
	return m.Tools.MetricLabels(ctx, t, metric, pods, known)
}

// Plan is part of turn.Planner.
func (f *Fleet) Plan(ctx context.Context, t turn.Turn, ops []operation.Operation) (action.Plan, error) {
	m, err := f.member(t.Cluster)
	if err != nil {
		return action.Plan{}, err
	}
	return m.Planner.Plan(ctx, t, ops)
}

// Investigate is part of turn.Investigator.
func (f *Fleet) Investigate(ctx context.Context, t turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
	m, err := f.member(t.Cluster)
	if err != nil {
		return turn.Outcome{}, err
	}
	return m.Engine.Investigate(ctx, t, tools, sink)
}
