package alert_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

func startWithServing(t *testing.T, seconds int, env ...string) (*controlplanetest.Plane, *controlplanetest.Serving) {
	t.Helper()
	s := controlplanetest.NewServing(t)
	return controlplanetest.Start(t, slices.Concat(s.Env(), []string{fmt.Sprintf("ALERT_SECONDS=%d", seconds)}, env)...), s
}

func listFiring(p *controlplanetest.Plane, bearer string) map[string]map[string]any {
	p.T.Helper()
	out := map[string]map[string]any{}
	for _, item := range p.Want(200, "GET", "/alerts", bearer, nil).Object(p.T)["items"].([]any) {
		a := item.(map[string]any)
		out[a["id"].(string)] = a
	}
	return out
}

// awaitSeverity waits until the alert fires with the severity; if empty, until it does not fire.
func awaitSeverity(p *controlplanetest.Plane, id, severity string) map[string]any {
	p.T.Helper()
	var a map[string]any
	testenv.Eventually(p.T, 20*time.Second, func() error {
		a = listFiring(p, controlplanetest.Reader)[id]
		if (a == nil) != (severity == "") || a != nil && a["severity"] != severity {
			return fmt.Errorf("%s: %v, want %q", id, a, severity)
		}
		return nil
	})
	return a
}

// eventsOfAlert returns the names and severities of the events of one alert.
func eventsOfAlert(p *controlplanetest.Plane, id string) []string {
	p.T.Helper()
	out := []string{}
	for _, e := range p.Events("") {
		if strings.HasPrefix(e.Name, "alert.") && e.Data["id"] == id {
			out = append(out, strings.TrimPrefix(e.Name, "alert.")+" "+e.Data["severity"].(string))
		}
	}
	return out
}

func wantTold(p *controlplanetest.Plane, id string, want ...string) {
	p.T.Helper()
	if got := eventsOfAlert(p, id); !slices.Equal(got, want) {
		p.T.Errorf("%s: events %q, want %q", id, got, want)
	}
}

func zScore(v float64) *float64 { return &v }

func TestDriftFiresAndIsResolvedOnce(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t, 1)
	const id = "drift:JPCP:Production"
	s.Drift("prediction", "JPCP", "Production", "WARNING", zScore(2.5), "")
	s.Drift("prediction", "JPCP", "Staging", "NO_BASELINE", nil, "")
	s.Drift("prediction", "JPCP", "Canary", "INSUFFICIENT", nil, "")
	first := awaitSeverity(p, id, "warn")
	labels := first["labels"].(map[string]any)
	if first["source"] != "drift" || first["state"] != "firing" || labels["model"] != "JPCP" || labels["alias"] != "Production" || labels["kind"] != "prediction" {
		t.Errorf(`alert %v; want first["source"] == "drift" && first["state"] == "firing" && labels["model"] == "JPCP" && labels["alias"] == "Production" && labels["kind"] == "prediction"`, first)
	}
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
	worse := awaitSeverity(p, id, "critical")
	if worse["since"] != first["since"] {
		t.Errorf(`it fires since %v, then since %v; want worse["since"] == %v`, first["since"], worse["since"], first["since"])
	}
	s.Set(controlplanetest.Broken) // alerts of a source that cannot be read stay
	asked := s.Count()
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := s.Count(); n < asked+3 {
			return fmt.Errorf("asked %d times", n-asked)
		}
		return nil
	})
	if listFiring(p, controlplanetest.Reader)[id] == nil {
		t.Error("it ended although its source cannot be read")
	}
	s.Set(controlplanetest.Well)
	s.Drift("input", "JPCP", "Production", "CORRUPT", nil, "non_finite")
	awaitSeverity(p, id+":input", "critical")
	s.Drift("prediction", "JPCP", "Production", "OK", zScore(0.5), "")
	awaitSeverity(p, id, "")
	if seen := listFiring(p, controlplanetest.Foreign); len(seen) != 0 {
		t.Errorf("another tenant sees %v, want nothing: drift belongs to the model's owner", seen)
	}
	wantTold(p, id, "firing warn", "firing critical", "resolved critical")
	s.Drift("prediction", "JPCP", "Production", "WARNING", zScore(2.5), "") // again
	awaitSeverity(p, id, "warn")
	wantTold(p, id, "firing warn", "firing critical", "resolved critical", "firing warn")
	for _, e := range p.Events("alert.firing") {
		if e.Tenant != "default" || e.Data["title"] == "" {
			t.Errorf(`event %v; want e.Tenant == "default" && e.Data["title"] != ""`, e)
		}
	}
	metrics := string(p.Want(200, "GET", "/metrics", "", nil).Body)
	if !strings.Contains(metrics, `platform_drift_z{alias="Production",model_id="JPCP"} 2.5`) {
		t.Error("platform_drift_z is missing")
	}
}

// A model's mean may stay put while other measures move: alerts follow the worst measure, and name it.
func TestDriftAlertsFollowTheWorstMeasure(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t, 1)
	s.DriftBeside("JPCP", "psi", "WARNING", 0.3)
	awaitSeverity(p, "drift:JPCP:Production", "warn")
	s.DriftBeside("JPCP", "psi", "CRITICAL", 0.3)
	got := awaitSeverity(p, "drift:JPCP:Production", "critical")
	want := map[string]any{"model": "JPCP", "alias": "Production", "kind": "prediction", "status": "OK", "overall": "CRITICAL", "measure": "psi"}
	if labels := got["labels"].(map[string]any); !maps.Equal(labels, want) || !strings.Contains(got["title"].(string), "psi") {
		t.Errorf("got labels %v, title %q; want %v, and psi in the title", labels, got["title"], want)
	}
	metrics := string(p.Want(200, "GET", "/metrics", "", nil).Body)
	for _, want := range []string{`platform_drift_z{alias="Production",model_id="JPCP"} 0.3`, `platform_drift_overall{alias="Production",model_id="JPCP"} 2`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	s.DriftBeside("JPCP", "psi", "OK", 0.3)
	awaitSeverity(p, "drift:JPCP:Production", "")
}

// Drift and latency events of the inference service raise alerts immediately, each once, however often they are
// repeated.
func TestDriftEventsFireAtOnce(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t, 3600)
	testenv.Eventually(t, 20*time.Second, func() error { // the only read of this test
		if s.Count() < 2 {
			return errors.New("not read yet")
		}
		return nil
	})
	nc, err := nats.Connect(p.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := outbox.EnsureStream(t.Context(), js, outbox.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	send := func(id uuid.UUID, at time.Time, data string) {
		t.Helper()
		body, err := json.Marshal(outbox.Envelope{
			SpecVersion: "1.0", ID: id, Source: "/services/inference", Type: "platform.drift.status_changed", Time: at, Tenant: "platform",
			Data: json.RawMessage(data),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), "platform.platform.drift.status_changed", body, jetstream.WithMsgID(uuid.NewString())); err != nil {
			t.Fatal(err)
		}
	}
	event := func(alias, status string) string {
		return fmt.Sprintf(`{"model":"JPCP","alias":%q,"kind":"prediction","status":%q,"previous":"OK","n":100}`, alias, status)
	}
	first := uuid.New()
	now := time.Now()
	send(uuid.New(), now.Add(-time.Hour), event("Canary", "CRITICAL")) // older than the read
	send(uuid.New(), now, `{"model":"../x","alias":"Production","kind":"prediction","status":"CRITICAL"}`)
	send(uuid.New(), now, `[]`)
	send(first, now, event("Production", "CRITICAL"))
	awaitSeverity(p, "drift:JPCP:Production", "critical")
	send(uuid.New(), now.Add(time.Second), event("Production", "OK"))
	awaitSeverity(p, "drift:JPCP:Production", "")
	send(first, now, event("Production", "CRITICAL"))                           // known
	send(uuid.New(), now.Add(time.Millisecond), event("Production", "WARNING")) // late
	send(uuid.New(), now.Add(2*time.Second), event("Staging", "WARNING"))
	awaitSeverity(p, "drift:JPCP:Staging", "warn")
	wantTold(p, "drift:JPCP:Production", "firing critical", "resolved critical")
	wantTold(p, "drift:JPCP:Canary")
}

// Moving an alias past the control plane to a version it would refuse raises an alert, until a valid version holds it
// again.
func TestOutsideMovesFire(t *testing.T) {
	t.Parallel()
	p, _ := startWithServing(t, 1)
	good := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 10.0))
	dummy := p.Tracker.Add("jpcp", controlplanetest.Version{Tags: map[string]string{"artifact_digest": controlplanetest.Digest, "dummy": "true"}})
	loose := p.Tracker.Add("jpcp", controlplanetest.Version{Tags: map[string]string{"framework": "onnx"}})
	move := func(alias, version string) { // so that it is noticed without waiting for the watcher
		p.Tracker.Move("jpcp", alias, version)
		p.Refused(404, "no_previous_version", "POST", "/aliases/JPCP/Canary/rollback", controlplanetest.Operator, map[string]any{"reason": "look"})
	}
	const id = "deploy:JPCP:Production"
	move("Production", good)
	if a := awaitSeverity(p, id, "warn"); a["labels"].(map[string]any)["fault"] != "external_move" {
		t.Errorf("a sound version past the gate: got %v, want the fault external_move", a)
	}
	move("Staging", dummy) // allowed there
	move("Production", dummy)
	if a := awaitSeverity(p, id, "critical"); a["labels"].(map[string]any)["fault"] != "dummy" || a["labels"].(map[string]any)["version"] != dummy {
		t.Errorf(`alert %v; want a["labels"].(map[string]any)["fault"] == "dummy" && a["labels"].(map[string]any)["version"] == dummy`, a)
	}
	p.Tracker.Set(controlplanetest.Down)
	if a := listFiring(p, controlplanetest.Reader); len(a) != 1 {
		t.Errorf("alerts %v; want len(a) == 1", a)
	}
	p.Tracker.Set(controlplanetest.Well)
	move("Production", loose)
	testenv.Eventually(t, 20*time.Second, func() error {
		if a := listFiring(p, controlplanetest.Reader)[id]; a == nil || a["labels"].(map[string]any)["fault"] != "digest_missing" {
			return fmt.Errorf("alert %v", a)
		}
		return nil
	})
	p.Want(200, "POST", "/aliases/JPCP/Production/rollback", controlplanetest.Operator, map[string]any{"version": good, "reason": "no digest"})
	awaitSeverity(p, id, "")
	wantTold(p, id, "firing warn", "firing critical", "resolved critical")
	if got := eventsOfAlert(p, "deploy:JPCP:Staging"); len(got) != 0 {
		t.Errorf("a dummy under Staging: %v; want len(got) == 0", got)
	}
}

// A tenant sees only its alerts; the most severe come first, on every page.
func TestAlertsAreListedBySeverityAndTenant(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t, 1)
	p.Want(200, "PUT", "/budgets/spent", controlplanetest.Operator, map[string]any{"cost_budget": 0})
	p.Want(200, "POST", "/costs", controlplanetest.Operator, map[string]any{
		"model": "JPCP", "version": "1", "scheduler": "slurm", "job_id": "1", "gpu_hours": 1, "cpu_hours": 0, "project": "spent",
	})
	p.Want(http.StatusOK, "POST", "/evals", controlplanetest.Operator, map[string]any{
		"model": "JPCP", "version": "1", "suite": "nightly", "status": "failed",
		"metrics": []any{map[string]any{"metric": "rmse", "value": 9, "passed": false}, map[string]any{"metric": "mae", "value": 1, "passed": true}},
	})
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
	s.Drift("prediction", "JPCP", "Canary", "WARNING", zScore(2), "")
	for id, severity := range map[string]string{
		"budget:spent": "error", "eval:JPCP:nightly:rmse": "warn", "drift:JPCP:Production": "critical", "drift:JPCP:Canary": "warn",
	} {
		awaitSeverity(p, id, severity)
	}
	want := []string{"critical", "error", "warn", "warn"}
	var got, ids []string
	for cursor := ""; ; {
		page := p.Want(200, "GET", "/alerts?limit=1&cursor="+cursor, controlplanetest.Reader, nil).Object(t)
		for _, item := range page["items"].([]any) {
			got = append(got, item.(map[string]any)["severity"].(string))
			ids = append(ids, item.(map[string]any)["id"].(string))
		}
		if page["next_cursor"] == nil {
			break
		}
		cursor = page["next_cursor"].(string)
	}
	slices.Sort(ids)
	if !slices.Equal(got, want) || len(slices.Compact(ids)) != 4 {
		t.Errorf("pages %v of %v; want slices.Equal(got, want) && len(slices.Compact(ids)) == 4", got, ids)
	}
	if foreign := listFiring(p, controlplanetest.Foreign); len(foreign) != 0 {
		t.Errorf("another tenant sees %v, want nothing: drift is of the model's owner", foreign)
	}
	for _, e := range p.Events("alert.firing") {
		if e.Tenant != "default" {
			t.Errorf("got %v, want an event of the owner", e)
		}
	}
	p.Refused(422, "validation_error", "GET", "/alerts?limit=501", controlplanetest.Reader, nil)
	p.Refused(403, "insufficient_scope", "GET", "/alerts", controlplanetest.Approver, nil)
	p.Want(204, "DELETE", "/budgets/spent", controlplanetest.Operator, nil)
	awaitSeverity(p, "budget:spent", "")
	wantTold(p, "budget:spent", "firing error", "resolved error")
}
