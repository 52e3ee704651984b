package service

import (
	"context"
	"io"
	"log/slog"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/cli/printable"
)

// NewLogger writes one JSON object a line. Records logged with a request's context carry its request_id, trace_id,
// principal and tenant. An unknown level counts as info: LoadConfig has refused it before. Control characters are
// escaped, as JSON requires, so that a log is safe to view with cat and tail.
func NewLogger(w io.Writer, level string) *slog.Logger {
	l, err := parseLevel(level)
	if err != nil {
		l = slog.LevelInfo
	}
	return slog.New(contextHandler{slog.NewJSONHandler(printable.NewWriter(w), &slog.HandlerOptions{Level: l})})
}

func parseLevel(s string) (l slog.Level, err error) {
	err = l.UnmarshalText([]byte(s))
	return l, err
}

type contextHandler struct{ slog.Handler }

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Time = r.Time.UTC()
	if s := scopeFrom(ctx); s != nil {
		r.AddAttrs(slog.String("request_id", s.requestID))
	}
	if t := currentTrace(ctx); t != "" {
		r.AddAttrs(slog.String("trace_id", traceID(t)))
	}
	if p, ok := auth.FromContext(ctx); ok {
		r.AddAttrs(slog.String("principal", p.Name), slog.String("tenant", p.Tenant))
	}
	return h.Handler.Handle(ctx, r)
}

func (h contextHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return contextHandler{h.Handler.WithAttrs(a)}
}

func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{h.Handler.WithGroup(name)}
}
