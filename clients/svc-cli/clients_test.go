package svccli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/go/controltower"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Both reference clients against the real server. Broken answers are played to them by clients/exchanges.

const pythonClient = "../python"

func goClient(t *testing.T, url string) *controltower.Client {
	t.Helper()
	c, err := controltower.New(url, token, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// findPython runs a module or script with the Python client installed.
func findPython(t *testing.T, url string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "python3", args...)
	c.Dir = pythonClient
	c.Env = append(os.Environ(), "PYTHONPATH=src", "SVC_CONTROL_TOWER_TOKEN="+token, "SVC_CONTROL_TOWER_URL="+url)
	var errOut bytes.Buffer
	c.Stderr = &errOut
	out, err := c.Output()
	if err != nil {
		t.Fatalf("python3 %q: %v\n%s%s", args, err, out, errOut.String())
	}
	return string(out)
}

// sampleTower starts a tower over the samples. It must be stopped before the test's context ends.
func sampleTower(t *testing.T) (dir, url string, stop func()) {
	t.Helper()
	dir = t.TempDir()
	requireSuccess(t, runWords(t, dir, "fixtures samples --store s.db"))
	p, url := towerOn(t, dir, "--port", "0", "--product-spine-store", "s.db")
	return dir, url, func() {
		p.signal(t, os.Interrupt)
		p.ends(t)
	}
}

func TestBothClientsReadTheSame(t *testing.T) {
	t.Parallel()
	dir, url, stop := sampleTower(t)
	defer stop()
	report := filepath.Join(dir, "samples", "spine", "report.json")
	want := collectFacts(t, goClient(t, url), report)
	if got := findPython(t, url, "-m", "tests.facts", url, report); got != want {
		t.Errorf("Python read:\n%s\nGo read:\n%s", got, want)
	}
	for _, fact := range []string{"evidence sha256:d3ee44db187a100d4803c8819f2b076cefc2cf7b21dd4ab4b5f5229dc3e9edec\n", "streamed 4 ",
		"refused 400 not_product_spine_cli_run False\n", "limits 14 8\n", "refused 400 invalid_last_event_id False\n", "cancelled run/demo:0003\n"} {
		if !strings.Contains(want, fact) {
			t.Errorf("neither read %q:\n%s", fact, want)
		}
	}
}

// collectFacts returns the output of clients/python/tests/facts.py, read by the Go client.
func collectFacts(t *testing.T, c *controltower.Client, report string) string {
	t.Helper()
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case error: // of must
			t.Fatal(fault)
		default:
			panic(fault)
		}
	}()
	ctx := t.Context()
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	status, metrics, openapi := mustSucceed(c.Status(ctx)), mustSucceed(c.Metrics(ctx)), mustSucceed(c.OpenAPI(ctx))
	// The types of the Go client lose nothing of this server's answers.
	for kind, docs := range map[string][2]any{"status": {status.Value, status.Document}, "metrics": {metrics.Value, metrics.Document}} {
		if canon.Digest(docs[0]) != canon.Digest(docs[1]) {
			t.Errorf("the %s document is not all in its type; want canon.Digest(docs[0]) == canon.Digest(docs[1])", kind)
		}
	}
	operations, _ := status.Document.Get("operations")
	limits, _ := operations.(*canon.Object).Get("limits")
	say("limits %d %d", limits.(*canon.Object).Len(), status.Value.Operations.Limits.MaxSSEClients)
	say("paths %d", len(openapi.Value["paths"].(map[string]any)))
	say("streams %d", metrics.Value.Concurrency.EventStreamClients)
	for run, err := range c.Runs(ctx, controltower.RunsQuery{PageSize: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		id := run.Value.RunID
		say("run %s %s %s", id, run.Value.State, mustSucceed(c.Run(ctx, id)).Metadata.ContentDigest)
		var attempts []string
		for _, a := range mustSucceed(c.RunAttempts(ctx, id)).Value.Attempts {
			attempts = append(attempts, "'"+a.AttemptID+"'")
		}
		say("attempts [%s]", strings.Join(attempts, ", "))
		evidence, err := c.RunEvidence(ctx, id)
		if refused, ok := errors.AsType[*controltower.APIError](err); ok {
			say("no evidence %d %s", refused.StatusCode, refused.Code)
		} else {
			say("evidence %s", mustSucceed(evidence, err).Value.EvidenceReportDigest)
		}
	}
	for run, err := range c.Runs(ctx, controltower.RunsQuery{State: "cancelled", ProjectID: "project/demo"}) {
		say("cancelled %s", mustSucceed(run, err).Value.RunID)
	}
	for _, w := range mustSucceed(c.ListWorkUnits(ctx, controltower.WorkUnitQuery{})).Value.Items {
		say("work unit %s %s", w.ID, mustSucceed(c.WorkUnit(ctx, w.ID)).Metadata.ContentDigest)
	}
	say("project %s", mustSucceed(c.Project(ctx, "project/demo")).Metadata.ContentDigest)
	for _, conn := range mustSucceed(c.ListConnections(ctx, controltower.ConnectionQuery{Limit: 200})).Value.Items {
		say("connection %s %s", conn.ID, mustSucceed(c.Connection(ctx, conn.ID)).Metadata.ContentDigest)
	}
	file, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	say("snapshot %s", mustSucceed(c.InspectRunEvidence(ctx, file)).Value.SnapshotDigest)
	events := mustSucceed(c.ListEvents(ctx, controltower.EventQuery{Limit: 2}))
	var ids []string
	for _, e := range events.Value.Items {
		ids = append(ids, "'"+e.EventID+"'")
	}
	say("events [%s] %s", strings.Join(ids, ", "), pythonBool(events.Value.NextCursor != ""))
	var last int64
	var state controltower.StreamState
	for range 4 {
		for e, err := range c.Stream(ctx, controltower.StreamOptions{IdleTimeout: 20 * time.Second, LastEventID: &last, MaxEvents: 1, State: &state}) {
			e := mustSucceed(e, err)
			say("streamed %d %s %s", e.Sequence, e.EventType, e.Envelope.RunID)
		}
		last = state.LastEventID
	}
	for e, err := range c.Stream(ctx, controltower.StreamOptions{IdleTimeout: 20 * time.Second, LastEventID: &last, MaxDuration: 200 * time.Millisecond, State: &state}) {
		t.Errorf("event %d came last: %v", e.Sequence, err)
	}
	say("after them [] %s", state.EndReason)
	for _, call := range []func() error{
		func() error { _, err := c.Run(ctx, "none"); return err },
		func() error { _, err := c.Run(ctx, "foreign/batch-0001"); return err },
		func() error { _, err := c.ListRuns(ctx, controltower.RunQuery{Cursor: "x"}); return err },
		func() error { _, err := c.InspectRunEvidence(ctx, []byte("[]")); return err },
		func() error {
			for _, err := range c.Stream(ctx, controltower.StreamOptions{IdleTimeout: 20 * time.Second, LastEventID: new(int64(999))}) {
				return err
			}
			return nil
		},
	} {
		if refused, ok := errors.AsType[*controltower.APIError](call()); ok {
			say("refused %d %s %s", refused.StatusCode, refused.Code, pythonBool(refused.Retryable))
		}
	}
	return b.String()
}

// mustSucceed returns the result of a call that has to succeed. It panics with the error, which facts turns into a
// failure.
func mustSucceed[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pythonBool writes a truth value as Python does.
func pythonBool(v bool) string {
	if v {
		return "True"
	}
	return "False"
}

// An event that comes while both listen reaches both, and a stream is resumed where the other client left it.
func TestBothClientsHearOfANewRun(t *testing.T) {
	t.Parallel()
	dir, url, stop := sampleTower(t)
	defer stop()
	projection := strings.ReplaceAll(string(readFile(t, dir, "samples/spine/run.json")), "run/demo:0001", "run/live:0001")
	if err := os.WriteFile(filepath.Join(dir, "live.json"), []byte(projection), 0o600); err != nil {
		t.Fatal(err)
	}
	newest := int64(len(listEvents(t, dir, "s.db")))
	var heard controltower.StreamState
	next := func() int64 {
		for e, err := range goClient(t, url).Stream(t.Context(), controltower.StreamOptions{IdleTimeout: 30 * time.Second, LastEventID: &newest, MaxEvents: 1, State: &heard}) {
			if err != nil {
				t.Error(err)
				return 0
			}
			if e.Envelope.RunID != "run/live:0001" {
				t.Errorf(`heard of %s; want "run/live:0001"`, e.Envelope.RunID)
			}
		}
		return heard.LastEventID
	}
	got := make(chan int64)
	go func() { got <- next() }()
	requireSuccess(t, runWords(t, dir, "run create live.json --store s.db --idempotency-key live"))
	if sequence := <-got; sequence != newest+1 || heard.EndReason != controltower.EndClientMaxEvents {
		t.Errorf("event %d, %+v; want sequence == newest + 1 && heard.EndReason == controltower.EndClientMaxEvents", sequence, heard)
	}
	requireSuccess(t, runWords(t, dir, "run cancel run/live:0001 --store s.db"))
	out := findPython(t, url, "-c", fmt.Sprintf(`
import os
from svc_control_tower import ControlTowerClient
client = ControlTowerClient(os.environ["SVC_CONTROL_TOWER_URL"], os.environ["SVC_CONTROL_TOWER_TOKEN"], timeout=20)
with client.stream_events(idle_timeout=30, last_event_id=%d, max_events=1, run_id="run/live:0001") as stream:
    for event in stream:
        print(event.sequence, event.event_type, event.envelope["payload"]["previous_state"])
print(stream.end_reason)
`, newest+1))
	if want := fmt.Sprintf("%d run.cancelled proposed\nclient-max-events\n", newest+2); out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// One byte of the retained report is changed in the file: no client is given it, and the run can still be read.
func TestBothClientsSeeAChangedByte(t *testing.T) {
	t.Parallel()
	dir, url, stop := sampleTower(t)
	defer stop()
	data := readFile(t, dir, "s.db")
	const warning = "Worker success is not verified correctness."
	if bytes.Count(data, []byte(warning)) != 1 {
		t.Fatalf("the store holds the warning %d times; want 1", bytes.Count(data, []byte(warning)))
	}
	changed := bytes.Replace(data, []byte(warning), []byte("worker"+warning[6:]), 1)
	if err := os.WriteFile(filepath.Join(dir, "changed.db"), changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "changed.db"), filepath.Join(dir, "s.db")); err != nil {
		t.Fatal(err)
	}
	c := goClient(t, url)
	_, err := c.RunEvidence(t.Context(), "run/demo:0002")
	if refused, ok := errors.AsType[*controltower.APIError](err); !ok || refused.StatusCode != 500 || refused.Code != "evidence_integrity_error" || refused.Retryable {
		t.Errorf(`%v; want ok && refused.StatusCode == 500 && refused.Code == "evidence_integrity_error" && !refused.Retryable`, err)
	}
	if run, err := c.Run(t.Context(), "run/demo:0002"); err != nil || run.Value.Run.EvidenceReportDigest == nil {
		t.Errorf("%+v, %v; want run.Value.Run.EvidenceReportDigest != nil", run.Value, err)
	}
	out := findPython(t, url, "-c", `
import os
from svc_control_tower import ApiResponseError, ControlTowerClient
client = ControlTowerClient(os.environ["SVC_CONTROL_TOWER_URL"], os.environ["SVC_CONTROL_TOWER_TOKEN"], timeout=20)
try:
    client.get_run_evidence("run/demo:0002")
except ApiResponseError as err:
    print(err.status_code, err.code, err.retryable)
print(client.get_run("run/demo:0002").value["run"]["state"])
`)
	if out != "500 evidence_integrity_error False\nawaiting_human_decision\n" {
		t.Errorf("%q; want \"500 evidence_integrity_error False\\nawaiting_human_decision\\n\"", out)
	}
}
