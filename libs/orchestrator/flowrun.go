package orchestrator

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// MaxPage is the most items in one answer of the orchestrator.
const MaxPage = 200

// FlowRun is one run of a flow.
type FlowRun struct {
	ID             uuid.UUID      `json:"id"`
	Created        time.Time      `json:"created"`
	Updated        time.Time      `json:"updated"`
	Name           string         `json:"name"`
	FlowID         uuid.UUID      `json:"flow_id"`
	DeploymentID   *uuid.UUID     `json:"deployment_id"`
	Parameters     map[string]any `json:"parameters"`
	IdempotencyKey *string        `json:"idempotency_key"`
	Tags           []string       `json:"tags"`
	StateID        *uuid.UUID     `json:"state_id"`
	// StateType is empty for a run that was never given a state.
	StateType         StateType  `json:"state_type"`
	StateName         string     `json:"state_name"`
	State             *State     `json:"state"`
	RunCount          int        `json:"run_count"`
	ExpectedStartTime *time.Time `json:"expected_start_time"`
	// NextStart is when a scheduled run is due; nil for others.
	NextStart *time.Time `json:"next_scheduled_start_time"`
	StartTime *time.Time `json:"start_time"`
	EndTime   *time.Time `json:"end_time"`
	// TotalRunTime is in seconds, up to the last state change.
	TotalRunTime  float64 `json:"total_run_time"`
	AutoScheduled bool    `json:"auto_scheduled"`
	WorkPoolName  *string `json:"work_pool_name"`
}

// Message is the message of the run's present state, empty if it has none.
func (r FlowRun) Message() string {
	if r.State == nil {
		return ""
	}
	return r.State.Message
}

// CreateFlowRun is a request for a run of a deployment. Parameters override the
// deployment's own. With an IdempotencyKey the same call may be repeated: the
// first creates the run, the others return it.
type CreateFlowRun struct {
	Parameters     map[string]any `json:"parameters,omitempty"`
	IdempotencyKey string         `json:"idempotency_key,omitempty"`
	Name           string         `json:"name,omitempty"`
	Tags           []string       `json:"tags,omitempty"`
}

// CreateFlowRun starts a run of the deployment; created is false where the
// idempotency key was known and the run is the earlier one.
func (c *Client) CreateFlowRun(ctx context.Context, deployment uuid.UUID, in CreateFlowRun) (run FlowRun, created bool, err error) {
	status, err := c.call(ctx, http.MethodPost, "/deployments/"+deployment.String()+"/create_flow_run", in, &run)
	return run, status == http.StatusCreated, err
}

// ReadFlowRun returns one run.
func (c *Client) ReadFlowRun(ctx context.Context, id uuid.UUID) (FlowRun, error) {
	var out FlowRun
	_, err := c.call(ctx, http.MethodGet, "/flow_runs/"+id.String(), nil, &out)
	return out, err
}

// Sort orders flow runs.
type Sort string

// Orders of a list of flow runs. Ids need not carry time: ByIDDesc is a stable
// order, not newest first.
const (
	ByIDDesc                Sort = "ID_DESC"
	ByStartTimeAsc          Sort = "START_TIME_ASC"
	ByStartTimeDesc         Sort = "START_TIME_DESC"
	ByExpectedStartTimeAsc  Sort = "EXPECTED_START_TIME_ASC"
	ByExpectedStartTimeDesc Sort = "EXPECTED_START_TIME_DESC"
	ByEndTimeDesc           Sort = "END_TIME_DESC"
)

// Filter selects flow runs: those that match every field that is set. A nil list
// is not set; an empty one matches nothing.
type Filter struct {
	IDs             []uuid.UUID
	DeploymentIDs   []uuid.UUID
	StateTypes      []StateType
	IdempotencyKeys []string
	// Tags must all be on the run; an empty list is not set.
	Tags []string
	// ExpectedAfter and ExpectedBefore bound the expected start time, inclusive.
	ExpectedAfter, ExpectedBefore time.Time
	// Sort is ByIDDesc when empty.
	Sort Sort
	// Limit is at most MaxPage; 0 means MaxPage.
	Limit, Offset int
}

func (f Filter) body() map[string]any {
	runs := map[string]any{}
	anyOf(runs, "id", f.IDs)
	anyOf(runs, "deployment_id", f.DeploymentIDs)
	anyOf(runs, "idempotency_key", f.IdempotencyKeys)
	if f.StateTypes != nil {
		state := map[string]any{}
		anyOf(state, "type", f.StateTypes)
		runs["state"] = state
	}
	if len(f.Tags) > 0 {
		runs["tags"] = map[string]any{"all_": f.Tags}
	}
	expected := map[string]any{}
	if !f.ExpectedAfter.IsZero() {
		expected["after_"] = f.ExpectedAfter.UTC()
	}
	if !f.ExpectedBefore.IsZero() {
		expected["before_"] = f.ExpectedBefore.UTC()
	}
	if len(expected) > 0 {
		runs["expected_start_time"] = expected
	}
	if len(runs) == 0 {
		return map[string]any{}
	}
	return map[string]any{"flow_runs": runs}
}

func anyOf[T any](m map[string]any, key string, values []T) {
	if values != nil {
		m[key] = map[string]any{"any_": values}
	}
}

// FilterFlowRuns returns one page of the runs that match.
func (c *Client) FilterFlowRuns(ctx context.Context, f Filter) ([]FlowRun, error) {
	body := f.body()
	body["sort"] = ByIDDesc
	if f.Sort != "" {
		body["sort"] = f.Sort
	}
	body["limit"] = MaxPage
	if f.Limit > 0 {
		body["limit"] = min(f.Limit, MaxPage)
	}
	body["offset"] = f.Offset
	var out []FlowRun
	_, err := c.call(ctx, http.MethodPost, "/flow_runs/filter", body, &out)
	return out, err
}

// FlowRuns goes through all runs that match, page by page; Limit is the size
// of a page. A run that begins or ceases to match meanwhile may make another
// appear twice or not at all.
func (c *Client) FlowRuns(ctx context.Context, f Filter) iter.Seq2[FlowRun, error] {
	if f.Limit <= 0 || f.Limit > MaxPage {
		f.Limit = MaxPage
	}
	return func(yield func(FlowRun, error) bool) {
		for {
			page, err := c.FilterFlowRuns(ctx, f)
			if err != nil {
				yield(FlowRun{}, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			if len(page) < f.Limit {
				return
			}
			f.Offset += len(page)
		}
	}
}

// CountFlowRuns counts the runs that match; Sort, Limit and Offset are ignored.
func (c *Client) CountFlowRuns(ctx context.Context, f Filter) (int, error) {
	var n int
	_, err := c.call(ctx, http.MethodPost, "/flow_runs/count", f.body(), &n)
	return n, err
}
