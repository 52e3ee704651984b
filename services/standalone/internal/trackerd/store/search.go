package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/filter"
)

// maxPageBytes ends a page early, so that an answer is bounded whatever the rows hold.
const maxPageBytes = 16 << 20

// Search selects rows by a filter, their order, and a page of them.
type Search struct {
	Filter        []filter.Clause
	Order         []filter.Order
	Offset, Limit int
}

// query builds a statement of fixed text and bound values.
type query struct {
	where []string
	order []string
	args  []any
}

// bind returns the placeholder of a value.
func (q *query) bind(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

func (q *query) add(cond string) { q.where = append(q.where, cond) }

func (q *query) conditions() string {
	if len(q.where) == 0 {
		return ""
	}
	return " where " + strings.Join(q.where, " and ")
}

// compare renders "expr op value".
func (q *query) compare(expr string, c filter.Clause) string {
	switch c.Op {
	case filter.IsNull, filter.IsNotNull:
		return expr + " " + string(c.Op)
	case filter.In:
		return expr + " = any(" + q.bind(c.List) + "::text[])"
	case filter.NotIn:
		return expr + " <> all(" + q.bind(c.List) + "::text[])"
	case filter.Like, filter.ILike:
		// A backslash is an ordinary character in this grammar.
		return expr + " " + string(c.Op) + " " + q.bind(c.Text) + "::text escape ''"
	}
	op := string(c.Op)
	if c.Op == filter.Ne {
		op = "<>"
	}
	return expr + " " + op + " " + q.bind(c.Text) + "::text"
}

// compareNumber renders "expr op number".
func (q *query) compareNumber(expr string, c filter.Clause) string {
	op := string(c.Op)
	if c.Op == filter.Ne {
		op = "<>"
	}
	return expr + " " + op + " " + q.bind(c.Number) + "::double precision"
}

// compareMetric renders a comparison of the column value, in which NaN is
// unequal to all and nothing else.
func (q *query) compareMetric(column string, c filter.Clause) string {
	cond := q.compareNumber(column, c)
	if c.Op != filter.Ne {
		cond += " and " + column + " <> 'NaN'"
	}
	return cond
}

// orderBy sorts by expr, absent values last in both directions.
func (q *query) orderBy(expr string, desc bool) {
	if desc {
		q.order = append(q.order, expr+" desc nulls last")
	} else {
		q.order = append(q.order, expr+" nulls last")
	}
}

// orderByMetric sorts by expr, NaN behind all numbers, absent values last.
func (q *query) orderByMetric(expr string, desc bool) {
	q.order = append(q.order, "case when "+expr+" is null then 2 when "+expr+" = 'NaN' then 1 else 0 end")
	q.orderBy(expr, desc)
}

// queryPage runs sql, which ends before its conditions, for one page of the result; size estimates the bytes of a row,
// and more reports whether rows follow.
func queryPage[T any](ctx context.Context, db DBTX, sql string, q *query, s Search, size func(T) int) (out []T, more bool, err error) {
	sql += q.conditions() + " order by " + strings.Join(q.order, ", ")
	r, err := db.Query(ctx, fmt.Sprintf("%s limit %d offset %d", sql, s.Limit+1, s.Offset), q.args...)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	total := 0
	for r.Next() {
		if len(out) == s.Limit || total > maxPageBytes {
			return out, true, nil
		}
		v, err := pgx.RowToStructByPos[T](r)
		if err != nil {
			return nil, false, err
		}
		out = append(out, v)
		total += size(v)
	}
	return out, false, r.Err()
}

func (t Tags) size() int {
	n := 0
	for k, v := range t {
		n += len(k) + len(v) + 32
	}
	return n
}
