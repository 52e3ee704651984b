package wire_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// A cursor of another list with the same kind of key is refused.
func TestCursorOfAnotherList(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	page := p.Want(200, "GET", "/promotion-policies?limit=1", controlplanetest.Reader, nil).Object(t)
	cursor, ok := page["next_cursor"].(string)
	if !ok {
		t.Fatalf("one page: %v; want ok", page)
	}
	p.Want(200, "GET", "/promotion-policies?limit=1&cursor="+cursor, controlplanetest.Reader, nil)
	for _, list := range []string{"/auto-retrain", "/budgets", "/model-cards", "/llm/endpoints", "/audit/events", "/outbox"} {
		p.Refused(422, "validation_error", "GET", list+"?cursor="+cursor, controlplanetest.Reader, nil)
	}
}
