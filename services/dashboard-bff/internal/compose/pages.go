package compose

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pageTimeout ends a list of which one page does not come, however long the whole may take.
const pageTimeout = 10 * time.Second

// maxPages limits lists whose cursors never end; the timeout ends most earlier.
const maxPages = 500

// ReadPages reads a list to its end. next calls it for the page at a cursor, nil for the first; an empty or absent
// next cursor ends the list.
func ReadPages[T any](ctx context.Context, next func(ctx context.Context, cursor *string) ([]T, *string, error)) ([]T, error) {
	var all []T
	var cursor *string
	for range maxPages {
		items, after, err := readPage(ctx, cursor, next)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if after == nil || *after == "" {
			return all, nil
		}
		if cursor != nil && *after == *cursor {
			return nil, errors.New("the list's next page is the page itself")
		}
		cursor = after
	}
	return nil, fmt.Errorf("the list has more than %d pages", maxPages)
}

func readPage[T any](ctx context.Context, cursor *string, next func(context.Context, *string) ([]T, *string, error)) ([]T, *string, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return next(ctx, cursor)
}
