package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mlp-platform/platform/libs/service"
)

// queryTracer makes a span of each statement that is part of traced work. It contains the statement's name, never its
// text or a value.
type queryTracer struct{ schema string }

// TraceQueryStart is pgx's.
func (t queryTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	name := statementName(data.SQL)
	ctx, span := service.StartChild(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "postgresql"), attribute.String("db.namespace", t.schema),
		attribute.String("db.operation.name", name)))
	return context.WithValue(ctx, openQuery{}, span)
}

// openQuery is the key of the span that a statement began: the context at its end may be one that began none.
type openQuery struct{}

// TraceQueryEnd is pgx's.
func (queryTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	span, ok := ctx.Value(openQuery{}).(trace.Span)
	if !ok {
		return
	}
	if data.Err != nil && !errors.Is(data.Err, pgx.ErrNoRows) {
		span.SetStatus(codes.Error, "")
		var pg *pgconn.PgError
		if errors.As(data.Err, &pg) {
			span.SetAttributes(attribute.String("db.response.status_code", pg.Code))
		}
	}
	span.End()
}

// statementName is the name that sqlc wrote before a statement, else its first word, such as begin.
func statementName(sql string) string {
	if rest, ok := strings.CutPrefix(sql, "-- name: "); ok {
		name, _, _ := strings.Cut(rest, " ")
		return name
	}
	for word := range strings.FieldsSeq(sql) {
		if word = strings.ToLower(strings.Trim(word, ";")); len(word) <= 16 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" {
			return word
		}
		break
	}
	return "statement"
}
