package assistant_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/caller"
)

// TestEndpoints walks "Endpoints", "Authentication", "Errors", "Limits" and "Versioning".
func TestEndpoints(t *testing.T) {
	t.Parallel()
	b := startBench(t, "AUTH_BACKEND=hmac", "DEMO_KEY_HMAC_SECRET=0123456789abcdef0123456789abcdef", "ASSISTANT_HIDDEN_NAMESPACES=crm")
	t.Run("replay", func(t *testing.T) {
		b := onSubtest(t, b)
		one, two := b.say(operator, "r-1", "what is wrong in shop?"), b.say(operator, "r-1", "kubectl get pods -n shop")
		want := append(bytes.TrimSuffix(one.raw, []byte("data: [DONE]\n\n")), two.raw...)
		if a := b.want(200, "GET", "/v1/events/replay/r-1", operator, ""); !bytes.Equal(a.body, want) {
			t.Error("the replay differs from what was streamed")
		}
		b.refused(404, "session_not_found", "GET", "/v1/events/replay/unknown", operator, "")
	})
	t.Run("namespaces", func(t *testing.T) {
		b := onSubtest(t, b)
		list, _ := b.want(200, "GET", "/v1/namespaces", readonly, "").document(t)["namespaces"].([]any)
		var names []string
		for _, ns := range list {
			names = append(names, ns.(string))
		}
		if !slices.IsSorted(names) || !slices.Contains(names, "shop") || !slices.Contains(names, "kube-system") || slices.Contains(names, "crm") {
			t.Errorf(`%v; want slices.IsSorted(names) && slices.Contains(names, "shop") && slices.Contains(names, "kube-system") && !slices.Contains(names, "crm")`, names)
		}
	})
	t.Run("demo-keys", func(t *testing.T) {
		b := onSubtest(t, b)
		doc := b.want(200, "POST", "/v1/auth/demo-keys", admin, `{"email":"ann@example.org","ttl_hours":1}`).document(t)
		key, _ := doc["api_key"].(string)
		left := int64(doc["expires_at"].(float64)) - time.Now().Unix()
		if !strings.HasPrefix(key, "ki-ro-") || doc["expires_in_seconds"] != 3600.0 || left < 3500 || left > 3600 {
			t.Errorf(`%v; want strings.HasPrefix(key, "ki-ro-") && doc["expires_in_seconds"] == 3600.0 && left >= 3500 && left <= 3600`, doc)
		}
		s := b.say(key, "demo-1", scaleWeb)
		if len(s.prompts()) > 0 {
			t.Error("a demo key was asked to approve")
		}
		b.refused(403, "forbidden", "POST", "/v1/auth/demo-keys", key, `{"email":"a@b.c"}`)
		b.refused(401, "unauthenticated", "GET", "/v1/models", key+"0", "")
		if n := b.count("select count(*) from outbox where name = 'demo_key_minted'"); n != 1 {
			t.Errorf("%d events; want 1", n)
		}
	})
	t.Run("healthz", func(t *testing.T) {
		b := onSubtest(t, b)
		for _, path := range []string{"/healthz", "/v1/healthz"} {
			if doc := b.want(200, "GET", path, "", "").document(t); doc["status"] != "ok" || doc["version"] == "" {
				t.Errorf(`%v; want doc["status"] == "ok" && doc["version"] != ""`, doc)
			}
			// It has a separate sample cluster, as another replica would.
			doc := b.want(200, "GET", path, "", "").document(t)
			if got := fmt.Sprint(doc["horizontal_scaling_blockers"]); got != "[sample_cluster]" {
				t.Errorf("blockers %s, want [sample_cluster]", got)
			}
		}
	})
	t.Run("readyz", func(t *testing.T) {
		doc := onSubtest(t, b).want(200, "GET", "/readyz", "", "").document(t)
		checks, _ := doc["checks"].(map[string]any)
		if checks["store"] != "ok" || checks["cluster"] != "ok" {
			t.Errorf(`%v; want checks["store"] == "ok" && checks["cluster"] == "ok"`, doc)
		}
	})
	t.Run("errors", func(t *testing.T) {
		b := onSubtest(t, b)
		b.refused(404, "not_found", "GET", "/v1/nothing", "", "")
		b.refused(405, "method_not_allowed", "GET", chatPath, "", "")
		for _, tc := range []struct{ key, challenge string }{
			{"", `Bearer realm="assistant"`}, {"ki-admin-wrong", `Bearer realm="assistant", error="invalid_token"`},
			{"Bearer", `Bearer realm="assistant", error="invalid_token"`}, {"ki-op-" + admin, `Bearer realm="assistant", error="invalid_token"`},
		} {
			a := b.want(401, "POST", chatPath, tc.key, chatBody("x"))
			member, _ := a.document(t)["error"].(map[string]any)
			if a.Header.Get("WWW-Authenticate") != tc.challenge || member["type"] != "authentication_error" {
				t.Errorf(`%q: %q %s; want a.Header.Get("WWW-Authenticate") == tc.challenge && member["type"] == "authentication_error"`, tc.key, a.Header.Get("WWW-Authenticate"), a)
			}
		}
		b.refused(422, "validation_error", "POST", chatPath, operator, "{")
		b.refused(422, "validation_error", "POST", chatPath, operator, "[]")
	})
	t.Run("metrics", func(t *testing.T) {
		b := onSubtest(t, b)
		b.say(operator, "metrics", "kubectl get pods -n shop")
		b.say(operator, "metrics", "what is wrong in shop?")
		b.say(operator, "metrics", scaleWebTo(2), "auto_approve", true)
		b.say(operator, "metrics", scaleWebTo(3), "auto_approve", true) // one of the two changes something
		b.say(readonly, "metrics-ro", scaleWebTo(3))
		b.say(operator, "metrics", "kubectl describe secret gateway-db -n payments")
		text := string(b.want(200, "GET", "/metrics", "", "").body)
		for _, name := range []string{
			`assistant_turns_total{engine="playbooks",outcome="done"}`, `assistant_turn_seconds_count{engine="playbooks"}`, "assistant_first_event_seconds_count",
			"assistant_open_streams 0", `assistant_tool_calls_total{outcome="ok",tool="list"}`, `assistant_tool_seconds_count{tool="list"}`,
			`assistant_decisions_total{basis="auto_approve",decision="approved"}`, `assistant_executions_total{result="succeeded"}`,
			`assistant_refusals_total{reason="role_too_low"}`, `assistant_redactions_total{kind=`, `assistant_tokens_total{kind="prompt"} 0`,
			"assistant_pending_actions", "assistant_playbook_matches_total{class=", `http_requests_total{method="POST",route="/v1/chat/completions",service="assistant",status="200"}`,
		} {
			if !strings.Contains(text, name) {
				t.Errorf("no %s; want strings.Contains(text, name)", name)
			}
		}
	})
}

// TestAudit walks what the ledger records of turns, actions, refusals and keys.
func TestAudit(t *testing.T) {
	t.Parallel()
	b := startBench(t, "AUTH_BACKEND=hmac", "DEMO_KEY_HMAC_SECRET=0123456789abcdef0123456789abcdef")
	const secretWords = "a question that stays here"
	b.want(200, "POST", chatPath, operator, chatBody(secretWords, "user", "ann"), "X-Session-ID", "audit", "X-Request-ID", "audit-1")
	p := b.propose(operator, "audit", scaleWeb, "user", "ann")
	b.want(200, "POST", "/v1/sessions/audit/actions/"+p.ActionID, other, `{"decision":"approve","reason":"fine"}`)
	b.say(operator, "audit", "and now?")
	b.say(readonly, "audit-ro", scaleWeb)
	b.refused(403, "forbidden", "POST", "/v1/auth/demo-keys", operator, `{"email":"a@b.c"}`)
	b.want(200, "POST", "/v1/auth/demo-keys", admin, `{"email":"a@b.c"}`)
	const post = `"address":"127.0.0.1","method":"POST"`
	id := caller.KeyID
	about := `"action_id":"` + p.ActionID + `","session":"audit","digest":"` + p.Digest + `","command":"` + scaleWeb + `","risk":"medium","requester":"` + id(operator) + `"`
	for _, row := range []struct{ action, actor, details string }{
		{"turn.finished", id(operator), post + `,"role":"operator","user":"ann","path":"` + chatPath + `","status":200,"outcome":"done","turn":1`},
		{"action.proposed", id(operator), post + `,"role":"operator","user":"ann","path":"` + chatPath + `",` + about},
		{"action.decided", id(other), post + `,"role":"operator",` + about + `,"decider":"` + id(other) + `","basis":"person","reason":"fine"`},
		{"action.executed", id(other), about + `,"decider":"` + id(other) + `","basis":"person","state":"succeeded"`},
		{"action.refused", id(readonly), post + `,"role":"readonly","user":"default","command":"` + scaleWeb + `"`},
		{"access.denied", id(operator), post + `,"role":"operator","path":"/v1/auth/demo-keys","status":403,"code":"forbidden"`},
		{"demo_key.minted", id(admin), post + `,"role":"admin","path":"/v1/auth/demo-keys","status":200,"email":"a@b.c"`},
	} {
		const query = `select count(*) from outbox where namespace = 'audit' and payload->>'action' = $1 and payload->>'actor' = $2
			and payload->>'ts' is not null and payload->'details' @> $3::jsonb`
		if n := b.count(query, "assistant."+row.action, row.actor, "{"+row.details+"}"); n == 0 {
			t.Errorf("no %s of %s with %s; want n != 0", row.action, row.actor, row.details)
		}
		if n := b.count("select count(*) from outbox where namespace = 'assistant' and name = $1", strings.ReplaceAll(row.action, ".", "_")); n == 0 {
			t.Errorf("no event %s; want n != 0", row.action)
		}
	}
	if n := b.count("select count(*) from outbox where request_id = 'audit-1' and payload->'details' ? 'duration_ms'"); n != 1 {
		t.Errorf("%d facts of the request; want 1", n)
	}
	if n := b.count("select count(*) from outbox where payload::text like '%' || $1 || '%'", secretWords); n != 0 {
		t.Error("a question is in the ledger")
	}
}

// TestOpenOnLoopback walks "Auth off".
func TestOpenOnLoopback(t *testing.T) {
	t.Parallel()
	b := startBench(t, "ASSISTANT_ADMIN_KEYS=", "ASSISTANT_OPERATOR_KEYS=", "ASSISTANT_READONLY_KEYS=", "ASSISTANT_ALLOWED_ORIGINS=https://chat.example.org")
	if s := b.say("", "open", "kubectl delete deployment/web -n shop"); len(s.prompts()) != 1 {
		t.Errorf("not an admin: %s; want len(s.prompts()) == 1", s.text)
	}
	if doc := b.want(200, "GET", "/v1/sessions/open", "", "").document(t); doc["owner"] != "local" {
		t.Errorf(`owner %v; want "local"`, doc["owner"])
	}
	b.refused(403, "forbidden", "GET", "/v1/models", "", "", "Origin", "https://evil.example")
	a := b.want(200, "GET", "/v1/models", "", "", "Origin", "https://chat.example.org")
	if a.Header.Get("Access-Control-Allow-Origin") != "https://chat.example.org" {
		t.Errorf(`%v; want a.Header.Get("Access-Control-Allow-Origin") == "https://chat.example.org"`, a.Header)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", b.url+"/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "rebound.example:80"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("another Host: %d; want 403", resp.StatusCode)
	}
	preflight := b.open("OPTIONS", chatPath, "", "", "Origin", "https://chat.example.org", "Access-Control-Request-Method", "POST")
	if preflight.StatusCode != http.StatusNoContent || preflight.Header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf(`preflight: %d %v; want preflight.StatusCode == http.StatusNoContent && preflight.Header.Get("Access-Control-Allow-Origin") != ""`, preflight.StatusCode, preflight.Header)
	}
}

// TestRateAndStreams walks "Rate" and the bound of open streams.
func TestRateAndStreams(t *testing.T) {
	t.Parallel()
	b := startBench(t, "ASSISTANT_RATE_PER_MIN=2", "ASSISTANT_RATE_BURST=2")
	b.want(200, "GET", "/v1/models", operator, "")
	b.want(200, "GET", "/v1/models", operator, "")
	a := b.want(429, "POST", chatPath, operator, chatBody("x"))
	if a.Header.Get("X-RateLimit-Limit") != "2" || a.Header.Get("Retry-After") == "" {
		t.Errorf(`%v; want a.Header.Get("X-RateLimit-Limit") == "2" && a.Header.Get("Retry-After") != ""`, a.Header)
	}
	b.want(200, "GET", "/v1/models", other, "")
	for range 5 {
		b.want(200, "GET", "/healthz", "", "")
	}
}

// TestRestart shows that what waits outlives the process.
func TestRestart(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	p := b.propose(operator, "restart", scaleWeb)
	before := b.want(200, "GET", "/v1/events/replay/restart", operator, "").body
	b.stop()
	b.serve()
	if after := b.want(200, "GET", "/v1/events/replay/restart", operator, "").body; !bytes.Equal(before, after) {
		t.Error("the replay differs after a restart")
	}
	if doc := b.action(operator, "restart", p.ActionID); doc["state"] != "pending" || doc["digest"] != p.Digest {
		t.Errorf(`%v; want doc["state"] == "pending" && doc["digest"] == p.Digest`, doc)
	}
	// The sample cluster was made anew, so its objects are others than those that were shown.
	s := b.say(operator, "restart", "yes")
	if doc := b.action(operator, "restart", p.ActionID); doc["state"] != "stale" || len(s.prompts()) != 1 {
		t.Errorf(`%v: %s; want doc["state"] == "stale" && len(s.prompts()) == 1`, doc["state"], s.text)
	}
}
