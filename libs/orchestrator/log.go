package orchestrator

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// Levels of log lines, those of Python's logging module.
const (
	Debug   = 10
	Info    = 20
	Warning = 30
	Err     = 40
)

// Log is one line of a run's log.
type Log struct {
	ID        uuid.UUID  `json:"id,omitzero"`
	Name      string     `json:"name"`
	Level     int        `json:"level"`
	Message   string     `json:"message"`
	Timestamp time.Time  `json:"timestamp"`
	FlowRunID *uuid.UUID `json:"flow_run_id"`
}

// CreateLogs appends lines.
func (c *Client) CreateLogs(ctx context.Context, lines []Log) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := c.call(ctx, http.MethodPost, "/logs/", lines, nil)
	return err
}

// Logs returns a page of a run's lines, oldest first; limit 0 means MaxPage.
func (c *Client) Logs(ctx context.Context, flowRun uuid.UUID, limit, offset int) ([]Log, error) {
	if limit <= 0 || limit > MaxPage {
		limit = MaxPage
	}
	runs := map[string]any{}
	anyOf(runs, "flow_run_id", []uuid.UUID{flowRun})
	in := map[string]any{"logs": runs, "sort": "TIMESTAMP_ASC", "limit": limit, "offset": offset}
	var out []Log
	_, err := c.call(ctx, http.MethodPost, "/logs/filter", in, &out)
	return out, err
}
