package serving

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
)

func newCore(t *testing.T, admit int) *Core {
	t.Helper()
	c := catalog.New(catalog.Config{})
	t.Cleanup(c.Close)
	return &Core{Config: Config{Catalog: c, Metrics: metrics.New(prometheus.NewRegistry()), Admit: admit}}
}

// Names of no loaded model, each a new one, have one limit together.
func TestUnknownModelsShareALimit(t *testing.T) {
	t.Parallel()
	s := newCore(t, 2)
	var leave []func()
	for _, name := range []string{"A", "B"} {
		l, err := s.Admit(&Call{Name: name}, 1)
		if err != nil {
			t.Fatalf("%s: %v, want it admitted", name, err)
		}
		leave = append(leave, l)
	}
	if _, err := s.Admit(&Call{Name: "C"}, 1); !fault.Overloaded.Has(err) {
		t.Errorf("the third of two: %v, want overloaded", err)
	}
	leave[0]()
	if _, err := s.Admit(&Call{Name: "C"}, 1); err != nil {
		t.Errorf("after one has left: %v, want it admitted", err)
	}
}

// A request that counts as more than may be inside enters an empty service, and leaves it empty.
func TestHeavyRequestEntersAlone(t *testing.T) {
	t.Parallel()
	s := newCore(t, 4)
	leave, err := s.Admit(&Call{Name: "A"}, 9)
	if err != nil {
		t.Fatalf("alone: %v, want it admitted", err)
	}
	if _, err := s.Admit(&Call{Name: "A"}, 1); !fault.Overloaded.Has(err) {
		t.Errorf("beside it: %v, want overloaded", err)
	}
	leave()
	if leave, err = s.Admit(&Call{Name: "A"}, 4); err != nil {
		t.Fatalf("after it: %v, want four admitted", err)
	}
	leave()
}

// A request that turns out to be heavier counts as more from then on, up to all there is, and gives all of it back.
func TestRequestsGrow(t *testing.T) {
	t.Parallel()
	s := newCore(t, 4)
	call := &Call{Name: "A"}
	leave, err := s.Admit(call, 2)
	if err != nil {
		t.Fatalf("two of four: %v, want them admitted", err)
	}
	more, err := s.AdmitMore(call, 2, 9)
	if err != nil {
		t.Fatalf("from two to nine: %v, want it admitted alone", err)
	}
	if _, err := s.Admit(call, 1); !fault.Overloaded.Has(err) {
		t.Errorf("beside it: %v, want overloaded", err)
	}
	more()
	if _, err := s.AdmitMore(&Call{Name: "B"}, 0, 3); !fault.Overloaded.Has(err) {
		t.Errorf("three beside two: %v, want overloaded", err)
	}
	leave()
	if leave, err = s.Admit(call, 4); err != nil {
		t.Fatalf("after it: %v, want four admitted", err)
	}
	leave()
}
