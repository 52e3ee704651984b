package catalog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mlp-platform/platform/libs/tracker"
)

// GET /health is public.
func TestScanFailureTellsNoAddress(t *testing.T) {
	t.Parallel()
	cause := errors.New("dial tcp 10.1.2.3:5000: connection refused")
	for want, err := range map[string]error{
		"the tracker cannot be reached; the log has the cause":        fmt.Errorf("%w: %w", tracker.ErrUnavailable, cause),
		"the tracker's aliases cannot be read; the log has the cause": cause,
	} {
		if got := describeScanFailure(err); got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}
