package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestFrom(t *testing.T) {
	t.Parallel()
	if From(nil) != nil {
		t.Fatal("no error must stay none")
	}
	wrapped := fmt.Errorf("while asking: %w", New("timeout", "no answer from %s", "inference"))
	if f := From(wrapped); f.Code != "timeout" || f.Exit != ExitRuntime || f.Message != "no answer from inference" {
		t.Fatalf("a wrapped fault must be found: %+v", f)
	}
	if f := From(context.Canceled); f.Code != "failed" || f.Exit != ExitRuntime || !errors.Is(f, context.Canceled) {
		t.Fatalf("a foreign error must keep its cause: %+v", f)
	}
	if f := Usage("unknown option %s", "--x"); f.Exit != ExitUsage || f.Code != "usage" {
		t.Fatalf(`%+v; want f.Exit == ExitUsage && f.Code == "usage"`, f)
	}
}

// WithHint leaves its receiver alone, since faults are shared.
func TestWithHintCopies(t *testing.T) {
	t.Parallel()
	f := New("a", "b")
	if g := f.WithHint("run: %s", "mlp"); g.Hint != "run: mlp" || f.Hint != "" || g.Message != "b" {
		t.Fatalf(`%+v from %+v; want g.Hint == "run: mlp" && f.Hint == "" && g.Message == "b"`, g, f)
	}
}
