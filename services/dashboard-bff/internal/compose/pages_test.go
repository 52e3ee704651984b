package compose_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
)

func TestListIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	got, err := compose.ReadPages(t.Context(), func(_ context.Context, cursor *string) ([]int, *string, error) {
		at := 0
		if cursor != nil {
			at, _ = strconv.Atoi(*cursor)
		}
		next := strconv.Itoa(at + 1)
		if at == 2 {
			next = "" // as a header that is absent
		}
		return []int{at}, &next, nil
	})
	if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestListThatFailsOrDoesNotEndIsAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	same := "a"
	calls := 0
	for name, next := range map[string]func(context.Context, *string) ([]int, *string, error){
		"a page fails":            func(context.Context, *string) ([]int, *string, error) { return nil, nil, broken },
		"the next page is itself": func(context.Context, *string) ([]int, *string, error) { return []int{1}, &same, nil },
		"there is always one more": func(context.Context, *string) ([]int, *string, error) {
			calls++
			c := strconv.Itoa(calls)
			return nil, &c, nil
		},
	} {
		if _, err := compose.ReadPages(t.Context(), next); err == nil {
			t.Errorf("%s: no error, want one", name)
		}
	}
	if calls > 1000 {
		t.Errorf("%d pages were read of a list without an end", calls)
	}
}
