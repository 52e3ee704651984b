package controlplane_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// eventTable lists the events of this service: their members, and whether they belong to no tenant.
var eventTable = []struct {
	name, data string
	platform   bool
}{
	{"job.dispatched", "model dataset flow_run_id origin approval_id? commit_sha?", false},
	{"job.started", "model run_id flow_run_id dataset", false},
	{"job.completed", "model dataset flow_run_id run_id? version? metrics? reason?", false},
	{"job.failed", "model dataset flow_run_id run_id? version? metrics? reason?", false},
	{"job.cancelled", "model dataset flow_run_id run_id? version? metrics? reason?", false},
	{"job.crashed", "model dataset flow_run_id run_id? version? metrics? reason?", false},
	{"job.lost", "model dataset flow_run_id run_id? version? metrics? reason?", false},
	{"job.state_changed", "job_id scheduler model state previous", true},
	{"drift.retrain_requested", "model z_score? outcome reason?", true},
	{"drift.retrain_blocked", "model z_score? outcome reason?", true},
	{"alert.firing", "id source severity title labels", false}, // the tenant of the model or budget
	{"alert.resolved", "id source severity title labels", false},
	{"deploy.alias_changed", "model alias version? previous_version? via digest?", true},
	{"deploy.promoted", "model version from to promotion_id? reasons?", true},
	{"deploy.promotion_denied", "model version from to promotion_id? reasons?", true},
	{"deploy.rolled_back", "model version from to promotion_id? reasons?", true},
	{"approval.created", "id kind model commit_sha? requested_by resolved_by? flow_run_id? reason?", false},
	{"approval.approved", "id kind model commit_sha? requested_by resolved_by? flow_run_id? reason?", false},
	{"approval.rejected", "id kind model commit_sha? requested_by resolved_by? flow_run_id? reason?", false},
	{"approval.expired", "id kind model commit_sha? requested_by resolved_by? flow_run_id? reason?", false},
	{"approval.dispatch_failed", "id kind model commit_sha? requested_by resolved_by? flow_run_id? reason?", false},
	{"event.push", "event_id commit_sha branch source", true},
	{"event.freshness_changed", "model status previous", true},
	{"event.config_changed", "scope keys", true},
	{"audit.recorded", "tenant event_id ts source actor action target outcome request_id details", false},
}

// Each event of the table is caused at least once, and read from the broker.
func TestContractEvents(t *testing.T) {
	t.Parallel()
	serving := controlplanetest.NewServing(t)
	p := startForWalk(t, append(serving.Env(), "ALERT_SECONDS=1", "AUTO_RETRAIN_SECONDS=3600", "PREFECT_CB_FAIL_MAX=1000")...)
	p.AwaitTarget()
	causeEvents(p, serving)
	got := readPublishedEvents(t, p)
	for _, e := range eventTable {
		t.Run(e.name, func(t *testing.T) {
			list := got[e.name]
			if len(list) == 0 {
				t.Fatalf("not published; there are %v; want len(list) != 0", slices.Sorted(maps.Keys(got)))
			}
			for _, env := range list {
				ns, name, _ := strings.Cut(e.name, ".")
				want := outbox.Envelope{
					SpecVersion: "1.0", ID: env.ID, Source: "/services/control-plane", Type: "platform." + e.name, Subject: env.Subject, Time: env.Time, DataContentType: "application/json",
					DataSchema: "urn:platform:event:" + e.name + ":1", Tenant: env.Tenant, Actor: env.Actor, RequestID: env.RequestID, Traceparent: env.Traceparent, Data: env.Data,
				}
				if controlplanetest.MustJSON(env) != controlplanetest.MustJSON(want) || env.Actor == "" || env.Namespace() != ns || env.Name() != name {
					t.Errorf(`envelope %s; want controlplanetest.MustJSON(env) == controlplanetest.MustJSON(want) && env.Actor != "" && env.Namespace() == ns && env.Name() == name`, controlplanetest.MustJSON(env))
				}
				if (env.Tenant == "platform") != e.platform && e.name != "audit.recorded" {
					t.Errorf(`tenant %q; want ((env.Tenant == "platform") == e.platform || e.name == "audit.recorded")`, env.Tenant)
				}
				var data doc
				if err := env.Decode(&data); err != nil {
					t.Fatal(err)
				}
				known := expectContractMembers(t, data, e.data)
				for name := range known {
					if !slices.Contains(strings.Fields(strings.ReplaceAll(e.data, "?", "")), name) {
						t.Errorf(`member %s is not in the table; want slices.Contains(strings.Fields(strings.ReplaceAll(e.data, "?", "")), name)`, name)
					}
				}
			}
		})
	}
	for name := range got {
		if !slices.ContainsFunc(eventTable, func(e struct {
			name, data string
			platform   bool
		}) bool {
			return e.name == name
		}) {
			t.Errorf("%s is published and not in the table; want slices.ContainsFunc(eventTable, func(e struct { name, data string platform bool }) bool { return e.name == name })", name)
		}
	}
	t.Run("request_id_and_actor", func(t *testing.T) {
		for _, env := range got["event.config_changed"] {
			if env.Actor != "walker" || env.RequestID != "req-events" {
				t.Errorf(`actor %q, request %q; want env.Actor == "walker" && env.RequestID == "req-events"`, env.Actor, env.RequestID)
			}
		}
	})
}

// causeEvents performs the action behind each event.
func causeEvents(p *controlplanetest.Plane, serving *controlplanetest.Serving) {
	p.T.Helper()
	z := 5.0
	serving.Drift("prediction", "MACK", "Production", "CRITICAL", &z, "")
	retrain := func(model string) string {
		return p.Want(200, "POST", "/retrain", all, retrainOf(model)).Object(p.T)["flow_run_id"].(string)
	}
	// Notices and decisions, with one dispatch that fails.
	p.Notice("JPCP", "a")
	p.Notice("JPCP", "c0ffee1")
	p.Orchestrator.Set(controlplanetest.Down)
	p.Refused(502, "orchestrator_unreachable", "POST", "/approve/JPCP", all, nil)
	p.Orchestrator.Set(controlplanetest.Well)
	approved := p.Want(200, "POST", "/approve/JPCP", all, doc{"reason": "why not"}).Object(p.T)["flow_run_id"].(string)
	p.Notice("MCBound", "a")
	p.Want(200, "POST", "/reject/MCBound", all, doc{"reason": "no"})
	// Runs to each end.
	p.Report("JPCP", p.Tracker.Add("jpcp", controlplanetest.Version{Metrics: doc{"rmse": 10.0}, RunTags: map[string]string{"prefect_flow_run_id": approved, "modelrepo_commit": "c0ffee1"}}))
	p.Orchestrator.State(approved, "COMPLETED", "")
	for state, id := range map[string]string{"RUNNING": retrain("MACK"), "FAILED": retrain("MACK"), "CANCELLED": retrain("MACK"), "CRASHED": retrain("MACK")} {
		p.Orchestrator.State(id, state, "because")
	}
	lost := retrain("MCBound")
	p.Orchestrator.Forget(lost)
	p.SQL("update control_plane.runs set unknown_since = now() - interval '11 minutes' where flow_run_id = $1", lost)
	// Promotions: the ladder's, one denied, one taken back.
	p.Want(200, "POST", "/promotions/"+p.PendingPromotion("JPCP")+"/approve", all, nil)
	second := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 9.0))
	p.Refused(409, "promotion_denied", "POST", "/promotions", all, doc{"model": "JPCP", "version": second})
	p.Tracker.Move("jpcp", "Staging", second)
	p.Want(200, "POST", "/promotions", all, doc{"model": "JPCP", "version": second, "approve": true})
	p.Want(200, "POST", "/aliases/JPCP/Production/rollback", all, doc{"reason": "worse"})
	// Pushes, settings, jobs.
	deliverPush(p, pushPayload(commitSHA(1)))
	p.Want(200, "PUT", "/modelrepo/config", all, doc{"stale_scope": "touched"}, "X-Request-ID", "req-events")
	p.Want(200, "PUT", "/jobs/slurm/1", all, doc{"model": "JPCP", "state": "RUNNING"})
	// Drift.
	p.Want(200, "PUT", "/auto-retrain/MACK", all, doc{"enabled": true})
	p.Want(200, "POST", "/drift/trigger", all, nil)
	p.Want(200, "PUT", "/auto-retrain/MCBound", all, doc{"enabled": true})
	serving.Drift("prediction", "MCBOUND", "Production", "CORRUPT", nil, "non_finite")
	p.Want(200, "POST", "/drift/trigger", all, nil)
	testenv.Eventually(p.T, 20*time.Second, func() error {
		if len(p.Events("alert.firing")) == 0 {
			return errors.New("nothing fires")
		}
		serving.Clear("prediction")
		return nil
	})
	testenv.Eventually(p.T, 30*time.Second, func() error {
		have := map[string]bool{}
		for _, e := range p.Events("") {
			have[e.Name] = true
		}
		for _, e := range eventTable {
			if !have[e.name] {
				return fmt.Errorf("no %s", e.name)
			}
		}
		return nil
	})
}

// readPublishedEvents waits until the outbox is empty and reads the stream, by name.
func readPublishedEvents(t *testing.T, p *controlplanetest.Plane) map[string][]outbox.Envelope {
	t.Helper()
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := p.Count("select count(*) from control_plane.outbox where published_at is null"); n > 0 {
			return fmt.Errorf("%d events wait", n)
		}
		return nil
	})
	total := p.Count("select count(*) from control_plane.outbox")
	js := connectBroker(t, p)
	c, err := js.OrderedConsumer(t.Context(), outbox.StreamName, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]outbox.Envelope{}
	for range total {
		msg, err := c.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		env, err := outbox.ParseEnvelope(msg.Data())
		if err != nil {
			t.Fatal(err)
		}
		if want := "platform." + env.Tenant + "." + env.Namespace() + "." + env.Name(); msg.Subject() != want {
			t.Errorf("subject %s, want %s", msg.Subject(), want)
		}
		if !json.Valid(msg.Data()) || len(msg.Data()) > 1<<20 {
			t.Errorf("%d bytes; want json.Valid(msg.Data()) && len(msg.Data()) <= 1 << 20", len(msg.Data()))
		}
		name := env.Namespace() + "." + env.Name()
		out[name] = append(out[name], env)
	}
	return out
}

func connectBroker(t *testing.T, p *controlplanetest.Plane) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(p.NATS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
