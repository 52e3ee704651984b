package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const sweepRows = 1000

const (
	claimSQL = `
with due as (
	select id from outbox
	where published_at is null and poison_at is null and next_attempt_at <= now()
	  and (claimed_until is null or claimed_until <= now())
	order by seq limit $1 for update skip locked
), claimed as (
	update outbox o set claimed_by = $2, claimed_until = now() + $3::interval
	from due where o.id = due.id
	returning o.id, o.seq, o.tenant, o.namespace, o.name, o.subject_id, o.payload, o.actor, o.request_id,
	          o.traceparent, o.created_at
)
select id, tenant, namespace, name, coalesce(subject_id, ''), payload, actor, coalesce(request_id, ''),
       coalesce(traceparent, ''), created_at
from claimed order by seq`

	ackedSQL = `
update outbox o set published_at = now(), stream_seq = a.stream_seq, claimed_by = null, claimed_until = null,
       poison_at = null, last_error = null
from unnest($1::uuid[], $2::bigint[]) as a (id, stream_seq) where o.id = a.id`

	refusedSQL = `
update outbox o set refusals = refusals + 1, claimed_by = null, claimed_until = null, last_error = r.error,
       next_attempt_at = now() + make_interval(secs => power(2, refusals + 1)),
       poison_at = case when refusals + 1 >= $3 then now() end
from unnest($1::uuid[], $2::text[]) as r (id, error)
where o.id = r.id and published_at is null
returning o.id, o.namespace, o.name, o.refusals, o.poison_at is not null, r.error`

	releasedSQL = `
update outbox set claimed_by = null, claimed_until = null
where id = any($1) and claimed_by = $2 and published_at is null`

	releaseAllSQL = `
update outbox set claimed_by = null, claimed_until = null
where claimed_until is not null and published_at is null and poison_at is null`

	// In the order of the stream, so that the index ends the search at the first
	// row that is young.
	sweepSQL = `
delete from outbox where id in (
	select id from (
		select id, published_at from outbox where published_at is not null order by stream_seq limit $2
	) oldest where published_at < now() - $1::interval)`

	// Rows that were only logged have no place in a stream.
	sweepLoggedSQL = `
delete from outbox where id in (
	select id from outbox where published_at is not null and stream_seq is null and published_at < now() - $1::interval limit $2)`

	// One condition to each count, so that its partial index serves; the week of
	// published rows is not touched.
	statsSQL = `
select (select count(*) from outbox where published_at is null and poison_at is null),
       (select count(*) from outbox where poison_at is not null),
       coalesce(extract(epoch from now() - (
         select created_at from outbox where published_at is null and poison_at is null order by seq limit 1)), 0)::float8`

	publishedSQL = `select count(*) from outbox where published_at is not null`
)

// row is a claimed one.
type row struct {
	id                                 uuid.UUID
	tenant, namespace, name, subjectID string
	payload                            []byte
	actor, requestID, traceparent      string
	createdAt                          time.Time
}

func (r *Relay) claim(ctx context.Context) ([]row, error) {
	rows, err := r.cfg.Pool.Query(ctx, claimSQL, batchRows, r.id, claimLease)
	if err != nil {
		return nil, fmt.Errorf("outbox: claim: %w", err)
	}
	got, err := pgx.CollectRows(rows, func(c pgx.CollectableRow) (w row, err error) {
		err = c.Scan(&w.id, &w.tenant, &w.namespace, &w.name, &w.subjectID, &w.payload, &w.actor, &w.requestID, &w.traceparent, &w.createdAt)
		return w, err
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: claim: %w", err)
	}
	return got, nil
}

// outcome is what became of a claimed row: acknowledged, logged, refused, or, with
// none of these, given back.
type outcome struct {
	id      uuid.UUID
	seq     uint64 // in the stream; 0 unless acknowledged
	logged  bool   // instead of published
	refused string // why
}

// settle writes outcomes down. It runs to its end also while the relay stops:
// what the broker has must not be sent again for nothing.
func (r *Relay) settle(ctx context.Context, outcomes []outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	var acked, refused, released []uuid.UUID
	var seqs []*int64
	var reasons []string
	for _, o := range outcomes {
		switch {
		case o.seq != 0:
			seq := int64(o.seq) // a stream never reaches 2^63
			acked, seqs = append(acked, o.id), append(seqs, &seq)
		case o.logged:
			acked, seqs = append(acked, o.id), append(seqs, nil)
		case o.refused != "":
			refused, reasons = append(refused, o.id), append(reasons, o.refused)
		default:
			released = append(released, o.id)
		}
	}
	var b pgx.Batch
	if len(acked) > 0 {
		b.Queue(ackedSQL, acked, seqs)
	}
	if len(released) > 0 {
		b.Queue(releasedSQL, released, r.id)
	}
	if len(refused) > 0 {
		b.Queue(refusedSQL, refused, reasons, r.cfg.MaxAttempts).Query(func(rows pgx.Rows) error {
			return r.reportRefused(ctx, rows)
		})
	}
	if err := r.cfg.Pool.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("outbox: settle: %w", err)
	}
	r.metrics.published.Add(float64(len(acked)))
	return nil
}
