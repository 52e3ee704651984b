package answer_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/planetest"
)

func TestMain(m *testing.M) { planetest.Main(m) }

// A cursor of another list, whose positions look alike, is refused.
func TestCursorOfAnotherList(t *testing.T) {
	t.Parallel()
	p := planetest.Start(t)
	page := p.Want(200, "GET", "/promotion-policies?limit=1", planetest.Reader, nil).Object(t)
	cursor, ok := page["next_cursor"].(string)
	if !ok {
		t.Fatalf("one page: %v", page)
	}
	p.Want(200, "GET", "/promotion-policies?limit=1&cursor="+cursor, planetest.Reader, nil)
	for _, list := range []string{"/auto-retrain", "/budgets", "/model-cards", "/llm/endpoints", "/audit/events", "/outbox"} {
		p.Refused(422, "validation_error", "GET", list+"?cursor="+cursor, planetest.Reader, nil)
	}
}
