package model_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func lists(n int) scriptedmodel.Step {
	var step scriptedmodel.Step
	for i := range n {
		step.Calls = append(step.Calls, scriptedmodel.Call{Name: "list", Arguments: fmt.Sprintf(`{"kind":"pods","namespace":"n%d"}`, i)})
	}
	return step
}

// TestCallsRunInParallel: the first call ends only when the last of four has started, no more than four run at once,
// and results are in the order of the calls.
func TestCallsRunInParallel(t *testing.T) {
	t.Parallel()
	b := setup(t, model.Config{}, scripttest.Always(lists(6), scripttest.Say("It is the limit.")))
	var running, most atomic.Int32
	four := make(chan struct{})
	var once sync.Once
	b.cluster.gate = func(ctx context.Context, op operation.Operation) error {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if n == 4 {
			once.Do(func() { close(four) })
		}
		select {
		case <-four:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return errors.New("asked for " + op.Namespace)
	}
	b.ask(newTurn("why does api crash?"))
	if most.Load() != 4 {
		t.Errorf("%d calls ran at once, want 4", most.Load())
	}
	var got []string
	for _, m := range b.last().Messages {
		if _, rest, ok := strings.Cut(m.Text(), "asked for "); ok && m.Role == "tool" {
			got = append(got, rest[:2])
		}
	}
	if want := "n0 n1 n2 n3 n4 n5"; strings.Join(got, " ") != want {
		t.Errorf("results of %q, want %q", got, want)
	}
}

// Queued calls do not start once the turn is over.
func TestParallelCallsEndWithTheirTurn(t *testing.T) {
	t.Parallel()
	b := setup(t, model.Config{}, scripttest.Always(lists(8), scripttest.Say("Late.")))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("over")
	var began atomic.Int32
	b.cluster.gate = func(ctx context.Context, _ operation.Operation) error {
		if began.Add(1) == 4 {
			cancel(why)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if _, err := b.Investigate(ctx, newTurn("why does api crash?"), b.cluster, b.sink); !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
	if began.Load() != 4 {
		t.Errorf("%d calls began, want 4", began.Load())
	}
}

// A panic of a tool is raised in the turn's goroutine, which recovers from it.
func TestAPanicOfAParallelCall(t *testing.T) {
	t.Parallel()
	b := setup(t, model.Config{Time: 30 * time.Second}, scripttest.Always(lists(3)))
	b.cluster.gate = func(context.Context, operation.Operation) error { panic("boom") }
	defer func() {
		if p := recover(); p != "boom" {
			t.Errorf("recovered %v, want boom", p)
		}
	}()
	_, err := b.Investigate(t.Context(), newTurn("why does api crash?"), b.cluster, b.sink)
	t.Errorf("no panic, error %v; want the tool's", err)
}

func TestToolsWithoutASourceAreNotOffered(t *testing.T) {
	t.Parallel()
	look := scripttest.Ask("query_loki", `{"logql":"{app=\"api\"}"}`)
	look.Expect.Tools, look.Expect.NoTools = []string{"query_prometheus", "logs"}, []string{"query_loki"}
	end := scripttest.Say("So be it.")
	end.Expect.Has = []string{"there is no tool"}
	b := setup(t, model.Config{Absent: []operation.Verb{operation.QueryLoki}}, scripttest.Always(look, end))
	if _, text := b.ask(newTurn("why does api crash?")); text != "So be it." || len(b.cluster.calls) != 0 {
		t.Errorf("answer %q, ran %v; want nothing run", text, b.cluster.calls)
	}
}
