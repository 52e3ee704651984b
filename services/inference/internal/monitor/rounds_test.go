package monitor

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/mlp-platform/platform/services/inference/internal/drift"
)

// stopping is a subject that ends the context after so many places, as the limit of an evaluation does.
type stopping struct {
	subject
	after  int
	cancel context.CancelFunc
	seen   []string
}

func (s *stopping) compare(ctx context.Context, places []place, baselines map[place]*baseline, window int, mode drift.Mode, each func(status) error) error {
	return s.subject.compare(ctx, places, baselines, window, mode, func(st status) error {
		s.seen = append(s.seen, st.model)
		if s.after--; s.after == 0 {
			s.cancel()
		}
		return each(st)
	})
}

// An evaluation that takes longer than it may ends between two places, and the next one begins there.
func TestRoundsBeginWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	for _, inputs := range []bool{false, true} {
		m, _ := setup(t, 5)
		if inputs {
			m = NewInputs(m.pool, m.catalog, m.metrics, m.log, Every)
		}
		var seen []string
		for range 3 {
			m.memo = memo{}
			ctx, cancel := context.WithCancel(context.Background())
			s := &stopping{subject: m.subject, after: 2, cancel: cancel}
			m.subject = s
			if err := m.Evaluate(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("inputs %t: got %v; want context canceled", inputs, err)
			}
			cancel()
			seen, m.subject = append(seen, s.seen...), s.subject
		}
		if want := []string{"M0001", "M0002", "M0003", "M0004", "M0005", "M0001"}; !slices.Equal(seen, want) {
			t.Errorf("inputs %t: evaluated %v; want %v", inputs, seen, want)
		}
	}
}
