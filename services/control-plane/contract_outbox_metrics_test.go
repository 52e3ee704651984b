package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// The table outbox, the outcomes of publishing, and the stream. TestRow16 of e2e/faults shows that nothing is lost when
// broker or relay die.
func TestContractOutbox(t *testing.T) {
	t.Parallel()
	p := startForWalk(t)
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	row("columns", func(t *testing.T, p *controlplanetest.Plane) {
		for column, is := range map[string]string{
			"id": "uuid", "seq": "bigint", "tenant": "text", "namespace": "text", "name": "text", "subject_id": "text", "payload": "jsonb", "actor": "text",
			"request_id": "text", "traceparent": "text", "created_at": "timestamp with time zone", "next_attempt_at": "timestamp with time zone", "refusals": "integer",
			"claimed_by": "uuid", "claimed_until": "timestamp with time zone", "published_at": "timestamp with time zone", "stream_seq": "bigint",
			"poison_at": "timestamp with time zone", "last_error": "text",
		} {
			if p.Count(`select count(*) from information_schema.columns where table_schema = 'control_plane' and table_name = 'outbox' and column_name = '`+column+`' and data_type = '`+is+`'`) != 1 {
				t.Errorf("no column %s %s", column, is)
			}
		}
	})
	row("ack_→_published_at_stream_seq", func(t *testing.T, p *controlplanetest.Plane) {
		p.Want(200, "POST", "/api/changes", all, doc{"model_ids": []string{"JPCP"}, "commit_sha": "a"}, "X-Request-ID", "req-7",
			"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		testenv.Eventually(t, 20*time.Second, func() error {
			if n := p.Count(`select count(*) from control_plane.outbox where name = 'created' and published_at is not null and stream_seq > 0 and refusals = 0 and last_error is null
				and request_id = 'req-7' and traceparent like '00-4bf92f3577b34da6a3ce929d0e0e4736-%' and actor = 'walker' and tenant = 'default'`); n != 1 {
				return fmt.Errorf("%d rows", n)
			}
			return nil
		})
	})
	row("state_event_and_fact_are_one_transaction", func(t *testing.T, p *controlplanetest.Plane) {
		if n := p.Count(`select count(distinct xmin::text) from control_plane.approvals`); n != 1 {
			t.Fatalf("%d transactions; want 1", n)
		}
		// If the event cannot be stored, neither is the record.
		p.SQL(`alter table control_plane.outbox add constraint no_more check (namespace <> 'approval') not valid`)
		r := p.Call("POST", "/api/changes", all, doc{"model_ids": []string{"MACK"}, "commit_sha": "a"})
		p.SQL(`alter table control_plane.outbox drop constraint no_more`)
		if r.Status < 500 || p.Count(`select count(*) from control_plane.approvals where model_id = 'MACK'`) != 0 {
			t.Errorf("%d %s; want r.Status >= 500 && p.Count(`select count(*) from control_plane.approvals where model_id = 'MACK'`) == 0", r.Status, r.Body)
		}
	})
	row("refused_→_refusals_and_poison_later_rows_go_on", func(t *testing.T, p *controlplanetest.Plane) {
		id := uuid.Must(uuid.NewV7())
		p.SQL(`insert into control_plane.outbox (id, tenant, namespace, name, payload, actor) values ($1, 'default', 'job', 'started', jsonb_build_object('text', repeat('x', $2)), 'alice')`, id, outbox.MaxMessage)
		after := p.Notice("MCBound", "later")
		testenv.Eventually(t, 20*time.Second, func() error {
			if n := p.Count(`select count(*) from control_plane.outbox where payload->>'id' = '` + after + `' and published_at is not null`); n != 1 {
				return fmt.Errorf("the later row waits")
			}
			return nil
		})
		last := 0
		testenv.Eventually(t, 30*time.Second, func() error {
			refusals := p.Count(`select refusals from control_plane.outbox where id = '` + id.String() + `'`)
			if refusals < last || refusals > 5 {
				t.Errorf("%d refusals after %d; want refusals >= last && refusals <= 5", refusals, last)
			}
			last = refusals
			if p.Count(`select count(*) from control_plane.outbox where id = '`+id.String()+`' and poison_at is not null and refusals = 5 and last_error is not null and published_at is null`) == 1 {
				return nil
			}
			p.SQL("update control_plane.outbox set next_attempt_at = now() where id = $1 and poison_at is null", id) // 2, 4, 8 and 16 s: TestRow17
			return fmt.Errorf("%d refusals", refusals)
		})
	})
	row("stream", func(t *testing.T, p *controlplanetest.Plane) {
		s, err := connectBroker(t, p).Stream(t.Context(), outbox.StreamName)
		if err != nil {
			t.Fatal(err)
		}
		c := s.CachedInfo().Config
		if strings.Join(c.Subjects, " ") != "platform.>" || c.Storage != jetstream.FileStorage || c.Retention != jetstream.LimitsPolicy || c.MaxAge != 7*24*time.Hour ||
			c.MaxBytes != 1<<30 || c.MaxMsgSize != 1<<20 || c.Duplicates != 10*time.Minute || c.Replicas != 1 {
			t.Errorf(`%+v; want strings.Join(c.Subjects, " ") == "platform.>" && c.Storage == jetstream.FileStorage && c.Retention == jetstream.LimitsPolicy && c.MaxAge == 7 * 24 * time.Hour && …`, c)
		}
	})
	row("consumers_audit_and_drift", func(t *testing.T, p *controlplanetest.Plane) {
		s, err := connectBroker(t, p).Stream(t.Context(), outbox.StreamName)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for c := range s.ListConsumers(t.Context()).Info() {
			for _, subject := range append(c.Config.FilterSubjects, c.Config.FilterSubject) {
				for _, ns := range []string{"audit", "drift"} {
					if strings.Contains(subject, "."+ns+".") {
						found[ns] = c.Config.Durable != "" && c.Config.AckPolicy == jetstream.AckExplicitPolicy
					}
				}
			}
		}
		if !found["audit"] || !found["drift"] {
			t.Errorf(`durable consumers with explicit acks: %v; want found["audit"] && found["drift"]`, found)
		}
	})
	row("platform_facts_are_every_tenants", func(t *testing.T, p *controlplanetest.Plane) {
		deliverPush(p, pushPayload(commitSHA(1)))
		if e := p.Events("event.push"); len(e) != 1 || e[0].Tenant != "platform" {
			t.Error(e, `want len(e) == 1 && e[0].Tenant == "platform"`)
		}
		for bearer, want := range map[string]int{all: 1, controlplanetest.Foreign: 0} { // only the owners of the models see it
			if list := p.Want(200, "GET", "/modelrepo/events", bearer, nil).List(t); len(list) != want {
				t.Errorf("got %v, want %d", list, want)
			}
		}
	})
	t.Run("no_connection_→_claim_released_refusals_unchanged", func(t *testing.T) {
		p := controlplanetest.Start(t, "NATS_URL=nats://"+unusedAddress(t))
		p.Notice("JPCP", "a")
		testenv.Eventually(t, 20*time.Second, func() error {
			if r, _ := runtimeOf(p); r["event_relay_error"] == nil {
				return fmt.Errorf("no error told")
			}
			return nil
		})
		if n := p.Count(`select count(*) from control_plane.outbox where refusals > 0 or published_at is not null or poison_at is not null`); n != 0 {
			t.Errorf("%d rows are not as they were; want 0", n)
		}
		if n := p.Count(`select count(*) from control_plane.outbox where claimed_until is null or claimed_until <= now() + interval '30 seconds'`); n != p.Count(`select count(*) from control_plane.outbox`) {
			t.Errorf("only %d rows can be claimed within 30 s; want n == p.Count(`select count(*) from control_plane.outbox`)", n)
		}
	})
}

// The metrics, their labels and their types.
func TestContractMetrics(t *testing.T) {
	t.Parallel()
	serving := controlplanetest.NewServing(t)
	z := 4.5
	serving.Drift("prediction", "JPCP", "Production", "CRITICAL", &z, "")
	p := startForWalk(t, append(serving.Env(), "ALERT_SECONDS=1")...)
	p.AwaitTarget()
	empty := string(p.Want(200, "GET", "/metrics", "", nil).Body)
	for range 2 { // the first is superseded
		p.Want(200, "POST", "/api/changes", all, doc{"model_ids": []string{"JPCP", "Elsewhere"}, "commit_sha": uuid.NewString()})
	}
	run := p.Want(200, "POST", "/approve/JPCP", all, nil).Object(t)["flow_run_id"].(string)
	p.Orchestrator.State(run, "COMPLETED", "")
	p.Refused(409, "promotion_denied", "POST", "/promotions", all, doc{"model": "JPCP"})
	deliverPush(p, pushPayload(commitSHA(1)))
	p.Refused(400, "unknown_model", "POST", "/retrain", all, retrainOf("NOPE"))
	for _, c := range []struct{ name, kind, line string }{
		{"platform_approvals_pending", "gauge", "platform_approvals_pending 1"},
		{"platform_approval_events_total", "counter", `platform_approval_events_total{action="approved",model_id="JPCP"} 1`},
		{"platform_approval_age_oldest_seconds", "gauge", "platform_approval_age_oldest_seconds "},
		{"platform_orchestrator_breaker_opens_total", "counter", "platform_orchestrator_breaker_opens_total 0"},
		{"platform_retrain_requests_total", "counter", `platform_retrain_requests_total{dataset="JobEmbeddings",model_id="JPCP",outcome="ok"} 1`},
		{"platform_retrain_dispatch_seconds", "histogram", "platform_retrain_dispatch_seconds_count 1"},
		{"platform_runs_total", "counter", `platform_runs_total{model_id="JPCP",state="COMPLETED"} 1`},
		{"platform_approvals_expired_total", "counter", "platform_approvals_expired_total 2"},
		{"platform_promotions_total", "counter", `platform_promotions_total{outcome="denied"} 1`},
		{"platform_webhook_total", "counter", `platform_webhook_total{forge="forge-a",outcome="accepted"} 1`},
		{"platform_outbox_rows", "gauge", `platform_outbox_rows{state="published"}`},
		{"platform_outbox_oldest_pending_seconds", "gauge", "platform_outbox_oldest_pending_seconds "},
		{"platform_audit_lag_events", "gauge", "platform_audit_lag_events "},
		{"platform_audit_verified", "gauge", "platform_audit_verified 1"},
		{"platform_drift_z", "gauge", `platform_drift_z{alias="Production",model_id="JPCP"} 4.5`},
		{"platform_scrape_errors_total", "counter", "platform_scrape_errors_total 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			testenv.Eventually(t, 20*time.Second, func() error {
				text := string(p.Want(200, "GET", "/metrics", "", nil).Body)
				if !strings.Contains(text, "# TYPE "+c.name+" "+c.kind+"\n") || !strings.Contains(text, "\n"+c.line) {
					return fmt.Errorf("no %s %s in:\n%s", c.kind, c.line, linesWithPrefix(text, c.name, "# TYPE "+c.name))
				}
				return nil
			})
		})
	}
	t.Run("age_0_when_none", func(t *testing.T) {
		if !strings.Contains(empty, "platform_approval_age_oldest_seconds 0\n") || !strings.Contains(empty, "platform_approvals_pending 0\n") {
			t.Error(linesWithPrefix(empty, "platform_approval"), "want strings.Contains(empty, \"platform_approval_age_oldest_seconds 0\\n\") && strings.Contains(empty, \"platform_approvals_pending 0\\n\")")
		}
	})
	t.Run("unknown_ids_are_other", func(t *testing.T) {
		text := string(p.Want(200, "GET", "/metrics", "", nil).Body)
		if !strings.Contains(text, `platform_approval_events_total{action="created",model_id="other"} 2`) || strings.Contains(text, "ELSEWHERE") || strings.Contains(text, "NOPE") {
			t.Error(linesWithPrefix(text, "platform_approval_events_total"), "want strings.Contains(text, `platform_approval_events_total{action=\"created\",model_id=\"other\"} 2`) && !strings.Contains(text, \"ELSEWHERE\") && !strings.Contains(text, \"NOPE\")")
		}
	})
}
