package orchestratord

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

const (
	flushEvery  = 300 * time.Millisecond
	maxBuffered = 2_000 // lines that wait for the database
)

// logBuffer takes the lines of a run without waiting and writes them in batches.
type logBuffer struct {
	s   *Server
	run uuid.UUID

	mu      sync.Mutex
	lines   []logLine // guarded by mu
	dropped int       // guarded by mu
}

func (s *Server) newLogBuffer(run uuid.UUID) *logBuffer { return &logBuffer{s: s, run: run} }

func (b *logBuffer) add(level int, msg string) {
	line := logLine{"flow_run", cleanMessage(msg), int32(min(max(level, 0), 100)), b.s.now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) >= maxBuffered {
		b.dropped++
		return
	}
	b.lines = append(b.lines, line)
}

func (b *logBuffer) take() []logLine {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	if b.dropped > 0 {
		lines = append(lines, logLine{
			"orchestrator", fmt.Sprintf("%d lines were dropped: they came faster than they could be stored.", b.dropped),
			orchestrator.Warning, b.s.now(),
		})
	}
	b.lines, b.dropped = nil, 0
	return lines
}

// flushUntil writes until stop is closed, and then the rest.
func (b *logBuffer) flushUntil(stop <-chan struct{}) {
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-stop:
			b.flush()
			return
		case <-t.C:
			b.flush()
		}
	}
}

func (b *logBuffer) flush() {
	lines := b.take()
	if len(lines) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	err := b.s.tx(ctx, func(q *store.Queries) error { return b.s.appendLogs(ctx, q, b.run, lines) })
	if err != nil {
		b.s.log.WarnContext(ctx, "store log lines of a run", slog.String("flow_run_id", b.run.String()),
			slog.Int("lines", len(lines)), slog.Any("err", err))
	}
}
