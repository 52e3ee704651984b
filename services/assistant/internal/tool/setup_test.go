package tool_test

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/seeded"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// setup gives tools on a seeded cluster of its own.
func setup(t *testing.T, hidden ...string) *tool.Tools {
	t.Helper()
	s := seeded.New(time.Now)
	t.Cleanup(s.Close)
	return on(t, s, hidden...)
}

// on gives tools on a cluster.
func on(t *testing.T, s *seeded.Cluster, hidden ...string) *tool.Tools {
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return s.Config(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	policy := guard.Policy{Protected: []string{"kube-system"}, Hidden: hidden}
	tools, err := tool.New(tool.Config{}, tool.Deps{
		Cluster: c, Policy: policy, Planner: change.Planner{Service: change.New(change.Config{Policy: policy}, c)}, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// reader is a turn of somebody who may only read.
func reader(scope string) turn.Turn {
	return turn.Turn{Who: event.Who{Principal: "ann", Role: "readonly"}, Scope: scope}
}
