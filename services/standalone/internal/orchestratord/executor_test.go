package orchestratord_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord"
)

func TestRunsInOrderOneAtATime(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	busy := 0
	b := setupBench(t, runFunc(func(_ context.Context, run orchestratord.FlowRun, _ func(int, string)) error {
		mu.Lock()
		defer mu.Unlock()
		busy++
		defer func() { busy-- }()
		if busy > 1 {
			t.Error("two runs at once")
		}
		order = append(order, run.Name)
		return nil
	}))
	var last orchestrator.FlowRun
	var want []string
	for i := range 6 {
		name := fmt.Sprintf("run-%d", i)
		want = append(want, name)
		last = b.create(t, orchestrator.CreateFlowRun{Name: name})
	}
	startExecutor(t, b.server)
	done := b.await(t, last.ID, orchestrator.Completed)
	if done.RunCount != 1 || done.StartTime == nil || done.EndTime == nil {
		t.Fatalf("%+v; want done.RunCount == 1 && done.StartTime != nil && done.EndTime != nil", done)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(order, " "); got != strings.Join(want, " ") {
		t.Fatalf(`ran %s; want got == strings.Join(want, " ")`, got)
	}
	if got := b.states(t, last.ID); got != "SCHEDULED PENDING RUNNING COMPLETED" {
		t.Fatalf(`states %s; want "SCHEDULED PENDING RUNNING COMPLETED"`, got)
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	both := make(chan struct{}, 2)
	release := make(chan struct{})
	b := setupBench(t, runFunc(func(context.Context, orchestratord.FlowRun, func(int, string)) error {
		both <- struct{}{}
		<-release
		return nil
	}), orchestratord.Concurrency(2))
	one, two := b.create(t, orchestrator.CreateFlowRun{}), b.create(t, orchestrator.CreateFlowRun{})
	three := b.create(t, orchestrator.CreateFlowRun{})
	startExecutor(t, b.server)
	<-both
	<-both
	if run, err := b.c.ReadFlowRun(t.Context(), three.ID); err != nil || run.StateType != orchestrator.Scheduled {
		t.Fatalf("third is %s, %v; want run.StateType == orchestrator.Scheduled", run.StateType, err)
	}
	close(release)
	<-both
	for _, r := range []orchestrator.FlowRun{one, two, three} {
		b.await(t, r.ID, orchestrator.Completed)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(func(_ context.Context, run orchestratord.FlowRun, logs func(int, string)) error {
		logs(orchestrator.Info, "begin "+run.Parameters["model_name"].(string))
		switch run.Parameters["model_name"] {
		case "FAIL":
			return errors.New("the data set is empty")
		case "PANIC":
			panic("index out of range")
		}
		return nil
	}))
	ends := map[string]orchestrator.FlowRun{}
	for _, m := range []string{"FAIL", "PANIC", "GOOD"} {
		ends[m] = b.create(t, orchestrator.CreateFlowRun{Parameters: map[string]any{"model_name": m}})
	}
	startExecutor(t, b.server)
	if run := b.await(t, ends["FAIL"].ID, orchestrator.Failed); run.Message() != "the data set is empty" {
		t.Fatalf(`message %q; want "the data set is empty"`, run.Message())
	}
	if run := b.await(t, ends["PANIC"].ID, orchestrator.Crashed); !strings.Contains(run.Message(), "index out of range") {
		t.Fatalf(`message %q; want strings.Contains(run.Message(), "index out of range")`, run.Message())
	}
	b.await(t, ends["GOOD"].ID, orchestrator.Completed)
	lines, err := b.c.Logs(t.Context(), ends["PANIC"].ID, 0, 0)
	if err != nil || len(lines) != 2 || lines[0].Message != "begin PANIC" || !strings.Contains(lines[1].Message, "executor_test.go") {
		t.Fatalf(`lines %+v, %v; want len(lines) == 2 && lines[0].Message == "begin PANIC" && strings.Contains(lines[1].Message, "executor_test.go")`, lines, err)
	}
}

// awaitStart waits until an attempt runs.
func awaitStart(t *testing.T, started <-chan struct{}) {
	t.Helper()
	select {
	case <-started:
	case <-time.After(time.Minute):
		t.Fatal("no attempt was started")
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 1)
	b := setupBench(t, runFunc(func(ctx context.Context, _ orchestratord.FlowRun, _ func(int, string)) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}))
	run, waiting := b.create(t, orchestrator.CreateFlowRun{}), b.create(t, orchestrator.CreateFlowRun{})
	startExecutor(t, b.server)
	awaitStart(t, started)
	for _, id := range []uuid.UUID{waiting.ID, run.ID} {
		if _, err := b.c.SetState(t.Context(), id, orchestrator.State{Type: orchestrator.Cancelling}, false); err != nil {
			t.Fatal(err)
		}
	}
	b.await(t, run.ID, orchestrator.Cancelled)
	if got := b.states(t, run.ID); got != "SCHEDULED PENDING RUNNING CANCELLING CANCELLED" {
		t.Fatalf(`states %s; want "SCHEDULED PENDING RUNNING CANCELLING CANCELLED"`, got)
	}
	b.await(t, waiting.ID, orchestrator.Cancelled)
	if got := b.states(t, waiting.ID); got != "SCHEDULED CANCELLED" {
		t.Fatalf(`states %s; want "SCHEDULED CANCELLED"`, got)
	}

	// Put elsewhere by force, the attempt ends and the state stays.
	forced := b.create(t, orchestrator.CreateFlowRun{})
	awaitStart(t, started)
	if _, err := b.c.SetState(t.Context(), forced.ID, orchestrator.State{Type: orchestrator.Failed, Message: "by hand"}, true); err != nil {
		t.Fatal(err)
	}
	next := b.create(t, orchestrator.CreateFlowRun{})
	awaitStart(t, started)
	if run := b.await(t, forced.ID, orchestrator.Failed); run.Message() != "by hand" {
		t.Fatalf(`message %q; want "by hand"`, run.Message())
	}
	if _, err := b.c.SetState(t.Context(), next.ID, orchestrator.State{Type: orchestrator.Cancelling}, false); err != nil {
		t.Fatal(err)
	}
	b.await(t, next.ID, orchestrator.Cancelled)
}

func TestStop(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	b := setupBench(t, runFunc(func(ctx context.Context, _ orchestratord.FlowRun, logs func(int, string)) error {
		logs(orchestrator.Info, "before the stop")
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}))
	run := b.create(t, orchestrator.CreateFlowRun{})
	stop := startExecutor(t, b.server)
	awaitStart(t, started)
	stop()
	got, err := b.c.ReadFlowRun(t.Context(), run.ID)
	if err != nil || got.StateType != orchestrator.Crashed || !strings.Contains(got.Message(), "stopped") {
		t.Fatalf(`%s %q, %v; want got.StateType == orchestrator.Crashed && strings.Contains(got.Message(), "stopped")`, got.StateType, got.Message(), err)
	}
	lines, err := b.c.Logs(t.Context(), run.ID, 0, 0)
	if err != nil || len(lines) != 1 {
		t.Fatalf("lines %+v, %v; want len(lines) == 1", lines, err)
	}
}

func TestTwoProcessesRunEachOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ran := map[uuid.UUID]int{}
	count := runFunc(func(_ context.Context, run orchestratord.FlowRun, _ func(int, string)) error {
		mu.Lock()
		defer mu.Unlock()
		ran[run.ID]++
		return nil
	})
	b := setupBench(t, count)
	other, _ := startServer(t, b.url, count)
	stop := startExecutor(t, b.server)
	startExecutor(t, other)
	var ids []uuid.UUID
	for i := range 20 {
		ids = append(ids, b.create(t, orchestrator.CreateFlowRun{}).ID)
		if i == 10 {
			for _, id := range ids { // a stop in mid-run would crash that run
				b.await(t, id, orchestrator.Completed)
			}
			stop() // the other takes over
		}
	}
	for _, id := range ids {
		run := b.await(t, id, orchestrator.Completed)
		if run.RunCount != 1 {
			t.Errorf("run %s ran %d times; want run.RunCount == 1", id, run.RunCount)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, id := range ids {
		if ran[id] != 1 {
			t.Errorf("run %s reached the runner %d times; want ran[id] == 1", id, ran[id])
		}
	}
}

func TestLogsAreBounded(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	run := b.create(t, orchestrator.CreateFlowRun{})
	at := time.Now().UTC()
	for batch := range 12 {
		var lines []orchestrator.Log
		for i := range 900 {
			at = at.Add(time.Millisecond)
			lines = append(lines, orchestrator.Log{Name: "x", Level: 20, Message: fmt.Sprintf("%d-%d", batch, i), Timestamp: at, FlowRunID: &run.ID})
		}
		if err := b.c.CreateLogs(t.Context(), lines); err != nil {
			t.Fatal(err)
		}
	}
	last, err := b.c.Logs(t.Context(), run.ID, 5, 9_998)
	if err != nil || len(last) != 2 || !strings.Contains(last[1].Message, "dropped") {
		t.Fatalf(`%+v, %v; want len(last) == 2 && strings.Contains(last[1].Message, "dropped")`, last, err)
	}
	long := strings.Repeat("é", 6000)
	again := b.create(t, orchestrator.CreateFlowRun{})
	if err := b.c.CreateLogs(t.Context(), []orchestrator.Log{{Name: "x", Level: 20, Message: long, Timestamp: at, FlowRunID: &again.ID}}); err != nil {
		t.Fatal(err)
	}
	lines, err := b.c.Logs(t.Context(), again.ID, 0, 0)
	if err != nil || len(lines[0].Message) != 8192+len("…") || !strings.HasPrefix(long, strings.TrimSuffix(lines[0].Message, "…")) {
		t.Fatalf(`%d bytes, %v; want len(lines[0].Message) == 8192 + len("…") && strings.HasPrefix(long, strings.TrimSuffix(lines[0].Message, "…"))`, len(lines[0].Message), err)
	}
}

func TestSchedulesByTheClock(t *testing.T) {
	t.Parallel()
	// Clocks in Rome go back at 03:00 on 2026-10-25.
	now := time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
	b := setupBench(t, runFunc(noRunner), orchestratord.Clock(func() time.Time { return now }))
	status, doc := callRaw(t, b.c, "PATCH", "/deployments/"+b.deployment.ID.String(),
		`{"schedules":[{"schedule":{"cron":"30 4 * * *","timezone":"Europe/Rome"},"parameters":{"model_name":"JPCP"}}]}`)
	if status != 204 {
		t.Fatalf("%d %v; want status == 204", status, doc)
	}
	runs, err := b.c.FilterFlowRuns(t.Context(), orchestrator.Filter{Sort: orchestrator.ByExpectedStartTimeAsc})
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, r := range runs {
		at = append(at, r.ExpectedStartTime.UTC().Format(time.RFC3339))
		if r.Parameters["model_name"] != "JPCP" {
			t.Errorf(`parameters %v; want r.Parameters["model_name"] == "JPCP"`, r.Parameters)
		}
	}
	if got := strings.Join(at, " "); got != "2026-10-25T03:30:00Z 2026-10-26T03:30:00Z 2026-10-27T03:30:00Z" {
		t.Fatalf(`scheduled for %s; want "2026-10-25T03:30:00Z 2026-10-26T03:30:00Z 2026-10-27T03:30:00Z"`, got)
	}
	// Paused, none wait.
	if err := b.c.PauseDeployment(t.Context(), b.deployment.ID); err != nil {
		t.Fatal(err)
	}
	if n, err := b.c.CountFlowRuns(t.Context(), orchestrator.Filter{}); err != nil || n != 0 {
		t.Fatalf("%d runs, %v; want n == 0", n, err)
	}
}

const childURL = "ORCHESTRATORD_TEST_CHILD_DATABASE"

// runChild is the program of the process that TestKill kills: it executes, and
// its runs never end.
func runChild(url string) int {
	ctx := context.Background()
	pool, err := postgres.Open(ctx, url, orchestratord.Schema)
	if err == nil {
		var s *orchestratord.Server
		forever := runFunc(func(context.Context, orchestratord.FlowRun, func(int, string)) error { select {} })
		if s, err = orchestratord.New(ctx, pool, forever, slog.New(slog.NewTextHandler(io.Discard, nil)), orchestratord.Concurrency(3)); err == nil {
			err = s.Run(ctx)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestKill: kill -9 of the process in the middle of runs leaves none half-way. Running ones become CRASHED, cancelling
// ones CANCELLED, the rest continue.
func TestKill(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(func(context.Context, orchestratord.FlowRun, func(int, string)) error { return nil }))
	var runs []orchestrator.FlowRun
	for range 5 {
		runs = append(runs, b.create(t, orchestrator.CreateFlowRun{}))
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), childURL+"="+b.url)
	child.Stderr = t.Output()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	for _, r := range runs[:3] {
		b.await(t, r.ID, orchestrator.Running)
	}
	// The child cannot see this before it dies, or sees it and its run does not end: either way it is left.
	if _, err := b.c.SetState(t.Context(), runs[2].ID, orchestrator.State{Type: orchestrator.Cancelling}, false); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	startExecutor(t, b.server)
	for i, want := range []orchestrator.StateType{orchestrator.Crashed, orchestrator.Crashed, orchestrator.Cancelled, orchestrator.Completed, orchestrator.Completed} {
		run := b.await(t, runs[i].ID, want)
		if run.EndTime == nil {
			t.Errorf("run %d has no end; want run.EndTime != nil", i)
		}
	}
	if got := b.states(t, runs[0].ID); got != "SCHEDULED PENDING RUNNING CRASHED" {
		t.Fatalf(`states %s; want "SCHEDULED PENDING RUNNING CRASHED"`, got)
	}
	// A crashed run can be scheduled again.
	if _, err := b.c.SetState(t.Context(), runs[0].ID, orchestrator.State{Type: orchestrator.Scheduled}, false); err != nil {
		t.Fatal(err)
	}
	if run := b.await(t, runs[0].ID, orchestrator.Completed); run.RunCount != 2 {
		t.Fatalf("run count %d; want 2", run.RunCount)
	}
}

// TestPools: only pools of type in-process and deployments
// without a pool are carried out here.
func TestPools(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 4)
	b := setupBench(t, runFunc(func(_ context.Context, run orchestratord.FlowRun, _ func(int, string)) error {
		ran <- run.Name
		return nil
	}))
	runIn := func(pool, kind string) orchestrator.FlowRun {
		t.Helper()
		if _, err := b.c.CreateWorkPool(t.Context(), pool, kind, ""); err != nil {
			t.Fatal(err)
		}
		d, err := b.c.CreateDeployment(t.Context(), orchestrator.CreateDeployment{FlowID: b.deployment.FlowID, Name: pool, WorkPoolName: pool})
		if err != nil {
			t.Fatal(err)
		}
		run, _, err := b.c.CreateFlowRun(t.Context(), d.ID, orchestrator.CreateFlowRun{Name: pool})
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	workers := runIn("workers", "process")
	runIn("here", orchestratord.InProcess)
	startExecutor(t, b.server)
	if name := <-ran; name != "here" {
		t.Fatalf(`%s ran; want "here"`, name)
	}
	testenv.Eventually(t, 10*time.Second, func() error {
		run, err := b.c.ReadFlowRun(t.Context(), workers.ID)
		if err == nil && run.StateType != orchestrator.Scheduled {
			err = fmt.Errorf("the workers' run is %s", run.StateType)
		}
		return err
	})
}
