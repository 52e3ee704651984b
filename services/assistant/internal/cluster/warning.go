package cluster

import (
	"context"
	"slices"
	"sync"
)

// maxWarnings limits the warnings kept by one collection.
const maxWarnings = 20

type warningsKey struct{}

// Warnings collects what the server warns of, such as a deprecated version, in calls that are made with the context
// that it gives back. The function returns each warning once, redaction left to the caller.
func Warnings(ctx context.Context) (context.Context, func() []string) {
	w := &warnings{}
	return context.WithValue(ctx, warningsKey{}, w), w.all
}

type warnings struct {
	mu    sync.Mutex
	texts []string // guarded by mu
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

// collector passes the warnings of calls to their callers. client-go's default prints them.
type collector struct{}

// HandleWarningHeaderWithContext is part of rest.WarningHandlerWithContext.
func (collector) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	w, ok := ctx.Value(warningsKey{}).(*warnings)
	if !ok || code != 299 || text == "" { // 299 is the only code that API servers send
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.texts) < maxWarnings && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}
