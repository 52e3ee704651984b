package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
)

const (
	logEvery   = time.Second
	logBatch   = 200
	keptLines  = 10_000  // of one run while the orchestrator is away
	maxLine    = 8 << 10 // bytes of one line
	loggerName = "platform.worker"
)

// lines holds the output of a run's child until the orchestrator has it.
type lines struct {
	client *orchestrator.Client
	log    *slog.Logger
	run    uuid.UUID

	mu      sync.Mutex // guards those below
	kept    []orchestrator.Log
	dropped int
}

// add keeps a line; beyond the limit it drops the oldest.
func (l *lines) add(level int, text string) {
	if text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"); strings.TrimSpace(text) == "" {
		return
	}
	run := l.run
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) >= keptLines {
		l.kept = l.kept[1:]
		l.dropped++
	}
	l.kept = append(l.kept, orchestrator.Log{Name: loggerName, Level: level, Message: text, Timestamp: time.Now().UTC(), FlowRunID: &run})
}

// send sends the kept lines, and stops at the first failure; unsent lines stay.
func (l *lines) send(ctx context.Context) {
	for {
		l.mu.Lock()
		batch := l.kept[:min(len(l.kept), logBatch)]
		if l.dropped > 0 && len(batch) > 0 {
			first := batch[0]
			first.Level, first.Message = orchestrator.Warning, fmt.Sprintf("%d lines before this were dropped: the orchestrator was away for too long", l.dropped)
			batch = append([]orchestrator.Log{first}, batch...)
		}
		took := min(len(l.kept), logBatch)
		dropped := l.dropped
		l.mu.Unlock()
		if took == 0 {
			return
		}
		if err := l.client.CreateLogs(ctx, batch); err != nil {
			if !mayPass(err) { // it will never take these
				l.log.WarnContext(ctx, "the orchestrator refused log lines", slog.Any("err", err))
				l.forget(took, dropped)
			}
			return
		}
		l.forget(took, dropped)
	}
}

// forget drops the oldest n lines that were there when dropped had been dropped.
func (l *lines) forget(n, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n -= l.dropped - dropped // some of them have been dropped since
	l.kept = l.kept[max(0, min(n, len(l.kept))):]
	l.dropped = max(0, l.dropped-dropped)
}

// follow sends every second until ctx ends.
func (l *lines) follow(ctx context.Context) {
	t := time.NewTicker(logEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			l.send(ctx)
		}
	}
}

// levelOf reads the level of a line of the trainer's own log; others are progress.
func levelOf(line string) int {
	var record struct{ Level string }
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &record) != nil {
		return orchestrator.Info
	}
	switch record.Level {
	case "ERROR":
		return orchestrator.Err
	case "WARN":
		return orchestrator.Warning
	case "DEBUG":
		return orchestrator.Debug
	}
	return orchestrator.Info
}
