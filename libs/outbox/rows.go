package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
)

// State is the state of a row, see the package comment.
type State string

// States of a row.
const (
	Pending   State = "pending"
	Published State = "published"
	Poison    State = "poison"
)

// ErrNoRow means that the outbox has no row with this id.
var ErrNoRow = errors.New("no such event in the outbox")

// ErrTooMany means that a window holds more rows than one call republishes.
var ErrTooMany = errors.New("the window holds too many events")

// ErrNotPoison means that a row which is not poison was to be dropped.
var ErrNotPoison = errors.New("only a poison event can be dropped")

// Row is an event in the outbox.
type Row struct {
	ID            uuid.UUID       `json:"id"`
	Seq           int64           `json:"seq"`
	State         State           `json:"state"`
	Tenant        string          `json:"tenant"`
	Namespace     string          `json:"namespace"`
	Name          string          `json:"name"`
	SubjectID     *string         `json:"subject_id"`
	Payload       json.RawMessage `json:"payload"` // null when it has more than MaxShown bytes
	PayloadBytes  int64           `json:"payload_bytes"`
	Digest        string          `json:"digest"` // hex SHA-256 of the payload as stored, to identify a dropped event
	Actor         string          `json:"actor"`
	RequestID     *string         `json:"request_id"`
	CreatedAt     time.Time       `json:"created_at"`
	NextAttemptAt time.Time       `json:"next_attempt_at"`
	Refusals      int             `json:"refusals"`
	PublishedAt   *time.Time      `json:"published_at"`
	StreamSeq     *int64          `json:"stream_seq"`
	PoisonAt      *time.Time      `json:"poison_at"`
	LastError     *string         `json:"last_error"`
}

// MaxShown limits the payload that a Row holds, in bytes: a page of poison would
// otherwise be as large as all that the broker refused for its size.
const MaxShown = 16 << 10

// MaxRepublish limits the rows of one Republish.
const MaxRepublish = 100_000

// Querier is a pool, a connection or a transaction.
type Querier = store.DBTX

// List returns rows of a state ordered by id, those after the row with id after
// (zero: from the first), at most limit. Ids are UUIDv7, so that is the order of
// creation; published rows have no index on seq. Tenants limits the rows to
// theirs; nil means every tenant's.
func List(ctx context.Context, q Querier, state State, tenants []string, after uuid.UUID, limit int) ([]Row, error) {
	p := store.ListPendingParams{MaxShown: MaxShown, After: after, Tenants: tenants, MaxRows: int32(limit)}
	out := []Row{}
	var err error
	switch state {
	case Pending:
		var rows []store.ListPendingRow
		rows, err = store.New(q).ListPending(ctx, p)
		for _, r := range rows {
			out = append(out, newRow(store.Row(r)))
		}
	case Published:
		var rows []store.ListPublishedRow
		rows, err = store.New(q).ListPublished(ctx, store.ListPublishedParams(p))
		for _, r := range rows {
			out = append(out, newRow(store.Row(r)))
		}
	case Poison:
		var rows []store.ListPoisonRow
		rows, err = store.New(q).ListPoison(ctx, store.ListPoisonParams(p))
		for _, r := range rows {
			out = append(out, newRow(store.Row(r)))
		}
	default:
		return nil, fmt.Errorf("outbox: unknown state %q; it is pending, published or poison", state)
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: read rows: %w", err)
	}
	return out, nil
}

// newRow converts a row as the database has it.
func newRow(r store.Row) Row {
	state := Pending
	switch {
	case r.PoisonAt != nil:
		state = Poison
	case r.PublishedAt != nil:
		state = Published
	}
	return Row{
		ID: r.ID, Seq: r.Seq, State: state, Tenant: r.Tenant, Namespace: r.Namespace, Name: r.Name, SubjectID: r.SubjectID,
		Payload: r.Payload, PayloadBytes: r.PayloadBytes, Digest: r.Digest, Actor: r.Actor, RequestID: r.RequestID,
		CreatedAt: r.CreatedAt, NextAttemptAt: r.NextAttemptAt, Refusals: int(r.Refusals), PublishedAt: r.PublishedAt,
		StreamSeq: r.StreamSeq, PoisonAt: r.PoisonAt, LastError: r.LastError,
	}
}

// convertRow is newRow for a query of one row, where none is ErrNoRow.
func convertRow(r store.Row, err error) (Row, error) {
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Row{}, ErrNoRow
	case err != nil:
		return Row{}, fmt.Errorf("outbox: read rows: %w", err)
	}
	return newRow(r), nil
}

// Lock returns a row of one of the tenants (nil: of any) and locks it until the
// transaction ends.
func Lock(ctx context.Context, tx pgx.Tx, tenants []string, id uuid.UUID) (Row, error) {
	return convertRow(store.New(tx).LockRow(ctx, store.LockRowParams{MaxShown: MaxShown, ID: id, Tenants: tenants}))
}

// Replay makes a row pending again, with all its attempts: a poison one after its
// cause was removed, or a published one. The broker drops a repeat within ten
// minutes, consumers drop the others.
func Replay(ctx context.Context, q Querier, id uuid.UUID) (Row, error) {
	r, err := store.New(q).ReplayRow(ctx, store.ReplayRowParams{ID: id, MaxShown: MaxShown})
	return convertRow(store.Row(r), err)
}

// Drop deletes a poison row and returns it, so that the caller can record it;
// ErrNotPoison for others.
func Drop(ctx context.Context, q Querier, id uuid.UUID) (Row, error) {
	r, err := store.New(q).DropPoison(ctx, store.DropPoisonParams{ID: id, MaxShown: MaxShown})
	row, err := convertRow(store.Row(r), err)
	if !errors.Is(err, ErrNoRow) {
		return row, err
	}
	switch exists, err := store.New(q).RowExists(ctx, id); {
	case err != nil:
		return Row{}, fmt.Errorf("outbox: read rows: %w", err)
	case !exists:
		return Row{}, ErrNoRow
	}
	return Row{}, ErrNotPoison
}

// Republish makes the tenants' (nil: all) published rows that were created within
// [from, to) pending again and returns their number. With ErrTooMany there are more
// than MaxRepublish; the caller rolls back.
func Republish(ctx context.Context, tx pgx.Tx, tenants []string, from, to time.Time) (int64, error) {
	n, err := store.New(tx).Republish(ctx, store.RepublishParams{CreatedFrom: from, CreatedBefore: to, Tenants: tenants, MaxRows: MaxRepublish + 1})
	if err != nil {
		return 0, fmt.Errorf("outbox: republish: %w", err)
	}
	if n > MaxRepublish {
		return 0, ErrTooMany
	}
	return n, nil
}
