package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// State is where a row stands, see the package comment.
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
	Digest        string          `json:"digest"` // hex SHA-256 of the payload as stored, to name what was dropped
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

// MaxShown bounds the payload that a Row holds, in bytes: a page of poison would
// otherwise be as large as all that the broker refused for its size.
const MaxShown = 16 << 10

// MaxRepublish bounds the rows of one Republish.
const MaxRepublish = 100_000

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

const stateOf = "case when poison_at is not null then 'poison' when published_at is not null then 'published' else 'pending' end"

var rowColumns = `id, seq, ` + stateOf + `, tenant, namespace, name, subject_id,
		case when octet_length(payload::text) <= ` + strconv.Itoa(MaxShown) + ` then payload end, octet_length(payload::text)::bigint,
		encode(sha256(convert_to(payload::text, 'UTF8')), 'hex'), actor, request_id, created_at,
		next_attempt_at, refusals, published_at, stream_seq, poison_at, last_error`

// List gives rows of a state by their ids, those after the row with id after
// (zero: from the first), at most limit. Ids are UUIDv7, so that is the order of
// their making; published rows have no index on seq. Tenants are whose rows to
// give; nil is everybody's.
func List(ctx context.Context, q Querier, state State, tenants []string, after uuid.UUID, limit int) ([]Row, error) {
	// Constant conditions, so that each state's partial index serves.
	condition, ok := map[State]string{
		Pending:   "published_at is null and poison_at is null",
		Published: "published_at is not null",
		Poison:    "poison_at is not null",
	}[state]
	if !ok {
		return nil, fmt.Errorf("outbox: unknown state %q; it is pending, published or poison", state)
	}
	return collect(q.Query(ctx, "select "+rowColumns+" from outbox where "+condition+
		" and id > $1 and ($2::text[] is null or tenant = any($2)) order by id limit $3", after, tenants, limit))
}

// Lock gives a row of one of the tenants (nil: of any), and keeps it as it is
// until the transaction ends.
func Lock(ctx context.Context, tx pgx.Tx, tenants []string, id uuid.UUID) (Row, error) {
	return one(tx.Query(ctx, "select "+rowColumns+" from outbox where id = $1 and ($2::text[] is null or tenant = any($2)) for update", id, tenants))
}

func collect(rows pgx.Rows, err error) ([]Row, error) {
	if err == nil {
		var got []Row
		if got, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Row]); err == nil {
			return got, nil
		}
	}
	return nil, fmt.Errorf("outbox: read rows: %w", err)
}

// one reads the only row, or ErrNoRow.
func one(rows pgx.Rows, err error) (Row, error) {
	got, err := collect(rows, err)
	if err != nil {
		return Row{}, err
	}
	if len(got) == 0 {
		return Row{}, ErrNoRow
	}
	return got[0], nil
}

// Replay makes a row pending again, with all its attempts: a poison one after its
// cause was removed, or a published one. The broker drops a repeat within ten
// minutes, consumers drop the others.
func Replay(ctx context.Context, q Querier, id uuid.UUID) (Row, error) {
	return one(q.Query(ctx, `update outbox set published_at = null, stream_seq = null, poison_at = null, refusals = 0,
		next_attempt_at = now() where id = $1 returning `+rowColumns, id))
}

// Drop deletes a poison row and gives it back, so that the caller can record
// what was dropped; ErrNotPoison for others.
func Drop(ctx context.Context, q Querier, id uuid.UUID) (Row, error) {
	r, err := one(q.Query(ctx, "delete from outbox where id = $1 and poison_at is not null returning "+rowColumns, id))
	if !errors.Is(err, ErrNoRow) {
		return r, err
	}
	if _, err := one(q.Query(ctx, "select "+rowColumns+" from outbox where id = $1", id)); err != nil {
		return Row{}, err
	}
	return Row{}, ErrNotPoison
}

// Republish makes the tenants' (nil: all) published rows that were created within
// [from, to) pending again and gives their number. With ErrTooMany there are more
// than MaxRepublish; the caller rolls back.
func Republish(ctx context.Context, tx pgx.Tx, tenants []string, from, to time.Time) (int64, error) {
	tag, err := tx.Exec(ctx, `update outbox set published_at = null, stream_seq = null, next_attempt_at = now()
		where id in (select id from outbox where published_at is not null and created_at >= $1 and created_at < $2
			and ($3::text[] is null or tenant = any($3)) limit $4)`, from, to, tenants, MaxRepublish+1)
	if err != nil {
		return 0, fmt.Errorf("outbox: republish: %w", err)
	}
	if tag.RowsAffected() > MaxRepublish {
		return 0, ErrTooMany
	}
	return tag.RowsAffected(), nil
}
