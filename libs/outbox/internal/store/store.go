// Package store holds the outbox's SQL as typed queries, generated from queries/*.sql. The tables are those of
// ../../migrations, which every service applies to its own schema. One statement stays outside: LISTEN takes no
// parameter for its channel, so the relay quotes the name itself.
package store

import (
	"github.com/jackc/pgx/v5"
)

//go:generate sh ../../../../scripts/sqlc.sh

// Row is an event with its payload's size and digest; the other queries for rows return the same columns under
// type names of their own.
type Row = LockRowRow

// Outcomes are the results of the rows of one claim.
type Outcomes struct {
	Published MarkPublishedParams
	Released  ReleaseClaimsParams
	Refused   MarkRefusedParams
}

// Batch sends all outcomes in one round trip: sqlc can repeat one statement in a batch, but not combine three, so
// they are queued by hand. onRefused gets the refusals as they were recorded.
func (o Outcomes) Batch(onRefused func(MarkRefusedRow)) *pgx.Batch {
	var b pgx.Batch
	if p := o.Published; len(p.Ids) > 0 {
		b.Queue(markPublished, p.Ids, p.StreamSeqs)
	}
	if p := o.Released; len(p.Ids) > 0 {
		b.Queue(releaseClaims, p.Ids, p.Relay)
	}
	if p := o.Refused; len(p.Ids) > 0 {
		b.Queue(markRefused, p.MaxAttempts, p.Ids, p.Errors).Query(func(rows pgx.Rows) error {
			refused, err := pgx.CollectRows(rows, pgx.RowToStructByPos[MarkRefusedRow])
			for _, r := range refused {
				onRefused(r)
			}
			return err
		})
	}
	return &b
}
