package coord_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mlp-platform/platform/libs/coord"
)

// absent is a coordinator that does not answer for some calls and then grants no
// lease.
type absent struct {
	coord.Coordinator
	faults, calls int
	stop          context.CancelFunc
}

func (a *absent) TryLease(context.Context, string, time.Duration) (*coord.Lease, bool, error) {
	a.calls++
	if a.calls <= a.faults {
		return nil, false, fmt.Errorf("%w: call %d", coord.ErrUnavailable, a.calls)
	}
	if a.calls > a.faults+2 {
		a.stop()
	}
	return nil, false, nil
}

func TestLeadTellsOfACoordinatorThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out bytes.Buffer
		c := &absent{faults: 5, stop: cancel}
		if err := coord.Lead(ctx, c, "sweeper", time.Minute, slog.New(slog.NewTextHandler(&out, nil)), nil); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "level=WARN") ||
			!strings.Contains(text, "lease=sweeper err=") || !strings.Contains(text, "answers again") {
			t.Errorf("five failures and two answers are told as\n%s; want strings.Count(text, \"\\n\") == 2 && strings.Contains(text, \"level=WARN\") && strings.Contains(text, \"lease=sweeper err=\") && strings.Contains(text, \"answers again\")", text)
		}
	})
}
