package outbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
)

// ListUnconsumed returns those of the ids that the consumer has no record of having handled. A
// consumer whose records must last sets KeepInbox.
func ListUnconsumed(ctx context.Context, db Querier, consumer string, ids []uuid.UUID) ([]uuid.UUID, error) {
	out, err := store.New(db).ListUnconsumed(ctx, store.ListUnconsumedParams{Ids: ids, Consumer: consumer})
	if err != nil {
		return nil, fmt.Errorf("outbox: inbox of %s: %w", consumer, err)
	}
	return out, nil
}
