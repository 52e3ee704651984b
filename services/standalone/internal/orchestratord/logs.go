package orchestratord

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

// Limits of the stored logs, so that a run that logs in a loop cannot fill the disk.
const (
	maxLogLines   = 10_000 // of a run; the rest is dropped, as the last line states
	maxLogMessage = 8 << 10
	keepLogs      = 30 * 24 * time.Hour // after the end of the run
)

type logDoc struct {
	ID        uuid.UUID `json:"id"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Name      string    `json:"name"`
	Level     int32     `json:"level"`
	Message   string    `json:"message"`
	Timestamp time.Time `json:"timestamp"`
	FlowRunID uuid.UUID `json:"flow_run_id"`
	TaskRunID *string   `json:"task_run_id"`
}

type logLine struct {
	name, message string
	level         int32
	at            time.Time
}

// appendLogs stores lines of a run up to its limit. Lines of a run that does not exist are refused.
func (s *Server) appendLogs(ctx context.Context, q *store.Queries, run uuid.UUID, lines []logLine) error {
	total, err := q.ReserveLogLines(ctx, store.ReserveLogLinesParams{ID: run, Lines: int32(len(lines))})
	if err != nil {
		return absentAsNotFound(err, "Flow run")
	}
	if room := maxLogLines - (int(total) - len(lines)); room < len(lines) {
		if room <= 0 {
			return nil
		}
		last := logLine{
			"orchestrator", fmt.Sprintf("Further lines are dropped: a run keeps %d.", maxLogLines),
			orchestrator.Warning, lines[room-1].at,
		}
		lines = append(lines[:room-1:room-1], last)
	}
	arg := store.InsertLogParams{Now: s.now(), FlowRunID: run}
	for _, l := range lines {
		arg.Ids = append(arg.Ids, newID())
		arg.Names = append(arg.Names, cleanMessage(l.name))
		arg.Levels = append(arg.Levels, l.level)
		arg.Messages = append(arg.Messages, cleanMessage(l.message))
		arg.Timestamps = append(arg.Timestamps, l.at)
	}
	return q.InsertLog(ctx, arg)
}

// cleanMessage makes text that Postgres can hold, cut to the bound.
func cleanMessage(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= maxLogMessage {
		return s
	}
	cut := maxLogMessage
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func (s *Server) createLogs(r *http.Request) (any, error) {
	var in []struct {
		Name      string     `json:"name"`
		Level     int32      `json:"level"`
		Message   string     `json:"message"`
		Timestamp *moment    `json:"timestamp"`
		FlowRunID *uuid.UUID `json:"flow_run_id"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	byRun := map[uuid.UUID][]logLine{}
	var order []uuid.UUID
	for i, l := range in {
		switch {
		case l.FlowRunID == nil:
			return nil, invalidMember(fmt.Sprintf("%d.flow_run_id", i), "this server keeps the logs of flow runs alone")
		case l.Timestamp == nil:
			return nil, invalidMember(fmt.Sprintf("%d.timestamp", i), "Field required")
		}
		if byRun[*l.FlowRunID] == nil {
			order = append(order, *l.FlowRunID)
		}
		byRun[*l.FlowRunID] = append(byRun[*l.FlowRunID], logLine{l.Name, l.Message, l.Level, *l.Timestamp.time()})
	}
	err := s.tx(r.Context(), func(q *store.Queries) error {
		for _, run := range order {
			if err := s.appendLogs(r.Context(), q, run, byRun[run]); err != nil {
				return err
			}
		}
		return nil
	})
	return answer{http.StatusCreated, nil}, err
}

type logFilter struct {
	FlowRunID *struct {
		Any []uuid.UUID `json:"any_"`
	} `json:"flow_run_id"`
	Level *struct {
		Ge *int32 `json:"ge_"`
		Le *int32 `json:"le_"`
	} `json:"level"`
	Timestamp *struct {
		After  *moment `json:"after_"`
		Before *moment `json:"before_"`
	} `json:"timestamp"`
}

func (f *logFilter) UnmarshalJSON(b []byte) error {
	type plain logFilter
	return decodeFilter(b, "logs", (*plain)(f))
}

func (s *Server) filterLogs(r *http.Request) (any, error) {
	var in struct {
		page
		Sort string     `json:"sort"`
		Logs *logFilter `json:"logs"`
	}
	in.Sort = "TIMESTAMP_ASC"
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, offset, err := in.bounds()
	if err != nil {
		return nil, err
	}
	if in.Sort != "TIMESTAMP_ASC" && in.Sort != "TIMESTAMP_DESC" {
		return nil, invalidMember("sort", "Input should be 'TIMESTAMP_ASC' or 'TIMESTAMP_DESC'")
	}
	q := store.LogQuery{Newest: in.Sort == "TIMESTAMP_DESC", Limit: limit, Offset: offset}
	if f := in.Logs; f != nil {
		if f.FlowRunID != nil {
			q.FlowRunIDs = f.FlowRunID.Any
		}
		if f.Level != nil {
			q.MinLevel, q.MaxLevel = f.Level.Ge, f.Level.Le
		}
		if f.Timestamp != nil {
			q.After, q.Before = f.Timestamp.After.time(), f.Timestamp.Before.time()
		}
	}
	lines, err := s.q.Logs(r.Context(), q)
	if err != nil {
		return nil, err
	}
	out := make([]logDoc, 0, len(lines))
	for _, l := range lines {
		out = append(out, logDoc{l.ID, l.Created.UTC(), l.Created.UTC(), l.Name, l.Level, l.Message, l.Timestamp.UTC(), l.FlowRunID, nil})
	}
	return out, nil
}
