package seeded_test

import (
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/seeded"
	"github.com/mlp-platform/platform/services/assistant/internal/seeded/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	c := seeded.New(time.Now)
	t.Cleanup(c.Close)
	conformance.Run(t, c.Config())
}
