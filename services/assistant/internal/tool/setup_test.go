package tool_test

import (
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// shared is the cluster of all tests that only read.
var shared = sync.OnceValue(func() *samplecluster.Cluster { return samplecluster.New(time.Now) })

func TestMain(m *testing.M) {
	code := m.Run()
	shared().Close()
	os.Exit(code)
}

// setup gives tools on the shared cluster.
func setup(t *testing.T, hidden ...string) *tool.Tools {
	t.Helper()
	return toolsOn(t, shared(), hidden...)
}

// toolsOn gives tools on a cluster.
func toolsOn(t *testing.T, s *samplecluster.Cluster, hidden ...string) *tool.Tools {
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return s.Config(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	policy := guard.Policy{Protected: []string{"kube-system"}, Hidden: hidden}
	changes, err := change.New(change.Config{Policy: policy}, change.Deps{Cluster: c, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.New(tool.Config{}, tool.Deps{Cluster: c, Policy: policy, Planner: change.Planner{Service: changes}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// readerTurn is a turn of a caller who may only read.
func readerTurn(scope string) turn.Turn {
	return turn.Turn{Who: event.Who{Principal: "ann", Role: "readonly"}, Scope: scope}
}
