// Package orchestratortest holds one suite for every implementation of the orchestrator's interface: it passes on a
// Prefect 3 server and on the stand-in alike. It is imported by tests alone.
package orchestratortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
)

// schema declares one required parameter and one with a default.
const schema = `{"title":"Parameters","type":"object","required":["model_name"],"properties":{
  "model_name":{"title":"model_name","type":"string"},
  "is_dummy":{"title":"is_dummy","type":"boolean","default":false}}}`

type fixture struct {
	c          *orchestrator.Client
	flow       orchestrator.Flow
	pool       orchestrator.WorkPool
	deployment orchestrator.Deployment
}

// Run tests the server at apiURL. Names are unique, so that a server may be
// tested again and again. Runs stay in pools that nothing executes.
func Run(t *testing.T, apiURL string) {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := orchestrator.New(apiURL, &http.Client{Transport: transport})
	for name, test := range map[string]func(*testing.T, *orchestrator.Client){
		"server":               testServer,
		"flows":                testFlows,
		"deployments":          testDeployments,
		"parameters":           testParameters,
		"idempotency":          testIdempotency,
		"concurrent creation":  testConcurrentCreation,
		"life of a run":        testLife,
		"refused transitions":  testRefusals,
		"cancelling":           testCancelling,
		"filters":              testFilters,
		"logs":                 testLogs,
		"worker":               testWorker,
		"many due runs":        testManyDueRuns,
		"concurrency limit":    testConcurrencyLimit,
		"schedules":            testSchedules,
		"errors":               testErrors,
		"names in the address": testNames,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

func mustSucceed[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func uniqueName(prefix string) string { return prefix + "-" + uuid.NewString()[:8] }

func setupFixture(t *testing.T, c *orchestrator.Client) fixture {
	t.Helper()
	ctx := t.Context()
	f := fixture{c: c}
	f.flow = mustSucceed(c.CreateFlow(ctx, uniqueName("training_flow")))(t)
	f.pool = mustSucceed(c.CreateWorkPool(ctx, uniqueName("platform"), "process", "tests"))(t)
	f.deployment = mustSucceed(c.CreateDeployment(ctx, orchestrator.CreateDeployment{
		FlowID: f.flow.ID, Name: "dispatch", ParameterSchema: json.RawMessage(schema), EnforceParameterSchema: true,
		Tags: []string{"from-deployment"}, WorkPoolName: f.pool.Name,
	}))(t)
	return f
}

func (f fixture) run(t *testing.T, in orchestrator.CreateFlowRun) orchestrator.FlowRun {
	t.Helper()
	if in.Parameters == nil {
		in.Parameters = map[string]any{"model_name": "JPCP"}
	}
	run, created, err := f.c.CreateFlowRun(t.Context(), f.deployment.ID, in)
	if err != nil || !created {
		t.Fatalf("created %v, %v; want created", created, err)
	}
	return run
}

func (f fixture) set(t *testing.T, id uuid.UUID, s orchestrator.StateType, force bool) orchestrator.SetStateResult {
	t.Helper()
	return mustSucceed(f.c.SetState(t.Context(), id, orchestrator.State{Type: s}, force))(t)
}

func wantStatus(t *testing.T, err error, status int) *orchestrator.Error {
	t.Helper()
	var e *orchestrator.Error
	if !errors.As(err, &e) || e.Status != status {
		t.Fatalf("got %v, want status %d", err, status)
	}
	if e.Detail == "" {
		t.Fatalf(`status %d without a reason; want e.Detail != ""`, status)
	}
	return e
}

func testServer(t *testing.T, c *orchestrator.Client) {
	if err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := mustSucceed(c.Version(t.Context()))(t); !strings.HasPrefix(v, "3.") {
		t.Fatalf("version %q, want 3.…", v)
	}
}

func testFlows(t *testing.T, c *orchestrator.Client) {
	name := uniqueName("flow")
	first := mustSucceed(c.CreateFlow(t.Context(), name, "a"))(t)
	again := mustSucceed(c.CreateFlow(t.Context(), name))(t)
	if again.ID != first.ID {
		t.Fatalf("the same name gave flows %s and %s; want again.ID == %v", first.ID, again.ID, first.ID)
	}
	if got := mustSucceed(c.ReadFlow(t.Context(), first.ID))(t); got.Name != name || len(got.Tags) != 1 {
		t.Fatalf("read %+v; want got.Name == name && len(got.Tags) == 1", got)
	}
	if got := mustSucceed(c.ReadFlowByName(t.Context(), name))(t); got.ID != first.ID {
		t.Fatalf("by name %s, want %s", got.ID, first.ID)
	}
	_, err := c.ReadFlowByName(t.Context(), uniqueName("absent"))
	if !errors.Is(err, orchestrator.ErrNotFound) {
		t.Fatalf("got %v, want not found", err)
	}
}

func testDeployments(t *testing.T, c *orchestrator.Client) {
	ctx, f := t.Context(), setupFixture(t, c)
	got := mustSucceed(c.ReadDeploymentByName(ctx, f.flow.Name, "dispatch"))(t)
	if got.ID != f.deployment.ID || got.FlowID != f.flow.ID || !got.EnforceParameterSchema || got.WorkPoolName == nil || *got.WorkPoolName != f.pool.Name {
		t.Fatalf("read %+v; want got.ID == f.deployment.ID && got.FlowID == f.flow.ID && got.EnforceParameterSchema && got.WorkPoolName != nil && *got.WorkPoolName == f.pool.Name", got)
	}
	if !got.DeclaresParameter("is_dummy") || got.DeclaresParameter("commit_sha") {
		t.Fatalf(`parameters of %s; want got.DeclaresParameter("is_dummy") && !got.DeclaresParameter("commit_sha")`, got.ParameterSchema)
	}
	again := mustSucceed(c.CreateDeployment(ctx, orchestrator.CreateDeployment{FlowID: f.flow.ID, Name: "dispatch", Description: "new", WorkPoolName: f.pool.Name}))(t)
	if again.ID != f.deployment.ID || again.Description == nil || *again.Description != "new" {
		t.Fatalf(`second creation gave %+v; want again.ID == f.deployment.ID && again.Description != nil && *again.Description == "new"`, again)
	}
	if err := c.PauseDeployment(ctx, f.deployment.ID); err != nil {
		t.Fatal(err)
	}
	if got := mustSucceed(c.ReadDeployment(ctx, f.deployment.ID))(t); !got.Paused {
		t.Fatal("not paused")
	}
	if err := c.ResumeDeployment(ctx, f.deployment.ID); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteDeployment(ctx, f.deployment.ID); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteDeployment(ctx, f.deployment.ID); !errors.Is(err, orchestrator.ErrNotFound) {
		t.Fatalf("second deletion: %v; want errors.Is(err, orchestrator.ErrNotFound)", err)
	}
	if _, err := c.ReadDeploymentByName(ctx, f.flow.Name, "dispatch"); !errors.Is(err, orchestrator.ErrNotFound) {
		t.Fatalf("read after deletion: %v; want errors.Is(err, orchestrator.ErrNotFound)", err)
	}
}

func testParameters(t *testing.T, c *orchestrator.Client) {
	f := setupFixture(t, c)
	for _, bad := range []map[string]any{nil, {"model_name": 7}, {"model_name": "JPCP", "is_dummy": "yes"}} {
		_, _, err := c.CreateFlowRun(t.Context(), f.deployment.ID, orchestrator.CreateFlowRun{Parameters: bad})
		wantStatus(t, err, http.StatusConflict)
	}
	_, _, err := c.CreateFlowRun(t.Context(), f.deployment.ID, orchestrator.CreateFlowRun{Parameters: map[string]any{"model_name": 7}})
	if e := wantStatus(t, err, http.StatusConflict); !strings.Contains(e.Detail, "model_name") {
		t.Fatalf(`%q does not name the field; want strings.Contains(e.Detail, "model_name")`, e.Detail)
	}
	run := f.run(t, orchestrator.CreateFlowRun{Parameters: map[string]any{"model_name": "JPCP", "is_dummy": true, "n": 1.5}})
	if run.Parameters["model_name"] != "JPCP" || run.Parameters["is_dummy"] != true || run.Parameters["n"] != 1.5 {
		t.Fatalf(`parameters %v; want run.Parameters["model_name"] == "JPCP" && run.Parameters["is_dummy"] == true && run.Parameters["n"] == 1.5`, run.Parameters)
	}
}

func testIdempotency(t *testing.T, c *orchestrator.Client) {
	f := setupFixture(t, c)
	first := f.run(t, orchestrator.CreateFlowRun{IdempotencyKey: "k"})
	again, created, err := c.CreateFlowRun(t.Context(), f.deployment.ID, orchestrator.CreateFlowRun{
		IdempotencyKey: "k", Parameters: map[string]any{"model_name": "OTHER"},
	})
	if err != nil || created || again.ID != first.ID || again.Parameters["model_name"] != "JPCP" {
		t.Fatalf(`again: created %v, %+v, %v; want !created && again.ID == first.ID && again.Parameters["model_name"] == "JPCP"`, created, again, err)
	}
	if f.run(t, orchestrator.CreateFlowRun{IdempotencyKey: "other"}).ID == first.ID {
		t.Fatal("another key gave the same run")
	}
}

func testConcurrentCreation(t *testing.T, c *orchestrator.Client) {
	f := setupFixture(t, c)
	const callers = 50
	ids, made := map[uuid.UUID]int{}, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			var run orchestrator.FlowRun
			var created bool
			var err error
			for range 20 { // a real server on SQLite answers 503 when its database is busy
				run, created, err = c.CreateFlowRun(t.Context(), f.deployment.ID, orchestrator.CreateFlowRun{
					IdempotencyKey: "one", Parameters: map[string]any{"model_name": "JPCP"},
				})
				var e *orchestrator.Error
				if !errors.As(err, &e) || !e.Temporary() {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			ids[run.ID]++
			if created {
				made++
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 {
		t.Fatalf("%d callers got %d runs; want len(ids) == 1", callers, len(ids))
	}
	if made == 0 { // a real server may answer this to more than one
		t.Error("no caller got the answer that it created the run")
	}
	n := mustSucceed(c.CountFlowRuns(t.Context(), orchestrator.Filter{DeploymentIDs: []uuid.UUID{f.deployment.ID}}))(t)
	if n != 1 {
		t.Fatalf("%d runs exist, want 1", n)
	}
}

func testLife(t *testing.T, c *orchestrator.Client) {
	ctx, f := t.Context(), setupFixture(t, c)
	run := f.run(t, orchestrator.CreateFlowRun{Name: "named", Tags: []string{"mine"}})
	if run.StateType != orchestrator.Scheduled || run.StateName != "Scheduled" || run.Name != "named" || run.ExpectedStartTime == nil ||
		run.State == nil || run.State.Details.FlowRunID == nil || *run.State.Details.FlowRunID != run.ID {
		t.Fatalf(`new run %+v; want run.StateType == orchestrator.Scheduled && run.StateName == "Scheduled" && run.Name == "named" && run.ExpectedStartTime != nil && run.State != nil && …`, run)
	}
	if strings.Join(run.Tags, ",") != "from-deployment,mine" && strings.Join(run.Tags, ",") != "mine,from-deployment" {
		t.Fatalf(`tags %v; want (strings.Join(run.Tags, ",") == "from-deployment,mine" || strings.Join(run.Tags, ",") == "mine,from-deployment")`, run.Tags)
	}
	for _, s := range []orchestrator.StateType{orchestrator.Pending, orchestrator.Running} {
		if v := f.set(t, run.ID, s, false); v.Status != orchestrator.Accept || v.State.Type != s {
			t.Fatalf("to %s: %+v; want v.Status == orchestrator.Accept && v.State.Type == s", s, v)
		}
	}
	if run = mustSucceed(c.ReadFlowRun(ctx, run.ID))(t); run.RunCount != 1 || run.StartTime == nil || run.EndTime != nil {
		t.Fatalf("running %+v; want run.RunCount == 1 && run.StartTime != nil && run.EndTime == nil", run)
	}
	v := mustSucceed(c.SetState(ctx, run.ID, orchestrator.State{Type: orchestrator.Failed, Message: "no data"}, false))(t)
	if v.Status != orchestrator.Accept {
		t.Fatalf("to FAILED: %+v; want v.Status == %v", v, orchestrator.Accept)
	}
	if run = mustSucceed(c.ReadFlowRun(ctx, run.ID))(t); run.StateType != orchestrator.Failed || run.Message() != "no data" || run.EndTime == nil || run.TotalRunTime <= 0 {
		t.Fatalf(`failed %+v; want run.StateType == orchestrator.Failed && run.Message() == "no data" && run.EndTime != nil && run.TotalRunTime > 0`, run)
	}
	// A finished run may be proposed again.
	if v := f.set(t, run.ID, orchestrator.Scheduled, false); v.Status != orchestrator.Accept {
		t.Fatalf("again: %+v; want v.Status == %v", v, orchestrator.Accept)
	}
	if run = mustSucceed(c.ReadFlowRun(ctx, run.ID))(t); run.EndTime != nil {
		t.Fatal("a scheduled run has an end")
	}
	var types []string
	for _, s := range mustSucceed(c.States(ctx, run.ID))(t) {
		types = append(types, string(s.Type))
	}
	if got := strings.Join(types, " "); got != "SCHEDULED PENDING RUNNING FAILED SCHEDULED" {
		t.Fatalf(`states %s; want "SCHEDULED PENDING RUNNING FAILED SCHEDULED"`, got)
	}
}

func testRefusals(t *testing.T, c *orchestrator.Client) {
	f := setupFixture(t, c)
	run := f.run(t, orchestrator.CreateFlowRun{})
	refused := func(to orchestrator.StateType, want orchestrator.SetStateStatus, stays orchestrator.StateType) {
		t.Helper()
		v := f.set(t, run.ID, to, false)
		if v.Status != want || v.Details.Reason == "" {
			t.Fatalf("to %s: %+v, want %s with a reason", to, v, want)
		}
		if got := mustSucceed(c.ReadFlowRun(t.Context(), run.ID))(t); got.StateType != stays {
			t.Fatalf("run is %s, want %s", got.StateType, stays)
		}
	}
	f.set(t, run.ID, orchestrator.Pending, false)
	refused(orchestrator.Pending, orchestrator.Abort, orchestrator.Pending)
	f.set(t, run.ID, orchestrator.Running, false)
	refused(orchestrator.Pending, orchestrator.Abort, orchestrator.Running)
	f.set(t, run.ID, orchestrator.Cancelling, false)
	refused(orchestrator.Running, orchestrator.Reject, orchestrator.Cancelling)
	refused(orchestrator.Completed, orchestrator.Reject, orchestrator.Cancelling)
	f.set(t, run.ID, orchestrator.Cancelled, false)
	refused(orchestrator.Crashed, orchestrator.Abort, orchestrator.Cancelled)
	refused(orchestrator.Cancelling, orchestrator.Abort, orchestrator.Cancelled)
	// Force skips the rules.
	if v := f.set(t, run.ID, orchestrator.Crashed, true); v.Status != orchestrator.Accept {
		t.Fatalf("forced: %+v; want v.Status == %v", v, orchestrator.Accept)
	}
	// A run whose time has not come waits.
	later := time.Now().Add(time.Hour)
	_, err := c.SetState(t.Context(), run.ID, orchestrator.State{Type: orchestrator.Scheduled, Details: orchestrator.StateDetails{ScheduledTime: &later}}, false)
	if err != nil {
		t.Fatal(err)
	}
	v := f.set(t, run.ID, orchestrator.Running, false)
	if v.Status != orchestrator.Wait || v.Details.DelaySeconds < 3500 || v.Details.DelaySeconds > 3600 {
		t.Fatalf("early: %+v; want v.Status == orchestrator.Wait && v.Details.DelaySeconds >= 3500 && v.Details.DelaySeconds <= 3600", v)
	}
}

func testCancelling(t *testing.T, c *orchestrator.Client) {
	f := setupFixture(t, c)
	run := f.run(t, orchestrator.CreateFlowRun{})
	// Nothing runs yet, so there is nothing to wind down.
	f.set(t, run.ID, orchestrator.Cancelling, false)
	if got := mustSucceed(c.ReadFlowRun(t.Context(), run.ID))(t); got.StateType != orchestrator.Cancelled {
		t.Fatalf("run is %s, want CANCELLED", got.StateType)
	}
}

func testFilters(t *testing.T, c *orchestrator.Client) {
	ctx, f := t.Context(), setupFixture(t, c)
	var ids []uuid.UUID
	for i := range 5 {
		run := f.run(t, orchestrator.CreateFlowRun{IdempotencyKey: fmt.Sprintf("key-%d", i), Tags: []string{fmt.Sprintf("tag-%d", i%2)}})
		ids = append(ids, run.ID)
	}
	f.set(t, ids[0], orchestrator.Pending, false)
	mine := []uuid.UUID{f.deployment.ID}
	for name, tc := range map[string]struct {
		filter orchestrator.Filter
		want   int
	}{
		"deployment":     {orchestrator.Filter{DeploymentIDs: mine}, 5},
		"ids":            {orchestrator.Filter{IDs: ids[:2]}, 2},
		"no ids":         {orchestrator.Filter{IDs: []uuid.UUID{}}, 0},
		"unknown id":     {orchestrator.Filter{IDs: []uuid.UUID{uuid.New()}}, 0},
		"state":          {orchestrator.Filter{DeploymentIDs: mine, StateTypes: []orchestrator.StateType{orchestrator.Scheduled}}, 4},
		"two states":     {orchestrator.Filter{DeploymentIDs: mine, StateTypes: []orchestrator.StateType{orchestrator.Scheduled, orchestrator.Pending}}, 5},
		"tag":            {orchestrator.Filter{DeploymentIDs: mine, Tags: []string{"tag-0"}}, 3},
		"two tags":       {orchestrator.Filter{DeploymentIDs: mine, Tags: []string{"tag-0", "from-deployment"}}, 3},
		"key":            {orchestrator.Filter{DeploymentIDs: mine, IdempotencyKeys: []string{"key-3", "absent"}}, 1},
		"expected after": {orchestrator.Filter{DeploymentIDs: mine, ExpectedAfter: time.Now().Add(time.Hour)}, 0},
		"expected until": {orchestrator.Filter{DeploymentIDs: mine, ExpectedBefore: time.Now().Add(time.Hour)}, 5},
	} {
		runs := mustSucceed(c.FilterFlowRuns(ctx, tc.filter))(t)
		if len(runs) != tc.want {
			t.Errorf("%s: %d runs, want %d", name, len(runs), tc.want)
		}
		if n := mustSucceed(c.CountFlowRuns(ctx, tc.filter))(t); n != tc.want {
			t.Errorf("%s: counts %d, want %d", name, n, tc.want)
		}
	}
	seen := map[uuid.UUID]bool{}
	for run, err := range c.FlowRuns(ctx, orchestrator.Filter{DeploymentIDs: mine, Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[run.ID] = true
	}
	if len(seen) != 5 {
		t.Fatalf("pages of 2 gave %d runs, want 5", len(seen))
	}
	byStart := mustSucceed(c.FilterFlowRuns(ctx, orchestrator.Filter{DeploymentIDs: mine, Sort: orchestrator.ByExpectedStartTimeAsc, Limit: 5}))(t)
	for i, run := range byStart {
		if run.ID != ids[i] {
			t.Fatalf("by expected start: %d is %s, want %s", i, run.ID, ids[i])
		}
	}
}

func testLogs(t *testing.T, c *orchestrator.Client) {
	ctx, f := t.Context(), setupFixture(t, c)
	run := f.run(t, orchestrator.CreateFlowRun{})
	start := time.Now().UTC().Truncate(time.Millisecond)
	lines := []orchestrator.Log{
		{Name: "trainer", Level: orchestrator.Info, Message: "read 100 rows", Timestamp: start, FlowRunID: &run.ID},
		{Name: "trainer", Level: orchestrator.Warning, Message: "ünïcödé \"quoted\"", Timestamp: start.Add(time.Millisecond), FlowRunID: &run.ID},
	}
	if err := c.CreateLogs(ctx, lines); err != nil {
		t.Fatal(err)
	}
	got, err := c.Logs(ctx, run.ID, 0, 0)
	for deadline := time.Now().Add(20 * time.Second); err == nil && len(got) < 2 && time.Now().Before(deadline); {
		got, err = c.Logs(ctx, run.ID, 0, 0) // a real server may store in the background
	}
	if err != nil || len(got) != 2 {
		t.Fatalf("%d lines, %v; want len(got) == 2", len(got), err)
	}
	for i := range lines {
		if got[i].Message != lines[i].Message || got[i].Level != lines[i].Level || !got[i].Timestamp.Equal(lines[i].Timestamp) {
			t.Fatalf("line %d is %+v; want got[i].Message == lines[i].Message && got[i].Level == lines[i].Level && got[i].Timestamp.Equal(lines[i].Timestamp)", i, got[i])
		}
	}
	if page := mustSucceed(c.Logs(ctx, run.ID, 1, 1))(t); len(page) != 1 || page[0].Message != lines[1].Message {
		t.Fatalf("second page %+v; want len(page) == 1 && page[0].Message == lines[1].Message", page)
	}
}

func testWorker(t *testing.T, c *orchestrator.Client) {
	ctx, f := t.Context(), setupFixture(t, c)
	if f.pool.Status == nil || *f.pool.Status != "NOT_READY" {
		t.Fatalf(`new pool %+v; want f.pool.Status != nil && *f.pool.Status == "NOT_READY"`, f.pool)
	}
	_, err := c.CreateWorkPool(ctx, f.pool.Name, "process", "")
	wantStatus(t, err, http.StatusConflict)
	if err := c.Heartbeat(ctx, f.pool.Name, "worker-1", 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if p := mustSucceed(c.ReadWorkPool(ctx, f.pool.Name))(t); p.Status == nil || *p.Status != "READY" {
		t.Fatalf(`polled pool %+v; want p.Status != nil && *p.Status == "READY"`, p)
	}
	if w := mustSucceed(c.Workers(ctx, f.pool.Name))(t); len(w) != 1 || w[0].Name != "worker-1" || w[0].Status != "ONLINE" || time.Since(w[0].LastHeartbeat) > time.Minute {
		t.Fatalf(`workers %+v; want one, "worker-1", ONLINE, heard of just now`, w)
	}
	_, err = c.Workers(ctx, uniqueName("no-pool"))
	wantStatus(t, err, http.StatusNotFound)
	first := f.run(t, orchestrator.CreateFlowRun{})
	f.run(t, orchestrator.CreateFlowRun{})
	due := mustSucceed(c.ScheduledFlowRuns(ctx, f.pool.Name, time.Now().Add(time.Minute), 1))(t)
	if len(due) != 1 || due[0].FlowRun.ID != first.ID || due[0].WorkPoolID != f.pool.ID {
		t.Fatalf("due %+v, want %s", due, first.ID)
	}
	f.set(t, first.ID, orchestrator.Pending, false)
	if due = mustSucceed(c.ScheduledFlowRuns(ctx, f.pool.Name, time.Now().Add(time.Minute), 10))(t); len(due) != 1 || due[0].FlowRun.ID == first.ID {
		t.Fatalf("due after the claim %+v; want len(due) == 1 && due[0].FlowRun.ID != first.ID", due)
	}
	if due = mustSucceed(c.ScheduledFlowRuns(ctx, f.pool.Name, time.Now().Add(-time.Hour), 10))(t); len(due) != 0 {
		t.Fatalf("due an hour ago %+v; want len(due) == 0", due)
	}
}

// Going through the due runs reaches those behind more than a page of others, whether or not one is claimed meanwhile.
func testManyDueRuns(t *testing.T, c *orchestrator.Client) {
	ctx, f := t.Context(), setupFixture(t, c)
	want := map[uuid.UUID]bool{}
	for range 25 {
		want[f.run(t, orchestrator.CreateFlowRun{}).ID] = true
	}
	got := map[uuid.UUID]bool{}
	for item, err := range c.AllScheduledFlowRuns(ctx, f.pool.Name, time.Now().Add(time.Minute), 10) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 5 {
			f.set(t, item.FlowRun.ID, orchestrator.Pending, false)
		}
		if got[item.FlowRun.ID] || !want[item.FlowRun.ID] {
			t.Fatalf("run %s came twice, or is none of the %d", item.FlowRun.ID, len(want))
		}
		got[item.FlowRun.ID] = true
	}
	if len(got) != len(want) {
		t.Fatalf("%d due runs; want %d", len(got), len(want))
	}
}

// A run beyond its deployment's limit is put off when it is claimed, and may start once the other has ended.
func testConcurrencyLimit(t *testing.T, c *orchestrator.Client) {
	ctx, f := t.Context(), setupFixture(t, c)
	one := 1
	d := mustSucceed(c.CreateDeployment(ctx, orchestrator.CreateDeployment{
		FlowID: f.flow.ID, Name: "limited", WorkPoolName: f.pool.Name, ConcurrencyLimit: &one,
	}))(t)
	var runs []orchestrator.FlowRun
	for range 2 {
		run, _, err := c.CreateFlowRun(ctx, d.ID, orchestrator.CreateFlowRun{})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	claim := func(run orchestrator.FlowRun) orchestrator.SetStateResult {
		return mustSucceed(c.SetState(ctx, run.ID, orchestrator.State{Type: orchestrator.Pending}, false))(t)
	}
	if got := claim(runs[0]); got.Status != orchestrator.Accept {
		t.Fatalf("the first is %s; want %s", got.Status, orchestrator.Accept)
	}
	got := claim(runs[1])
	if got.Status != orchestrator.Reject || got.State == nil || got.State.Type != orchestrator.Scheduled || got.State.Name != "AwaitingConcurrencySlot" {
		t.Fatalf("the second: %+v; want REJECT, SCHEDULED, AwaitingConcurrencySlot", got)
	}
	if due := mustSucceed(c.ScheduledFlowRuns(ctx, f.pool.Name, time.Now(), 10))(t); len(due) != 0 {
		t.Fatalf("due now: %+v; want none, for the second was put off", due)
	}
	f.set(t, runs[0].ID, orchestrator.Running, false)
	f.set(t, runs[0].ID, orchestrator.Completed, false)
	if got := claim(runs[1]); got.Status != orchestrator.Accept {
		t.Fatalf("the second, after the first has ended: %s; want %s", got.Status, orchestrator.Accept)
	}
}

func testSchedules(t *testing.T, c *orchestrator.Client) {
	ctx, f := t.Context(), setupFixture(t, c)
	d := mustSucceed(c.CreateDeployment(ctx, orchestrator.CreateDeployment{
		FlowID: f.flow.ID, Name: "nightly", WorkPoolName: f.pool.Name, Parameters: map[string]any{"model_name": "JPCP"},
		Schedules: []orchestrator.CreateSchedule{{Schedule: orchestrator.Cron{Cron: "30 3 * * *", Timezone: "Europe/Rome"}, Active: true}},
	}))(t)
	if len(d.Schedules) != 1 || d.Schedules[0].Schedule.Cron != "30 3 * * *" || !d.Schedules[0].Active {
		t.Fatalf(`schedules %+v; want len(d.Schedules) == 1 && d.Schedules[0].Schedule.Cron == "30 3 * * *" && d.Schedules[0].Active`, d.Schedules)
	}
	filter := orchestrator.Filter{DeploymentIDs: []uuid.UUID{d.ID}, Sort: orchestrator.ByExpectedStartTimeAsc}
	deadline, cancel := context.WithTimeout(ctx, 90*time.Second) // a real server schedules once a minute
	defer cancel()
	var runs []orchestrator.FlowRun
	for tick := time.NewTicker(50 * time.Millisecond); len(runs) == 0; {
		select {
		case <-deadline.Done():
			t.Fatal("no run was scheduled")
		case <-tick.C:
			runs = mustSucceed(c.FilterFlowRuns(ctx, filter))(t)
		}
	}
	rome := mustSucceed(time.LoadLocation("Europe/Rome"))(t)
	for _, r := range runs {
		at := r.ExpectedStartTime.In(rome)
		if at.Hour() != 3 || at.Minute() != 30 || at.Before(time.Now()) || !r.AutoScheduled || r.StateType != orchestrator.Scheduled || r.Parameters["model_name"] != "JPCP" {
			t.Fatalf(`scheduled run %+v; want at.Hour() == 3 && at.Minute() == 30 && !at.Before(time.Now()) && r.AutoScheduled && r.StateType == orchestrator.Scheduled && r.Parameters["model_name"] == "JPCP"`, r)
		}
	}
	// Without schedules the runs made ahead go.
	mustSucceed(c.CreateDeployment(ctx, orchestrator.CreateDeployment{FlowID: f.flow.ID, Name: "nightly", WorkPoolName: f.pool.Name}))(t)
	if n := mustSucceed(c.CountFlowRuns(ctx, filter))(t); n != 0 {
		t.Fatalf("%d runs stay; want 0", n)
	}
	_, err := c.CreateDeployment(ctx, orchestrator.CreateDeployment{
		FlowID: f.flow.ID, Name: "wrong", Schedules: []orchestrator.CreateSchedule{{Schedule: orchestrator.Cron{Cron: "61 * * * *"}, Active: true}},
	})
	wantStatus(t, err, http.StatusUnprocessableEntity)
}

func testErrors(t *testing.T, c *orchestrator.Client) {
	ctx := t.Context()
	_, err := c.ReadFlowRun(ctx, uuid.New())
	if !errors.Is(err, orchestrator.ErrNotFound) {
		t.Fatal(err, "want errors.Is(err, orchestrator.ErrNotFound)")
	}
	_, _, err = c.CreateFlowRun(ctx, uuid.New(), orchestrator.CreateFlowRun{})
	wantStatus(t, err, http.StatusNotFound)
	_, err = c.SetState(ctx, uuid.New(), orchestrator.State{Type: orchestrator.Failed}, false)
	wantStatus(t, err, http.StatusNotFound)
	_, err = c.CreateFlow(ctx, "")
	if err != nil { // a real server takes the empty name
		wantStatus(t, err, http.StatusUnprocessableEntity)
	}
	_, err = c.FilterFlowRuns(ctx, orchestrator.Filter{StateTypes: []orchestrator.StateType{"BOGUS"}})
	wantStatus(t, err, http.StatusUnprocessableEntity)
	_, err = c.FilterFlowRuns(ctx, orchestrator.Filter{Offset: -1})
	wantStatus(t, err, http.StatusUnprocessableEntity)
	f := setupFixture(t, c)
	run := f.run(t, orchestrator.CreateFlowRun{})
	_, err = c.SetState(ctx, run.ID, orchestrator.State{Type: "BOGUS"}, false)
	wantStatus(t, err, http.StatusUnprocessableEntity)
	_, err = c.ReadWorkPool(ctx, uniqueName("absent"))
	wantStatus(t, err, http.StatusNotFound)
}

func testNames(t *testing.T, c *orchestrator.Client) {
	name := uniqueName("flow with spaces?#ü")
	f := mustSucceed(c.CreateFlow(t.Context(), name))(t)
	if got := mustSucceed(c.ReadFlowByName(t.Context(), name))(t); got.ID != f.ID {
		t.Fatalf("by name %s, want %s", got.ID, f.ID)
	}
}
