//go:build e2e || faults

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// patience limits a client's retries of one command. A command whose owner was killed is taken over after its lease of
// 15 s, and its lock runs out after 30 s.
const patience = 4 * time.Minute

// command is one retrain, or one notice with its approval, as a client sees it.
type command struct {
	kind          string // retrain or approval
	tenant, model string
	n             int
	approval      string // the record's id
	flowRun       string // set when the client has its answer
	took          time.Duration
}

func (c *command) name() string { return fmt.Sprintf("%s-%s-%s-%d", c.kind, c.tenant, c.model, c.n) }

// load is all commands and the clients that send them.
type load struct {
	w        *world
	commands []*command
	sent     int
	running  sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	lanes  map[string]*sync.Mutex
	faults map[string]int // reasons for which clients had to repeat a request
	failed []string
}

func newLoad(w *world, each int) *load {
	l := &load{w: w, lanes: map[string]*sync.Mutex{}, faults: map[string]int{}}
	names := []string{}
	for m := range models {
		names = append(names, m)
	}
	slices.Sort(names)
	for i := range each {
		tenant, model := tenants[i%len(tenants)], names[i%len(names)]
		for _, kind := range []string{"retrain", "approval"} {
			c := &command{kind: kind, tenant: tenant, model: model, n: i}
			l.commands = append(l.commands, c)
			l.lanes[l.lane(c)] = &sync.Mutex{}
		}
	}
	return l
}

// lane identifies commands that exclude each other: one training of a model is dispatched at a time, and a new notice
// supersedes the pending one.
func (l *load) lane(c *command) string { return c.kind + c.tenant + c.model }

// send starts the next n clients.
func (l *load) send(ctx context.Context, n int) {
	for ; n > 0 && l.sent < len(l.commands); n-- {
		c := l.commands[l.sent]
		l.sent++
		l.running.Go(func() {
			lane := l.lanes[l.lane(c)]
			lane.Lock()
			defer lane.Unlock()
			begin := time.Now()
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			err := l.run(ctx, c)
			c.took = time.Since(begin)
			if err != nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.failed = append(l.failed, c.name()+": "+err.Error())
			}
		})
	}
}

// finish waits for all clients.
func (l *load) finish(t *testing.T) {
	t.Helper()
	l.running.Wait()
	if len(l.failed) > 0 {
		t.Fatalf("%d commands came to no end: %s; want len(l.failed) <= 0", len(l.failed), l.failed[0])
	}
}

func (l *load) run(ctx context.Context, c *command) error {
	if c.kind == "approval" {
		return l.approve(ctx, c)
	}
	run, err := l.retrain(ctx, c)
	if err != nil {
		return err
	}
	c.flowRun = run
	if c.n%5 != 0 {
		return nil
	}
	// Some repeat the request, as if they had lost the answer.
	again, err := l.retrain(ctx, c)
	if err == nil && again != run {
		err = fmt.Errorf("the key gave run %s, then %s", run, again)
	}
	return err
}

func (l *load) retrain(ctx context.Context, c *command) (flowRun string, err error) {
	var out struct {
		FlowRunID string `json:"flow_run_id"`
	}
	err = l.ask(ctx, c, "/retrain", map[string]any{"model_name": c.model, "dataset_name": models[c.model]}, &out, "Idempotency-Key", c.name())
	return out.FlowRunID, err
}

// notice creates the record to approve; a repeated notice finds it.
func (l *load) notice(ctx context.Context, c *command) error {
	var noted struct{ Created, Existing []string }
	err := l.ask(ctx, c, "/api/changes", map[string]any{
		"model_ids": []string{c.model}, "commit_sha": fmt.Sprintf("%040x", c.n+1), "commit_msg": c.name(), "changed_files": []string{"models/x"},
	}, &noted)
	if err != nil {
		return err
	}
	ids := append(noted.Created, noted.Existing...)
	if len(ids) != 1 {
		return fmt.Errorf("records %v", ids)
	}
	c.approval = ids[0]
	return nil
}

func (l *load) approve(ctx context.Context, c *command) error {
	if c.approval == "" {
		if err := l.notice(ctx, c); err != nil {
			return err
		}
	}
	var out struct {
		FlowRunID string `json:"flow_run_id"`
	}
	err := l.ask(ctx, c, "/approvals/"+c.approval+"/approve", map[string]any{}, &out)
	if err == errDecided { // the answer was lost; the record has it
		var record struct {
			Status     string
			FlowRunID  string `json:"prefect_run_id"`
			ResolvedBy string `json:"resolved_by"`
		}
		if err := l.look(ctx, c, "/approvals/"+c.approval, &record); err != nil {
			return err
		}
		if record.Status != "approved" || record.ResolvedBy != "user-of-"+c.tenant {
			return fmt.Errorf("record %+v", record)
		}
		out.FlowRunID = record.FlowRunID
	} else if err != nil {
		return err
	}
	c.flowRun = out.FlowRunID
	return nil
}

// errDecided means that an earlier attempt of the same client succeeded.
var errDecided = errors.New("decided already")

// ask repeats a POST, alternating between the replicas, until it has a final answer.
func (l *load) ask(ctx context.Context, c *command, path string, body, out any, headers ...string) error {
	return l.insist(ctx, c, func(url string) (harness.Answer, error) {
		return harness.TryCall("POST", url+path, tokenOf(c.tenant), body, headers...)
	}, out)
}

func (l *load) look(ctx context.Context, c *command, path string, out any) error {
	return l.insist(ctx, c, func(url string) (harness.Answer, error) {
		return harness.TryCall("GET", url+path, tokenOf(c.tenant), nil)
	}, out)
}

func (l *load) insist(ctx context.Context, c *command, call func(url string) (harness.Answer, error), out any) error {
	for try := c.n; ; try++ {
		a, err := call(l.w.replicas[try%len(l.w.replicas)])
		var p struct{ Code string }
		switch {
		case err != nil:
			l.count("connection lost")
		case a.Status == 200:
			return json.Unmarshal(a.Body, out)
		default:
			_ = json.Unmarshal(a.Body, &p) // without a code it is not in the lists below
			l.count(fmt.Sprintf("%d %s", a.Status, p.Code))
			err = fmt.Errorf("%d %s", a.Status, a.Body)
			if p.Code == "already_decided" {
				return errDecided
			}
			if a.Status < 500 && a.Status != 429 && !slices.Contains([]string{"command_in_progress", "retrain_in_flight", "approval_in_progress"}, p.Code) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer in %v: %w", patience, err)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func (l *load) count(fault string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults[fault]++
}

// work executes the runs, as a worker of the pool would, until ctx ends: from state to state, whatever the answers to
// its calls.
func (w *world) work(ctx context.Context) {
	next := map[string]string{"SCHEDULED": "PENDING", "PENDING": "RUNNING", "RUNNING": "COMPLETED"}
	for ctx.Err() == nil {
		a, err := harness.TryCall("POST", w.orchestrator+"/flow_runs/filter", "", map[string]any{
			"flow_runs": map[string]any{"state": map[string]any{"type": map[string]any{"any_": []string{"SCHEDULED", "PENDING", "RUNNING"}}}}, "limit": 200,
		})
		var runs []struct {
			ID        string
			StateType string `json:"state_type"`
		}
		if err == nil && a.Status == 200 && json.Unmarshal(a.Body, &runs) == nil {
			for _, r := range runs {
				for state := next[r.StateType]; state != "" && ctx.Err() == nil; state = next[state] {
					a, err := harness.TryCall("POST", w.orchestrator+"/flow_runs/"+r.ID+"/set_state", "", map[string]any{"state": map[string]any{"type": state}})
					if err != nil || a.Status >= 300 {
						break // retried in the next round
					}
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
