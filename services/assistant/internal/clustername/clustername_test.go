package clustername_test

import (
	"errors"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func TestNames(t *testing.T) {
	t.Parallel()
	only, several := clustername.Only("kind"), clustername.Configured([]string{"a", "b"})
	for _, row := range []struct {
		names  clustername.Names
		asked  string
		stored string
		ok     bool
		index  int // -1: gone
		shown  string
	}{
		{only, "", "", true, 0, "kind"}, {only, "kind", "", true, 0, "kind"}, {only, "b", "b", false, -1, "b"},
		{several, "", "a", true, 0, "a"}, {several, "a", "a", true, 0, "a"}, {several, "b", "b", true, 1, "b"}, {several, "c", "c", false, -1, "c"},
		{clustername.Names{}, "", "", true, 0, ""}, {clustername.Names{}, "a", "a", false, -1, "a"},
	} {
		stored, ok := row.names.Choose(row.asked)
		if stored != row.stored || ok != row.ok {
			t.Errorf("Choose(%q) of %v: got %q, %v; want %q, %v", row.asked, row.names, stored, ok, row.stored, row.ok)
		}
		index, err := row.names.Index(row.asked)
		var gone *operation.Fault
		if isGone := errors.As(err, &gone); isGone != (row.index < 0) || !isGone && index != row.index {
			t.Errorf("Index(%q) of %v: got %d, %v; want %d", row.asked, row.names, index, err, row.index)
		}
		if got := row.names.Display(row.asked); got != row.shown {
			t.Errorf("Display(%q) of %v: got %q, want %q", row.asked, row.names, got, row.shown)
		}
	}
	if only.List() != nil || len(several.List()) != 2 {
		t.Errorf("got the lists %v and %v; want none and two", only.List(), several.List())
	}
}
