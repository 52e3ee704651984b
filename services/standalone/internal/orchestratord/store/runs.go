package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Run is a flow run with its present state and the names it refers to.
type Run struct {
	ID                uuid.UUID
	Created, Updated  time.Time
	Name              string
	FlowID            uuid.UUID
	DeploymentID      *uuid.UUID
	DeploymentVersion *string
	WorkPoolID        *uuid.UUID
	WorkPoolName      *string
	WorkQueueID       *uuid.UUID
	WorkQueueName     *string
	Parameters        json.RawMessage
	IdempotencyKey    *string
	Context           json.RawMessage
	Tags              []string
	Labels            json.RawMessage
	JobVariables      json.RawMessage
	AutoScheduled     bool
	RunCount          int32
	ExpectedStartTime *time.Time
	NextStartTime     *time.Time
	StartTime         *time.Time
	EndTime           *time.Time
	RunSeconds        float64 // without the time in the present state
	ParentTaskRunID   *uuid.UUID
	FlowVersion       *string
	InfrastructurePID *string
	EmpiricalPolicy   json.RawMessage
	State             FlowRunState
}

const selectRun = `select r.id, r.created, r.updated, r.name, r.flow_id, r.deployment_id, r.deployment_version,
  r.work_pool_id, p.name, p.default_queue_id, r.work_queue_name, r.parameters, r.idempotency_key, r.context, r.tags, r.labels,
  r.job_variables, r.auto_scheduled, r.run_count, r.expected_start_time, r.next_start_time, r.start_time, r.end_time, r.run_seconds,
  r.parent_task_run_id, r.flow_version, r.infrastructure_pid, r.empirical_policy,
  s.id, s.seq, s.flow_run_id, s.type, s.name, s.timestamp, s.message, s.data, s.scheduled_time `

const fromRun = `from flow_run r join flow_run_state s on s.id = r.state_id join flow f on f.id = r.flow_id
  left join deployment d on d.id = r.deployment_id left join work_pool p on p.id = r.work_pool_id `

func scanRun(row pgx.CollectableRow) (r Run, err error) {
	err = row.Scan(&r.ID, &r.Created, &r.Updated, &r.Name, &r.FlowID, &r.DeploymentID, &r.DeploymentVersion,
		&r.WorkPoolID, &r.WorkPoolName, &r.WorkQueueID, &r.WorkQueueName, &r.Parameters, &r.IdempotencyKey, &r.Context, &r.Tags, &r.Labels,
		&r.JobVariables, &r.AutoScheduled, &r.RunCount, &r.ExpectedStartTime, &r.NextStartTime, &r.StartTime, &r.EndTime, &r.RunSeconds,
		&r.ParentTaskRunID, &r.FlowVersion, &r.InfrastructurePID, &r.EmpiricalPolicy,
		&r.State.ID, &r.State.Seq, &r.State.FlowRunID, &r.State.Type, &r.State.Name, &r.State.Timestamp, &r.State.Message, &r.State.Data, &r.State.ScheduledTime)
	return r, err
}

// Cond is a condition on runs, built from fixed expressions and bound values.
// The zero value matches all. Tables: r flow_run, s its state, f flow,
// d deployment, p work_pool.
type Cond struct {
	parts []string
	args  []any
}

// Add requires expr, in which each ? is replaced by the next of args.
func (c *Cond) Add(expr string, args ...any) {
	for _, a := range args {
		c.args = append(c.args, a)
		expr = strings.Replace(expr, "?", fmt.Sprintf("$%d", len(c.args)), 1)
	}
	c.parts = append(c.parts, expr)
}

// Mark is where [Cond.Or] begins.
func (c *Cond) Mark() int { return len(c.parts) }

// Or joins the conditions added since Mark by "or".
func (c *Cond) Or(mark int) {
	if len(c.parts)-mark > 1 {
		c.parts = append(c.parts[:mark], "("+strings.Join(c.parts[mark:], " or ")+")")
	}
}

func (c *Cond) where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " where " + strings.Join(c.parts, " and ")
}

// RunOrder names an order of runs as the API does.
var RunOrder = map[string]string{
	"ID_DESC":                       "r.id desc",
	"START_TIME_ASC":                "r.start_time, r.id",
	"START_TIME_DESC":               "r.start_time desc nulls last, r.id",
	"EXPECTED_START_TIME_ASC":       "r.expected_start_time, r.id",
	"EXPECTED_START_TIME_DESC":      "r.expected_start_time desc nulls last, r.id",
	"NAME_ASC":                      "r.name, r.id",
	"NAME_DESC":                     "r.name desc, r.id",
	"NEXT_SCHEDULED_START_TIME_ASC": "r.next_start_time, r.id",
	"END_TIME_DESC":                 "r.end_time desc nulls last, r.id",
}

// Runs lists the runs that match, in the order named.
func (q *Queries) Runs(ctx context.Context, c Cond, order string, limit, offset int) ([]Run, error) {
	sql := selectRun + fromRun + c.where() + " order by " + RunOrder[order] + fmt.Sprintf(" limit %d offset %d", limit, offset)
	rows, err := q.db.Query(ctx, sql, c.args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRun)
}

// Run reads one run; pgx.ErrNoRows if there is none.
func (q *Queries) Run(ctx context.Context, id uuid.UUID) (Run, error) {
	rows, err := q.db.Query(ctx, selectRun+fromRun+"where r.id = $1", id)
	if err != nil {
		return Run{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanRun)
}

// CountRuns counts the runs that match.
func (q *Queries) CountRuns(ctx context.Context, c Cond) (n int64, err error) {
	err = q.db.QueryRow(ctx, "select count(*) "+fromRun+c.where(), c.args...).Scan(&n)
	return n, err
}

// LogLine is a line of a run's log.
type LogLine struct {
	ID        uuid.UUID
	Created   time.Time
	FlowRunID uuid.UUID
	Name      string
	Level     int32
	Message   string
	Timestamp time.Time
}

// LogQuery selects log lines; nil and empty fields do not.
type LogQuery struct {
	FlowRunIDs    []uuid.UUID
	MinLevel      *int32
	MaxLevel      *int32
	After, Before *time.Time
	Newest        bool // newest first
	Limit, Offset int
}

// Logs lists the lines that match.
func (q *Queries) Logs(ctx context.Context, l LogQuery) ([]LogLine, error) {
	order := " order by timestamp, seq"
	if l.Newest {
		order = " order by timestamp desc, seq desc"
	}
	rows, err := q.db.Query(ctx, `select id, created, flow_run_id, name, level, message, timestamp from log
where ($1::uuid[] is null or flow_run_id = any($1))
  and ($2::integer is null or level >= $2) and ($3::integer is null or level <= $3)
  and ($4::timestamptz is null or timestamp > $4) and ($5::timestamptz is null or timestamp < $5)`+order+" limit $6 offset $7",
		l.FlowRunIDs, l.MinLevel, l.MaxLevel, l.After, l.Before, l.Limit, l.Offset)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[LogLine])
}
