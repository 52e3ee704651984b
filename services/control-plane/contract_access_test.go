package controlplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/auth"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// startWithBrokenConfig starts a control plane with this credentials map; it may not become ready.
func startWithBrokenConfig(t *testing.T, env ...string) *controlplanetest.Plane {
	t.Helper()
	p := controlplanetest.Neighbours(t, env...)
	p.NoWait = true
	p.Serve()
	return p
}

// The order of the checks of a request, and the answer of each.
func TestContractAccess(t *testing.T) {
	t.Parallel()
	good := func(members string) string { return `{"secret-0123456789abcdef":{` + members + `}}` }
	const whole = `"principal":"ci","tenant":"default","scopes":["read"]`
	for name, raw := range map[string]string{
		"1_map_malformed":            `{`,
		"1_map_no_object":            `["secret-0123456789abcdef"]`,
		"1_map_further_member":       good(whole + `,"role":"admin"`),
		"1_map_member_missing":       good(`"principal":"ci","scopes":["read"]`),
		"1_map_member_twice":         good(whole + `,"tenant":"other"`),
		"1_map_secret_twice":         `{"secret-0123456789abcdef":{` + whole + `},"secret-0123456789abcdef":{` + whole + `}}`,
		"1_map_unknown_scope":        good(`"principal":"ci","tenant":"default","scopes":["admin"]`),
		"1_map_holds_legacy_secret":  `{"` + controlplanetest.Legacy + `":{` + whole + `}}`,
		"1_map_member_of_wrong_type": good(`"principal":"ci","tenant":"default","scopes":"read"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startWithBrokenConfig(t, "CONTROL_PLANE_CREDENTIALS_JSON="+raw)
			for _, bearer := range []string{"secret-0123456789abcdef", controlplanetest.Legacy, "", "nobody"} {
				p.Refused(503, "auth_misconfigured", "GET", "/approvals", bearer, nil)
			}
			p.Want(200, "GET", "/models", "", nil)
		})
	}
	t.Run("2_nothing_configured", func(t *testing.T) {
		t.Parallel()
		p := startWithBrokenConfig(t, "CONTROL_PLANE_TOKEN=", "CONTROL_PLANE_CREDENTIALS_JSON=")
		p.Refused(503, "auth_not_configured", "GET", "/approvals", controlplanetest.Legacy, nil)
		p.Refused(503, "auth_not_configured", "GET", "/approvals", "", nil)
		if h := p.Health(); h["auth_configured"] != false {
			t.Errorf("auth_configured %v; want false", h["auth_configured"])
		}
	})
	for _, secret := range []string{
		"example", "TODO", "none", "Null", "changeme", "my-change-me-now", "CHANGE_ME_please_123456", "changethis-0123456789", "a-placeholder-0123456",
		"your-token-0123456789", "yourtoken0123456789", "replace-me-0123456789", "xxReplaceMexx0123456789",
	} {
		t.Run("placeholder_"+secret, func(t *testing.T) {
			t.Parallel()
			for _, env := range [][]string{
				{"CONTROL_PLANE_TOKEN=" + secret},
				{"CONTROL_PLANE_CREDENTIALS_JSON=" + controlplanetest.MustJSON(doc{secret: doc{"principal": "ci", "tenant": "default", "scopes": []string{"read"}}})},
			} {
				if _, err := controlplane.LoadConfig(append(env, "PLATFORM_DATABASE_URL=postgres://localhost/x")); err == nil || strings.Contains(err.Error(), secret) && len(secret) > 8 {
					t.Errorf("%s: %v; want an error && (!strings.Contains(err.Error(), secret) || len(secret) <= 8)", env, err)
				}
			}
		})
	}
	t.Run("placeholder_only_when_equal", func(t *testing.T) {
		t.Parallel()
		if _, err := controlplane.LoadConfig([]string{"CONTROL_PLANE_TOKEN=todolist-example-0123456789", "PLATFORM_DATABASE_URL=postgres://localhost/x"}); err != nil {
			t.Error(err)
		}
	})
	t.Run("short_secret_warns", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Start(t, "CONTROL_PLANE_TOKEN=short-012345678")
		h := p.Health()
		if s := h["startup_checks"].(doc)["token"].(string); !strings.HasPrefix(s, "warn: ") || strings.Contains(s, "short-0") || h["status"] != "degraded" || h["ready"] != true {
			t.Errorf(`token: %s; %v; want strings.HasPrefix(s, "warn: ") && !strings.Contains(s, "short-0") && h["status"] == "degraded" && h["ready"] == true`, s, h["status"])
		}
	})
	accessRows(t)
	t.Run("separation_of_duties_off", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Start(t)
		p.Notice("JPCP", "a")
		p.Want(200, "POST", "/approve/JPCP", controlplanetest.Both, nil)
	})
	t.Run("separation_of_duties_enforce", func(t *testing.T) {
		t.Parallel()
		d, err := auth.NewDelegator("dashboard", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
		if err != nil {
			t.Fatal(err)
		}
		p := controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce", "DELEGATION_TRUST_JSON="+controlplanetest.MustJSON(doc{
			"dashboard": doc{"public_key": d.PublicKey(), "tenants": []string{"default"}, "scopes": []string{"read", "changes", "approve"}},
		}))
		p.Notice("JPCP", "a")
		p.Refused(403, "own_request", "POST", "/approve/JPCP", controlplanetest.Both, nil)
		p.Want(200, "POST", "/reject/JPCP", controlplanetest.Both, nil)
		p.Want(200, "POST", "/api/changes", controlplanetest.Legacy, doc{"model_ids": []string{"MACK"}, "commit_sha": "a"})
		p.Want(200, "POST", "/approve/MACK", controlplanetest.Legacy, nil)
		// Two people at one dashboard are two callers; each token writes once.
		mint := func(person, tenant string, scopes ...string) string {
			token, err := d.Mint("control-plane", auth.Person{Name: person, Tenant: tenant, Scopes: scopes})
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		asks := mint("alice", "default", "changes")
		id := p.Want(200, "POST", "/api/changes", asks, doc{"model_ids": []string{"JPCP"}, "commit_sha": "b"}).Object(t)["created"].([]any)[0].(string)
		p.Refused(401, "invalid_credential", "POST", "/api/changes", asks, doc{"model_ids": []string{"JPCP"}, "commit_sha": "c"})
		p.Refused(403, "own_request", "POST", "/approve/JPCP", mint("alice", "default", "approve"), nil)
		p.Want(200, "POST", "/approve/JPCP", mint("bob", "default", "approve"), nil)
		if a := p.Approval(id); a["requested_by"] != "alice" || a["resolved_by"] != "bob" || a["tenant"] != "default" {
			t.Error(a, `want a["requested_by"] == "alice" && a["resolved_by"] == "bob" && a["tenant"] == "default"`)
		}
		p.Refused(403, "insufficient_scope", "PUT", "/budgets/x", mint("bob", "default", "approve", "manage"), doc{}) // more than the dashboard may delegate
		p.Refused(401, "invalid_credential", "GET", "/approvals", mint("bob", "other", "read"), nil)                  // a tenant it may not act for
	})
	t.Run("rate_limits_by_default", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Start(t)
		p.AwaitTarget()
		for _, c := range []struct {
			limit              int
			method, path, with string
			body               any
		}{
			{120, "POST", "/api/changes", controlplanetest.CI, doc{"model_ids": []string{"JPCP"}, "commit_sha": "a"}},
			{20, "POST", "/retrain", controlplanetest.Operator, retrainOf("JPCP")},
			{120, "POST", "/reject/JPCP", controlplanetest.Operator, nil},
			{120, "PUT", "/budgets/x", controlplanetest.Operator, doc{}},
		} {
			r := p.Want(200, c.method, c.path, c.with, c.body)
			if h := r.Header; h.Get("RateLimit-Limit") != fmt.Sprint(c.limit) || h.Get("RateLimit-Remaining") != fmt.Sprint(c.limit-1) || h.Get("RateLimit-Reset") == "" {
				t.Errorf(`%s %s: %v; want h.Get("RateLimit-Limit") == fmt.Sprint(c.limit) && h.Get("RateLimit-Remaining") == fmt.Sprint(c.limit - 1) && h.Get("RateLimit-Reset") != ""`, c.method, c.path, h)
			}
		}
		// Retraining and the drift trigger share one count, approvals and promotions another.
		if r := p.Want(200, "POST", "/drift/trigger", controlplanetest.Operator, doc{"dry_run": true}); r.Header.Get("RateLimit-Remaining") != "18" {
			t.Errorf(`drift trigger: %v; want r.Header.Get("RateLimit-Remaining") == "18"`, r.Header)
		}
		if r := p.Call("POST", "/promotions", controlplanetest.Operator, doc{"model": "JPCP", "dry_run": true}); r.Header.Get("RateLimit-Remaining") != "118" {
			t.Errorf(`promotions: %v; want r.Header.Get("RateLimit-Remaining") == "118"`, r.Header)
		}
	})
	t.Run("rate_limited", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Start(t, "CHANGES_RATE_LIMIT_PER_MIN=1", "RETRAIN_RATE_LIMIT_PER_MIN=1", "DECISION_RATE_LIMIT_PER_MIN=1", "WRITE_RATE_LIMIT_PER_MIN=1")
		for _, c := range []struct {
			method, path string
			body         any
		}{{"POST", "/api/changes", doc{}}, {"POST", "/retrain", doc{}}, {"POST", "/approve/JPCP", nil}, {"PUT", "/budgets/x", doc{"period": "daily"}}} {
			p.Call(c.method, c.path, controlplanetest.Operator, c.body)
			r := p.Refused(429, "rate_limited", c.method, c.path, controlplanetest.Operator, c.body)
			if h := r.Header; h.Get("Retry-After") == "" || h.Get("RateLimit-Limit") != "1" || h.Get("RateLimit-Remaining") != "0" || h.Get("RateLimit-Reset") == "" {
				t.Errorf(`%s %s: %v; want h.Get("Retry-After") != "" && h.Get("RateLimit-Limit") == "1" && h.Get("RateLimit-Remaining") == "0" && h.Get("RateLimit-Reset") != ""`, c.method, c.path, h)
			}
			if r := p.Call(c.method, c.path, controlplanetest.Foreign, c.body); r.Status == 429 {
				t.Errorf("%s %s: another tenant shares the count; want r.Status != 429", c.method, c.path)
			}
		}
		// The limit is checked before the body, and after the scope.
		p.Refused(429, "rate_limited", "POST", "/api/changes", controlplanetest.CI, strings.Repeat("x", 2<<20))
		p.Refused(403, "insufficient_scope", "POST", "/api/changes", controlplanetest.Reader, nil)
	})
}

// accessRows are the rows that need only one control plane.
func accessRows(t *testing.T) {
	p := startForWalk(t)
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	row("3_missing_credential", func(t *testing.T, p *controlplanetest.Plane) {
		for _, header := range []string{"", "Basic dXNlcjpwYXNz", controlplanetest.Operator, "Bearer", "Bearer "} {
			r := p.Call("GET", "/approvals", "", nil, "Authorization", header)
			if r.Status != 401 || r.Header.Get("WWW-Authenticate") != "Bearer" || r.Code() != "missing_credential" && r.Code() != "invalid_credential" {
				t.Errorf(`%q: %d %s; want r.Status == 401 && r.Header.Get("WWW-Authenticate") == "Bearer" && (r.Code() == "missing_credential" || r.Code() == "invalid_credential")`, header, r.Status, r.Body)
			}
		}
		p.Refused(401, "missing_credential", "GET", "/approvals", "", nil)
	})
	row("3_invalid_credential", func(t *testing.T, p *controlplanetest.Plane) {
		if r := p.Refused(401, "invalid_credential", "POST", "/retrain", "nobody-0123456789abcdef", `{`); r.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Error(r.Header, `want r.Header.Get("WWW-Authenticate") == "Bearer"`)
		}
	})
	row("4_insufficient_scope", func(t *testing.T, p *controlplanetest.Plane) {
		p.Refused(403, "insufficient_scope", "POST", "/retrain", withoutScope("retrain"), `{`)
	})
	row("5_body_over_1_MiB", func(t *testing.T, p *controlplanetest.Plane) {
		p.Refused(413, "body_too_large", "POST", "/approvals/"+uuid.NewString()+"/reject", all, `{"reason":"`+strings.Repeat("x", 1<<20)+`"}`)
		fits := `{"reason":"x"` + strings.Repeat(" ", 1<<20-len(`{"reason":"x"}`)) + `}`
		p.Refused(404, "no_pending_approval", "POST", "/reject/JPCP", all, fits) // exactly 1 MiB
	})
	row("5_body_before_existence", func(t *testing.T, p *controlplanetest.Plane) {
		p.Refused(422, "validation_error", "POST", "/approvals/"+uuid.NewString()+"/reject", all, `{"reason":1}`)
		p.Refused(404, "approval_not_found", "POST", "/approvals/"+uuid.NewString()+"/reject", all, nil)
	})
	row("scope_write_includes_the_others", func(t *testing.T, p *controlplanetest.Plane) {
		p.Want(200, "POST", "/api/changes", controlplanetest.Operator, doc{"model_ids": []string{"JPCP"}, "commit_sha": "a"})
		p.Want(200, "POST", "/retrain", controlplanetest.Operator, retrainOf("MACK"))
		p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil)
		p.Want(200, "PUT", "/budgets/x", controlplanetest.Operator, doc{})
	})
	row("scope_read_writes_nothing_and_writers_do_not_read", func(t *testing.T, p *controlplanetest.Plane) {
		for _, scope := range grantable[1:] {
			p.Refused(403, "insufficient_scope", "GET", "/approvals", onlyScope(scope), nil)
		}
		p.Refused(403, "insufficient_scope", "POST", "/audit/events", onlyScope("read"), nil)
	})
	row("legacy_has_both_scopes", func(t *testing.T, p *controlplanetest.Plane) {
		out := p.Want(200, "POST", "/api/changes", controlplanetest.Legacy, doc{"model_ids": []string{"RuntimeClass"}, "commit_sha": "a"}).Object(t)
		if a := p.Approval(out["created"].([]any)[0].(string)); a["requested_by"] != "legacy" || a["tenant"] != "default" {
			t.Error(a, `want a["requested_by"] == "legacy" && a["tenant"] == "default"`)
		}
		p.Want(200, "GET", "/approvals", controlplanetest.Legacy, nil)
	})
	row("actor_and_tenant_from_no_header", func(t *testing.T, p *controlplanetest.Plane) {
		out := p.Want(200, "POST", "/api/changes", onlyScope("changes"), doc{"model_ids": []string{"RuntimeRegressor"}, "commit_sha": "a"},
			"X-Tenant", "other", "X-Principal", "root", "X-Forwarded-User", "root", "X-User", "root").Object(t)
		if a := p.Approval(out["created"].([]any)[0].(string)); a["requested_by"] != "only-changes" || a["tenant"] != "default" {
			t.Error(a, `want a["requested_by"] == "only-changes" && a["tenant"] == "default"`)
		}
	})
	row("another_tenants_object_is_404", func(t *testing.T, p *controlplanetest.Plane) {
		id := p.Notice("MCBound", "a")
		p.Refused(404, "approval_not_found", "GET", "/approvals/"+id, controlplanetest.Foreign, nil)
		p.Refused(404, "approval_not_found", "POST", "/approvals/"+id+"/approve", controlplanetest.Foreign, nil)
	})
	row("headers", func(t *testing.T, p *controlplanetest.Plane) {
		for _, path := range []string{"/health", "/models", "/approvals", "/nothing", "/metrics"} {
			h := p.Call("GET", path, "", nil).Header
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
				"Content-Security-Policy": "default-src 'none'",
			} {
				if got := h.Get(name); got != want && !(name == "Content-Security-Policy" && strings.HasPrefix(got, want+";")) {
					t.Errorf(`%s: %s is %q; want (got == want || name == "Content-Security-Policy" && strings.HasPrefix(got, want+";"))`, path, name, got)
				}
			}
		}
		if csp := p.Want(200, "GET", "/docs", "", nil).Header.Get("Content-Security-Policy"); !strings.Contains(csp, "'self'") || strings.Contains(csp, "unsafe-eval") {
			t.Errorf(`the reference: %q; want strings.Contains(csp, "'self'") && !strings.Contains(csp, "unsafe-eval")`, csp)
		}
	})
	row("allowed_hosts_by_default_all", func(t *testing.T, p *controlplanetest.Plane) {
		p.Want(200, "GET", "/models", "", nil, "X-Forwarded-Host", "elsewhere.example")
	})
}
