package orchestratord_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord"
)

// want calls and fails unless the status is the wanted one.
func (b bench) want(t *testing.T, status int, method, path, body string) map[string]any {
	t.Helper()
	got, doc := callRaw(t, b.c, method, path, body)
	if got != status {
		t.Fatalf("%s %s %s: %d %v, want %d", method, path, body, got, doc, status)
	}
	return doc
}

// TestRunsOfClientsAreLeftToThem makes runs that a client's process carries out. The executor neither starts them, even
// when late, nor marks those in progress as abandoned.
func TestRunsOfClientsAreLeftToThem(t *testing.T) {
	t.Parallel()
	started := make(chan string, 1)
	b := setupBench(t, runFunc(func(_ context.Context, run orchestratord.FlowRun, _ func(int, string)) error {
		started <- run.Name
		return nil
	}))
	flow := b.want(t, 201, "POST", "/flows/", `{"name":"mine"}`)["id"].(string)
	called := b.want(t, 201, "POST", "/flow_runs/", `{"flow_id":"`+flow+`","name":"called","flow_version":"v1","idempotency_key":"k","empirical_policy":{"retries":2}}`)
	if called["state_type"] != "PENDING" || called["deployment_id"] != nil || called["flow_version"] != "v1" {
		t.Errorf("run %v; want one in PENDING, of no deployment, of version v1", called)
	}
	if again := b.want(t, 200, "POST", "/flow_runs/", `{"flow_id":"`+flow+`","idempotency_key":"k"}`); again["id"] != called["id"] {
		t.Errorf("the same key made %v, want %v", again["id"], called["id"])
	}
	late := b.want(t, 201, "POST", "/flow_runs/", `{"flow_id":"`+flow+`","state":{"type":"SCHEDULED","state_details":{"scheduled_time":"2026-01-01 00:00:00+00:00"}}}`)
	b.want(t, 422, "POST", "/flow_runs/", `{"flow_id":"`+flow+`","deployment_id":"`+b.deployment.ID.String()+`"}`)
	b.want(t, 404, "POST", "/flow_runs/", `{"flow_id":"`+uuid.NewString()+`"}`)
	served := b.want(t, 201, "POST", "/deployments/", `{"flow_id":"`+flow+`","name":"served","entrypoint":"flow.py:mine","path":"."}`)["id"].(string)
	ofServed := b.want(t, 201, "POST", "/deployments/"+served+"/create_flow_run", `{}`)
	running := called["id"].(string)
	b.want(t, 201, "POST", "/flow_runs/"+running+"/set_state", `{"state":{"type":"RUNNING"}}`)

	own := b.create(t, orchestrator.CreateFlowRun{Name: "own"}) // due after the others, and alone the executor's
	startExecutor(t, b.server)
	if name := <-started; name != "own" {
		t.Fatalf("the executor started %s, want own", name)
	}
	b.await(t, own.ID, orchestrator.Completed)
	for id, want := range map[any]string{running: "RUNNING", late["id"]: "SCHEDULED", ofServed["id"]: "SCHEDULED"} {
		if got := b.want(t, 200, "GET", "/flow_runs/"+id.(string), ``); got["state_type"] != want {
			t.Errorf("run %v is %v, want %s", got["name"], got["state_type"], want)
		}
	}
	status, _ := callRaw(t, b.c, "POST", "/deployments/get_scheduled_flow_runs", `{"deployment_ids":["`+served+`"],"scheduled_before":"2036-01-01 00:00:00.5+00:00"}`)
	if status != 200 {
		t.Errorf("scheduled runs of a served deployment: %d, want 200", status)
	}
	b.want(t, 204, "PATCH", "/flow_runs/"+running, `{"name":"renamed","infrastructure_pid":"host:7"}`)
	b.want(t, 204, "PATCH", "/flow_runs/"+running+"/labels", `{"a":"b"}`)
	if got := b.want(t, 200, "GET", "/flow_runs/"+running, ``); got["name"] != "renamed" || got["infrastructure_pid"] != "host:7" || got["labels"].(map[string]any)["a"] != "b" || got["flow_version"] != "v1" {
		t.Errorf("changed run %v", got)
	}
	b.want(t, 409, "DELETE", "/flows/"+flow, ``)
	b.want(t, 204, "DELETE", "/flow_runs/"+running, ``)
	b.want(t, 404, "GET", "/flow_runs/"+running, ``)
	b.want(t, 204, "DELETE", "/deployments/"+served, ``)
	b.want(t, 204, "DELETE", "/flows/"+flow, ``)
}

// TestFailedRunsAreTriedAgain lets runs with a retry policy fail.
func TestFailedRunsAreTriedAgain(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	flow := b.want(t, 201, "POST", "/flows/", `{"name":"mine"}`)["id"].(string)
	for policy, want := range map[string]string{
		`{}`:                                "Failed",
		`{"retries":null}`:                  "Failed",
		`{"retries":0}`:                     "Failed",
		`{"retries":1}`:                     "AwaitingRetry Failed",
		`{"retries":2,"retry_delay":[0,0]}`: "AwaitingRetry AwaitingRetry Failed",
	} {
		id := b.want(t, 201, "POST", "/flow_runs/", `{"flow_id":"`+flow+`","empirical_policy":`+policy+`}`)["id"].(string)
		var got []string
		for range 3 {
			b.want(t, 201, "POST", "/flow_runs/"+id+"/set_state", `{"state":{"type":"RUNNING"}}`)
			answer := b.want(t, 201, "POST", "/flow_runs/"+id+"/set_state", `{"state":{"type":"FAILED"}}`)
			state := answer["state"].(map[string]any)["name"].(string)
			if got = append(got, state); state == "Failed" {
				break
			}
			if answer["status"] != "REJECT" {
				t.Errorf("%s: %v, want REJECT", policy, answer["status"])
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", policy, got, want)
		}
	}
}

func TestPoolsQueuesAndSchedulesOfClients(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	pool := b.want(t, 201, "POST", "/work_pools/", `{"name":"p","type":"process","concurrency_limit":3}`)
	b.want(t, 204, "PATCH", "/work_pools/p", `{"is_paused":true}`)
	if got := b.want(t, 200, "GET", "/work_pools/p", ``); got["is_paused"] != true || got["concurrency_limit"] != 3.0 || got["status"] != "PAUSED" {
		t.Errorf("paused pool %v", got)
	}
	b.want(t, 204, "PATCH", "/work_pools/p", `{"is_paused":false,"concurrency_limit":null}`)
	if got := b.want(t, 200, "GET", "/work_pools/p", ``); got["is_paused"] != false || got["concurrency_limit"] != nil {
		t.Errorf("resumed pool %v", got)
	}
	queue := b.want(t, 200, "GET", "/work_pools/p/queues/default", ``)
	if queue["id"] != pool["default_queue_id"] || queue["work_pool_name"] != "p" {
		t.Errorf("queue %v of pool %v", queue, pool)
	}
	b.want(t, 200, "GET", "/work_queues/"+queue["id"].(string), ``)
	b.want(t, 404, "GET", "/work_pools/p/queues/other", ``)
	b.want(t, 404, "GET", "/work_pools/none/queues/default", ``)
	b.want(t, 501, "POST", "/work_pools/p/queues", `{"name":"other"}`)

	deployment := "/deployments/" + b.deployment.ID.String()
	b.want(t, 204, "PATCH", deployment, `{"work_pool_name":"p"}`)
	if got := b.want(t, 409, "DELETE", "/work_pools/p", ``); !strings.Contains(fmt.Sprint(got["detail"]), "1 deployments") {
		t.Errorf("deleting a pool in use: %v", got)
	}
	if status, _ := callRaw(t, b.c, "POST", deployment+"/schedules", `[{"schedule":{"cron":"0 3 * * *"},"active":true}]`); status != 201 {
		t.Errorf("a schedule: %d, want 201", status)
	}
	schedules := b.want(t, 200, "GET", deployment, ``)["schedules"].([]any)
	id := schedules[0].(map[string]any)["id"].(string)
	b.want(t, 204, "PATCH", deployment+"/schedules/"+id, `{"active":false}`)
	if got := b.want(t, 200, "GET", deployment, ``)["schedules"].([]any)[0].(map[string]any); got["active"] != false || got["schedule"].(map[string]any)["cron"] != "0 3 * * *" {
		t.Errorf("schedule %v; want it off, the rest as it was", got)
	}
	b.want(t, 422, "PATCH", deployment+"/schedules/"+id, `{"schedule":{"cron":"never"}}`)
	b.want(t, 204, "DELETE", deployment+"/schedules/"+id, ``)
	b.want(t, 404, "DELETE", deployment+"/schedules/"+id, ``)
	b.want(t, 204, "PATCH", "/work_pools/p", `{"concurrency_limit":2}`)
	var runs []orchestrator.FlowRun
	for range 3 {
		runs = append(runs, b.create(t, orchestrator.CreateFlowRun{}))
	}
	b.want(t, 201, "POST", "/flow_runs/"+runs[0].ID.String()+"/set_state", `{"state":{"type":"PENDING"}}`)
	if due, err := b.c.ScheduledFlowRuns(t.Context(), "p", time.Now().Add(time.Hour), 10); err != nil || len(due) != 1 || due[0].FlowRun.ID != runs[1].ID {
		t.Errorf("one run under way in a pool of two: %v, %v; want the second alone", due, err)
	}
	b.want(t, 501, "PATCH", "/work_queues/"+queue["id"].(string), `{"is_paused":true}`)
	for _, r := range runs {
		b.want(t, 204, "DELETE", "/flow_runs/"+r.ID.String(), ``)
	}
	b.want(t, 204, "DELETE", deployment, ``)
	b.want(t, 204, "DELETE", "/work_pools/p", ``)
	b.want(t, 404, "DELETE", "/work_pools/p", ``)
}

func TestVariables(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	b.want(t, 404, "GET", "/variables/name/v", ``)
	b.want(t, 201, "POST", "/variables/", `{"name":"v","value":{"a":[1]},"tags":["t"]}`)
	b.want(t, 409, "POST", "/variables/", `{"name":"v","value":1}`)
	b.want(t, 422, "POST", "/variables/", `{"name":"Not A Name","value":1}`)
	b.want(t, 422, "POST", "/variables/", `{"name":"long","value":"`+strings.Repeat("x", 5000)+`"}`)
	b.want(t, 204, "PATCH", "/variables/name/v", `{"value":"b"}`)
	if got := b.want(t, 200, "GET", "/variables/name/v", ``); got["value"] != "b" || fmt.Sprint(got["tags"]) != "[t]" {
		t.Errorf("variable %v; want b with its tag", got)
	}
	b.want(t, 204, "DELETE", "/variables/name/v", ``)
	b.want(t, 404, "PATCH", "/variables/name/v", `{"value":1}`)
	b.want(t, 404, "DELETE", "/variables/name/v", ``)
}

// TestTaskRunsStandForInnerRuns finds the run of a flow within a flow again, and shows its state.
func TestTaskRunsStandForInnerRuns(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	flow := b.want(t, 201, "POST", "/flows/", `{"name":"mine"}`)["id"].(string)
	outer := b.want(t, 201, "POST", "/flow_runs/", `{"flow_id":"`+flow+`"}`)["id"].(string)
	body := `{"flow_run_id":"` + outer + `","task_key":"k","dynamic_key":"0"}`
	task := b.want(t, 201, "POST", "/task_runs/", body)["id"].(string)
	if again := b.want(t, 200, "POST", "/task_runs/", body); again["id"] != task {
		t.Errorf("the same call made %v, want %s", again["id"], task)
	}
	inner := b.want(t, 201, "POST", "/flow_runs/", `{"flow_id":"`+flow+`","parent_task_run_id":"`+task+`"}`)["id"].(string)
	b.want(t, 201, "POST", "/flow_runs/"+inner+"/set_state", `{"state":{"type":"RUNNING"}}`)
	if got := b.want(t, 200, "GET", "/task_runs/"+task, ``); got["state_type"] != "RUNNING" {
		t.Errorf("task run %v; want it RUNNING as the inner run is", got)
	}
	b.want(t, 404, "POST", "/task_runs/", `{"flow_run_id":"`+uuid.NewString()+`","task_key":"k","dynamic_key":"0"}`)
	if status, _ := callRaw(t, b.c, "POST", "/flow_runs/filter", `{"flow_runs":{"parent_task_run_id":{"any_":["`+task+`"]}}}`); status != 200 {
		t.Errorf("filter by parent: %d, want 200", status)
	}
}

// TestEventStreams speaks the websockets as the official client does.
func TestEventStreams(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dial := func(path string, hello ...string) *websocket.Conn {
		t.Helper()
		c, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(b.c.URL(), "http")+path, &websocket.DialOptions{Subprotocols: []string{"prefect"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.CloseNow() })
		var got struct{ Type string }
		if err := c.Write(ctx, websocket.MessageText, []byte(`{"type":"auth","token":null}`)); err != nil {
			t.Fatal(err)
		}
		if err := wsjson.Read(ctx, c, &got); err != nil || got.Type != "auth_success" {
			t.Fatalf("%s: %+v %v, want auth_success", path, got, err)
		}
		for _, h := range hello {
			if err := c.Write(ctx, websocket.MessageText, []byte(h)); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	in := dial("/events/in", `{"event":"prefect.task-run.Completed"}`)
	reading := in.CloseRead(ctx)
	if err := in.Ping(ctx); err != nil {
		t.Fatalf("after an event: %v", err)
	}
	deaf := dial("/events/out", `{"type":"filter","filter":{"event":{"name":["prefect.flow-run.Completed"]}}}`)
	out := dial("/events/out", `{"type":"filter","filter":{"event":{"name":["prefect.flow-run.Cancelling"]}}}`)
	deafReading := deaf.CloseRead(ctx)
	run := b.create(t, orchestrator.CreateFlowRun{})
	b.want(t, 201, "POST", "/flow_runs/"+run.ID.String()+"/set_state", `{"state":{"type":"PENDING"}}`)
	b.want(t, 201, "POST", "/flow_runs/"+run.ID.String()+"/set_state", `{"state":{"type":"RUNNING"}}`)
	b.want(t, 201, "POST", "/flow_runs/"+run.ID.String()+"/set_state", `{"state":{"type":"CANCELLING"}}`)
	var told struct {
		Type  string
		Event struct {
			Event    string
			Resource map[string]string
			ID       uuid.UUID
			Occurred time.Time
		}
	}
	if err := wsjson.Read(ctx, out, &told); err != nil || told.Event.Event != "prefect.flow-run.Cancelling" || told.Event.Resource["prefect.resource.id"] != "prefect.flow-run."+run.ID.String() {
		b, _ := json.Marshal(told)
		t.Errorf("told %s %v; want the cancellation of %s", b, err, run.ID)
	}
	if deafReading.Err() != nil || deaf.Ping(ctx) != nil {
		t.Error("who asked for something else was told or cut off")
	}
	startExecutor(t, b.server)() // the server ends, and the streams with it
	<-reading.Done()
	if ctx.Err() != nil {
		t.Error("a stream outlives its server")
	}
	if _, _, err := out.Read(ctx); err == nil {
		t.Error("a stream outlives its server")
	}
}

// TestNoStreamWithoutAGreeting refuses clients without the greeting that the interface requires.
func TestNoStreamWithoutAGreeting(t *testing.T) {
	t.Parallel()
	b := setupBench(t, runFunc(noRunner))
	c, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(b.c.URL(), "http")+"/events/in", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"filter"}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("%v; want it closed as a violation", err)
	}
}
