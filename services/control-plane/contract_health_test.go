package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/testenv"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// unusedAddress returns an address without a listener.
func unusedAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// runtimeOf returns the block runtime and its blockers.
func runtimeOf(p *controlplanetest.Plane) (doc, []string) {
	p.T.Helper()
	r := p.Health()["runtime"].(doc)
	blockers := []string{}
	for _, b := range r["horizontal_scaling_blockers"].([]any) {
		blockers = append(blockers, b.(string))
	}
	if r["horizontal_scaling_safe"] != (len(blockers) == 0) {
		p.T.Errorf(`safe %v with blockers %v; want r["horizontal_scaling_safe"] == (len(blockers) == 0)`, r["horizontal_scaling_safe"], blockers)
	}
	return r, blockers
}

// awaitRuntime waits until the block runtime has these members and exactly these blockers.
func awaitRuntime(p *controlplanetest.Plane, want doc, blockers ...string) {
	p.T.Helper()
	testenv.Eventually(p.T, 20*time.Second, func() error {
		r, got := runtimeOf(p)
		for name, v := range want {
			if r[name] != v {
				return fmt.Errorf("runtime.%s is %v, want %v", name, r[name], v)
			}
		}
		if !slices.Equal(got, blockers) {
			return fmt.Errorf("blockers %v, want %v", got, blockers)
		}
		return nil
	})
}

// GET /health: a row is a member of the answer, or a
// value that it can have.
func TestContractHealth(t *testing.T) {
	t.Parallel()
	p := startForWalk(t, "MODELREPO_POLL_SECONDS=0")
	p.AwaitTarget()
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	is := func(name string, want any) {
		row(name, func(t *testing.T, p *controlplanetest.Plane) {
			testenv.Eventually(t, 20*time.Second, func() error {
				var v any = p.Health()
				for part := range strings.SplitSeq(name, ".") {
					d, ok := v.(doc)
					if v, ok = d[part], ok && slices.Contains(keysOf(d), part); !ok {
						return fmt.Errorf("no %s; want ok", name)
					}
				}
				if fmt.Sprint(v) != fmt.Sprint(want) {
					return fmt.Errorf("%v, want %v", v, want)
				}
				return nil
			})
		})
	}
	is("status", "ok")
	is("ready", true)
	is("prefect_api_url", p.Orchestrator.URL)
	is("auth_configured", true)
	is("models", "map[JPCP:[JobEmbeddings] MACK:[JobEmbeddings] MCBOUND:[JobEmbeddings] RUNTIMECLASS:[IpscJobs] RUNTIMEREGRESSOR:[IpscJobs]]")
	is("pending_approvals", 0)
	is("deployment", "training_flow/platform-dispatch")
	is("dispatch.state", "ok")
	is("circuit_breaker.state", "closed")
	for _, check := range []string{"db", "registry", "token", "coordinator", "event_publisher"} {
		is("startup_checks."+check, "ok")
	}
	is("poller.enabled", false)
	is("poller.last_ok_seconds_ago", nil)
	is("poller.stale", false)
	row("poller.leader", func(t *testing.T, p *controlplanetest.Plane) {
		expectContractMembers(t, p.Health()["poller"].(doc), "leader")
	})
	is("runtime.state_backend", "postgres")
	is("runtime.configured_coordinator", "postgres")
	is("runtime.active_coordination", "postgres")
	is("runtime.configured_event_publisher", "nats")
	is("runtime.event_relay_enabled", true)
	is("runtime.horizontal_scaling_safe", false)
	is("runtime.horizontal_scaling_blockers", "[modelrepo_dir_not_shared]")
	row("runtime.outbox", func(t *testing.T, p *controlplanetest.Plane) {
		p.SQL(`insert into control_plane.outbox (id, tenant, namespace, name, payload, actor, refusals, poison_at, last_error)
			values (gen_random_uuid(), 'default', 'job', 'started', '{}', 'alice', 5, now(), 'too large')`)
		testenv.Eventually(t, 20*time.Second, func() error {
			box := expectContractMembers(t, p.Health()["runtime"].(doc)["outbox"].(doc), "pending published poison oldest_pending_seconds")
			if box["pending"] != 0.0 || box["poison"] != 1.0 || box["published"] == 0.0 || box["oldest_pending_seconds"] != 0.0 { // pending excludes poison
				return fmt.Errorf("%v", box)
			}
			return nil
		})
	})
	for _, state := range []string{"missing", "incompatible", "unreachable"} {
		row("dispatch.state_"+state, func(t *testing.T, p *controlplanetest.Plane) {
			o := p.Orchestrator
			o.Mu.Lock()
			had := o.Deployment
			switch state {
			case "missing":
				o.Deployment = nil
			case "incompatible":
				o.Lacks = "is_dummy"
			}
			o.Mu.Unlock()
			defer func() {
				o.Mu.Lock()
				o.Deployment, o.Lacks = had, ""
				o.Mu.Unlock()
				o.Set(controlplanetest.Well)
			}()
			if state == "unreachable" { // as seen by a starting replica
				q := *p
				o.Set(controlplanetest.Down)
				defer q.Serve()()
				p = &q
			} else if r := p.Call("POST", "/retrain", all, retrainOf("JPCP")); r.Code() != "dispatch_target_missing" {
				t.Errorf(`%d %s; want r.Code() == "dispatch_target_missing"`, r.Status, r.Body)
			}
			testenv.Eventually(t, 15*time.Second, func() error {
				if d := p.Health()["dispatch"].(doc); d["state"] != state {
					return fmt.Errorf("%v", d)
				}
				return nil
			})
			p.Want(200, "GET", "/readyz", "", nil) // decisions must still be possible
			if s := p.Health()["status"]; s != "degraded" {
				t.Errorf(`status %v; want "degraded"`, s)
			}
		})
	}
	row("unreadable_approvals", func(t *testing.T, p *controlplanetest.Plane) {
		p.Notice("JPCP", "a")
		if m := string(p.Want(200, "GET", "/metrics", "", nil).Body); !strings.Contains(m, "platform_approvals_pending 1\n") {
			t.Error("one record is pending")
		}
		p.SQL("alter table control_plane.approvals rename to approvals_away")
		defer p.SQL("alter table control_plane.approvals_away rename to approvals")
		testenv.Eventually(t, 20*time.Second, func() error {
			if h := p.Health(); h["pending_approvals"] != nil || h["ready"] != false {
				return fmt.Errorf("got pending_approvals %v, ready %v; want null, false", h["pending_approvals"], h["ready"])
			}
			return nil
		})
		if d := p.Want(503, "GET", "/readyz", "", nil).Object(t); d["status"] != "not_ready" {
			t.Error(d, `want d["status"] == "not_ready"`)
		}
		p.Want(200, "GET", "/livez", "", nil)
		m := string(p.Want(200, "GET", "/metrics", "", nil).Body)
		if !strings.Contains(m, "platform_approvals_pending 1\n") || strings.Contains(m, "platform_scrape_errors_total 0\n") {
			t.Errorf("not the last value, or not counted: %s; want strings.Contains(m, \"platform_approvals_pending 1\\n\") && !strings.Contains(m, \"platform_scrape_errors_total 0\\n\")", linesWithPrefix(m, "platform_approvals_pending", "platform_scrape_errors_total"))
		}
	})
}

func keysOf(d doc) []string {
	out := []string{}
	for k := range d {
		out = append(out, k)
	}
	return out
}

// linesWithPrefix returns the lines of a text with that prefix.
func linesWithPrefix(text string, prefixes ...string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				out = append(out, line)
			}
		}
	}
	return strings.Join(out, "\n")
}

// The values that each need a specially configured control plane.
func TestContractHealthOfSpecialSetups(t *testing.T) {
	t.Parallel()
	apart := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t) })
	}
	apart("runtime.horizontal_scaling_safe", func(t *testing.T) {
		p := startForWalk(t, "MODELREPO_DIR=")
		awaitRuntime(p, doc{"horizontal_scaling_safe": true})
	})
	apart("runtime.blocker_state_backend_embedded", func(t *testing.T) {
		p := controlplanetest.Neighbours(t, "MODELREPO_DIR=")
		p.Serve(func(c *controlplane.Config) { c.StateEmbedded, c.BrokerEmbedded = true, true })
		awaitRuntime(p, doc{"state_backend": "postgres-embedded", "configured_event_publisher": "nats-embedded"}, "state_backend_embedded", "event_publisher_process_local")
	})
	apart("runtime.blocker_coordinator_unreachable", func(t *testing.T) {
		p := controlplanetest.Start(t, "MODELREPO_DIR=", "REDIS_URL=redis://"+unusedAddress(t))
		awaitRuntime(p, doc{"configured_coordinator": "redis", "active_coordination": "none"}, "coordinator_unreachable")
	})
	apart("runtime.blocker_event_publisher_process_local", func(t *testing.T) {
		p := controlplanetest.Start(t, "MODELREPO_DIR=", "EVENT_PUBLISHER=log")
		awaitRuntime(p, doc{"configured_event_publisher": "log"}, "event_publisher_process_local")
	})
	apart("runtime.blocker_event_relay_disabled", func(t *testing.T) {
		p := controlplanetest.Start(t, "MODELREPO_DIR=", "EVENT_RELAY_ENABLED=false")
		awaitRuntime(p, doc{"event_relay_enabled": false}, "event_relay_disabled")
	})
	apart("startup_checks.event_publisher_warns_of_a_dead_broker", func(t *testing.T) {
		p := controlplanetest.Start(t, "NATS_URL=nats://"+unusedAddress(t))
		p.Notice("JPCP", "a")
		testenv.Eventually(t, 20*time.Second, func() error {
			h := p.Health()
			r := h["runtime"].(doc)
			if s := h["startup_checks"].(doc)["event_publisher"].(string); !strings.HasPrefix(s, "warn: ") || h["ready"] != true || h["status"] != "degraded" || r["event_relay_error"] == nil {
				return fmt.Errorf("%s, ready %v, %v, %v", s, h["ready"], h["status"], r)
			}
			if box := r["outbox"].(doc); box["pending"] == 0.0 || box["published"] != 0.0 || box["poison"] != 0.0 {
				return fmt.Errorf("%v", box)
			}
			return nil
		})
		p.Want(200, "GET", "/readyz", "", nil)
	})
	apart("startup_checks.token_fails", func(t *testing.T) {
		p := startWithBrokenConfig(t, "CONTROL_PLANE_CREDENTIALS_JSON={")
		if s := p.Health()["startup_checks"].(doc)["token"].(string); !strings.HasPrefix(s, "fail: ") {
			t.Error(s, `want strings.HasPrefix(s, "fail: ")`)
		}
		if d := p.Want(503, "GET", "/readyz", "", nil).Object(t); d["status"] != "not_ready" {
			t.Error(d, `want d["status"] == "not_ready"`)
		}
	})
	apart("startup_checks.registry_warns", func(t *testing.T) {
		p := controlplanetest.Start(t, "MODELREPO_DIR="+t.TempDir()+"/none")
		if h := p.Health(); !strings.HasPrefix(h["startup_checks"].(doc)["registry"].(string), "warn: ") || h["ready"] != true {
			t.Error(h["startup_checks"], `want strings.HasPrefix(h["startup_checks"].(doc)["registry"].(string), "warn: ") && h["ready"] == true`)
		}
	})
	apart("status_starting", func(t *testing.T) {
		p := controlplanetest.Neighbours(t)
		conn, err := pgx.Connect(t.Context(), p.Database)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "lock table control_plane.policies in exclusive mode"); err != nil { // the start writes to it
			t.Fatal(err)
		}
		p.NoWait = true
		p.Serve()
		if h := p.Health(); h["status"] != "starting" || h["ready"] != false {
			t.Errorf(`%v, ready %v; want h["status"] == "starting" && h["ready"] == false`, h["status"], h["ready"])
		}
		if d := p.Want(503, "GET", "/readyz", "", nil).Object(t); d["status"] != "starting" && d["status"] != "not_ready" {
			t.Error(d, `want (d["status"] == "starting" || d["status"] == "not_ready")`)
		}
		p.Want(200, "GET", "/ready", "", nil)
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Ready()
		if h := p.Health(); h["status"] == "starting" {
			t.Error("still starting")
		}
	})
	apart("circuit_breaker.state_open_half_open", func(t *testing.T) {
		p := startForWalk(t, "PREFECT_CB_FAIL_MAX=1", "PREFECT_CB_RESET_TIMEOUT=3")
		p.AwaitTarget()
		p.Orchestrator.Set(controlplanetest.Down)
		awaitBreaker := func(want string, before func()) {
			t.Helper()
			testenv.Eventually(t, 20*time.Second, func() error {
				before()
				if s := p.Health()["circuit_breaker"].(doc)["state"]; s != want {
					return fmt.Errorf("circuit breaker: got %v, want %s", s, want)
				}
				return nil
			})
		}
		awaitBreaker("open", func() { // requested again each time: on a busy machine it is half open before it is read
			p.Refused(502, "orchestrator_unreachable", "POST", "/retrain", all, retrainOf("JPCP"))
		})
		awaitBreaker("half_open", func() {})
		p.Want(200, "GET", "/readyz", "", nil)
		p.Orchestrator.Set(controlplanetest.Well)
		testenv.Eventually(t, 15*time.Second, func() error {
			if r := p.Call("POST", "/retrain", all, retrainOf("JPCP")); r.Status != 200 {
				return fmt.Errorf("%d %s", r.Status, r.Body)
			}
			return nil
		})
		awaitBreaker("closed", func() {})
	})
}
