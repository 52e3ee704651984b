package orchestrator

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// WorkPool is a place where workers pick up runs.
type WorkPool struct {
	ID               uuid.UUID `json:"id"`
	Name             string    `json:"name"`
	Type             string    `json:"type"`
	Description      *string   `json:"description"`
	IsPaused         bool      `json:"is_paused"`
	ConcurrencyLimit *int      `json:"concurrency_limit"`
	// Status is READY, NOT_READY or PAUSED.
	Status *string `json:"status"`
}

// CreateWorkPool makes a pool. A name that exists is a 409 [*Error].
func (c *Client) CreateWorkPool(ctx context.Context, name, kind, description string) (WorkPool, error) {
	in := struct {
		Name        string `json:"name"`
		Type        string `json:"type"`
		Description string `json:"description,omitempty"`
	}{name, kind, description}
	var out WorkPool
	_, err := c.call(ctx, http.MethodPost, "/work_pools/", in, &out)
	return out, err
}

// ReadWorkPool returns the pool of that name.
func (c *Client) ReadWorkPool(ctx context.Context, name string) (WorkPool, error) {
	var out WorkPool
	_, err := c.call(ctx, http.MethodGet, "/work_pools/"+pathSegment(name), nil, &out)
	return out, err
}

// Heartbeat reports that a worker polls the pool; every is the interval of its heartbeats.
func (c *Client) Heartbeat(ctx context.Context, pool, worker string, every time.Duration) error {
	in := struct {
		Name     string `json:"name"`
		Interval int    `json:"heartbeat_interval_seconds,omitempty"`
	}{worker, int(every.Round(time.Second) / time.Second)}
	_, err := c.call(ctx, http.MethodPost, "/work_pools/"+pathSegment(pool)+"/workers/heartbeat", in, nil)
	return err
}

// PoolWorker is a worker that polls a pool, or did.
type PoolWorker struct {
	Name          string    `json:"name"`
	LastHeartbeat time.Time `json:"last_heartbeat_time"`
	// Status is ONLINE or OFFLINE.
	Status string `json:"status"`
}

// Workers lists the first MaxPage workers of the pool.
func (c *Client) Workers(ctx context.Context, pool string) ([]PoolWorker, error) {
	in := struct {
		Limit int `json:"limit"`
	}{MaxPage}
	var out []PoolWorker
	_, err := c.call(ctx, http.MethodPost, "/work_pools/"+pathSegment(pool)+"/workers/filter", in, &out)
	return out, err
}

// ScheduledRun is a run that waits for a worker of the pool.
type ScheduledRun struct {
	WorkPoolID  uuid.UUID `json:"work_pool_id"`
	WorkQueueID uuid.UUID `json:"work_queue_id"`
	FlowRun     FlowRun   `json:"flow_run"`
}

// ScheduledFlowRuns lists at most limit runs of the pool that are due before
// the given time, soonest first.
func (c *Client) ScheduledFlowRuns(ctx context.Context, pool string, before time.Time, limit int) ([]ScheduledRun, error) {
	return c.scheduledPage(ctx, pool, before, nil, limit)
}

// AllScheduledFlowRuns goes through all runs of the pool that are due before
// the given time, soonest first, in pages of at most the given size. Runs may
// be claimed meanwhile: a page begins at a moment, not at a number.
func (c *Client) AllScheduledFlowRuns(ctx context.Context, pool string, before time.Time, size int) iter.Seq2[ScheduledRun, error] {
	size = max(1, min(size, MaxPage))
	return func(yield func(ScheduledRun, error) bool) {
		var after *time.Time
		seen := map[uuid.UUID]bool{}
		for {
			page, err := c.scheduledPage(ctx, pool, before, after, size)
			if err != nil {
				yield(ScheduledRun{}, err)
				return
			}
			fresh := false
			for _, r := range page {
				if seen[r.FlowRun.ID] {
					continue
				}
				seen[r.FlowRun.ID], fresh = true, true
				if !yield(r, nil) {
					return
				}
			}
			if len(page) < size {
				return
			}
			last := page[len(page)-1].FlowRun.NextStart
			if last == nil {
				return
			}
			// Others may be due at the very moment of the last one. A page without new runs is full of such runs: a
			// larger one may hold them all, and those beyond MaxPage are left out.
			next := last.Add(-time.Microsecond)
			switch {
			case !fresh && size < MaxPage:
				size = MaxPage
			case !fresh:
				next = last.Add(time.Microsecond)
			}
			after = &next
		}
	}
}

func (c *Client) scheduledPage(ctx context.Context, pool string, before time.Time, after *time.Time, limit int) ([]ScheduledRun, error) {
	in := struct {
		Before time.Time  `json:"scheduled_before"`
		After  *time.Time `json:"scheduled_after,omitempty"`
		Limit  int        `json:"limit,omitempty"`
	}{before.UTC(), after, limit}
	var out []ScheduledRun
	_, err := c.call(ctx, http.MethodPost, "/work_pools/"+pathSegment(pool)+"/get_scheduled_flow_runs", in, &out)
	return out, err
}
