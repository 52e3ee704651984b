package event

import (
	"testing"

	"github.com/mlp-platform/platform/libs/outbox/outboxtest"
)

func TestDeclaredEventsAreEmitted(t *testing.T) {
	t.Parallel()
	outboxtest.RequireDeclaredEventsEmitted(t, "..", Declared)
}
