package outbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ListUnconsumed gives those of the ids that the consumer has no record of having
// handled. A consumer whose records must last sets KeepInbox.
func ListUnconsumed(ctx context.Context, db Querier, consumer string, ids []uuid.UUID) ([]uuid.UUID, error) {
	rows, err := db.Query(ctx, `select t.id from unnest($2::uuid[]) as t (id)
		where not exists (select 1 from inbox i where i.consumer = $1 and i.event_id = t.id)`, consumer, ids)
	if err != nil {
		return nil, fmt.Errorf("outbox: inbox of %s: %w", consumer, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("outbox: inbox of %s: %w", consumer, err)
	}
	return out, nil
}
