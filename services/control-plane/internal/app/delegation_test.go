package app_test

import (
	"encoding/json"
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/app"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// seed is the private key of the tests' dashboard.
const seed = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// newDashboard mints tokens for people, and returns the setting that makes it trusted.
func newDashboard(t *testing.T) (mint func(person, tenant string, scopes ...string) string, trust string) {
	t.Helper()
	d, err := auth.NewDelegator("dashboard", seed)
	if err != nil {
		t.Fatal(err)
	}
	mint = func(person, tenant string, scopes ...string) string {
		token, err := d.Mint("control-plane", auth.Person{Name: person, Tenant: tenant, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	return mint, "DELEGATION_TRUST_JSON=" + controlplanetest.MustJSON(map[string]any{"dashboard": map[string]any{
		"public_key": d.PublicKey(), "tenants": []string{"default", "other"}, "scopes": []string{"read", "changes", "approve", "predict"},
	}})
}

// Two people at one dashboard are two callers: the requester does not approve, the other does, and the records name
// both.
func TestDelegatedSeparationOfDuties(t *testing.T) {
	t.Parallel()
	mint, trust := newDashboard(t)
	p := controlplanetest.Start(t, trust, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	alice := func() string { return mint("alice", "default", "read", "write") }
	bob := func() string { return mint("bob", "default", "read", "write") }
	notice := map[string]any{"model_ids": []string{"JPCP"}, "commit_sha": "abc"}
	id := p.Want(200, "POST", "/api/changes", alice(), notice).Object(t)["created"].([]any)[0].(string)
	p.Refused(403, "own_request", "POST", "/approve/JPCP", alice(), nil)
	p.Refused(403, "own_request", "POST", "/approvals/"+id+"/approve", alice(), nil)
	p.Refused(404, "approval_not_found", "POST", "/approvals/"+id+"/approve", mint("bob", "other", "write"), nil)
	p.Want(200, "POST", "/approve/JPCP", bob(), nil)
	rec := p.Approval(id)
	if rec["requested_by"] != "alice" || rec["resolved_by"] != "bob" || rec["tenant"] != "default" || rec["status"] != "approved" {
		t.Errorf(`record %v; want rec["requested_by"] == "alice" && rec["resolved_by"] == "bob" && rec["tenant"] == "default" && rec["status"] == "approved"`, rec)
	}
	for action, actor := range map[string]string{"approval.created": "alice", "approval.approved": "bob"} {
		if facts := p.Audits(action); len(facts) != 1 || facts[0]["actor"] != actor || facts[0]["tenant"] != "default" {
			t.Errorf(`%s: %v; want len(facts) == 1 && facts[0]["actor"] == actor && facts[0]["tenant"] == "default"`, action, facts)
		}
	}
	// A scope that the dashboard may not delegate is not granted, whatever the token claims.
	p.Refused(403, "insufficient_scope", "POST", "/retrain", mint("bob", "default", "write", "retrain"), map[string]any{"model_name": "JPCP", "dataset_name": "JobEmbeddings"})
	p.Refused(403, "insufficient_scope", "PUT", "/promotion-policies/JPCP", mint("bob", "default", "write"), nil)
}

// A token reads as often as its minute allows and writes once; a write refused for its scope does not use it up.
func TestDelegationOverTheWire(t *testing.T) {
	t.Parallel()
	mint, trust := newDashboard(t)
	p := controlplanetest.Start(t, trust)
	token := mint("alice", "default", "read", "changes")
	notice := func(commit string) map[string]any {
		return map[string]any{"model_ids": []string{"MACK"}, "commit_sha": commit}
	}
	for range 3 {
		p.Want(200, "GET", "/approvals", token, nil)
	}
	p.Refused(403, "insufficient_scope", "POST", "/approve/MACK", token, nil)
	p.Want(200, "POST", "/api/changes", token, notice("a"))
	r := p.Refused(401, "invalid_credential", "POST", "/api/changes", token, notice("b"))
	if r.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf(`headers %v; want r.Header.Get("WWW-Authenticate") == "Bearer"`, r.Header)
	}
	p.Want(200, "GET", "/approvals", token, nil)
	if n := len(p.Audits("approval.created")); n != 1 {
		t.Errorf("%d notices were recorded; want 1", n)
	}
	d, err := auth.NewDelegator("dashboard", seed)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := d.Mint("inference", auth.Person{Name: "alice", Tenant: "default", Scopes: []string{"read"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Refused(401, "invalid_credential", "GET", "/approvals", wrong, nil)
	p.Refused(401, "invalid_credential", "GET", "/approvals", mint("alice", "third", "read"), nil)
	parts := strings.Split(mint("alice", "default", "read"), ".")
	p.Refused(401, "invalid_credential", "GET", "/approvals", parts[0]+"."+parts[1]+".", nil)
	p.Want(200, "GET", "/approvals", controlplanetest.Reader, nil)
}

// While token reuse cannot be checked, a delegated token writes nothing; reads still work, and so do the service's own
// credentials.
func TestDelegationWithoutCoordinator(t *testing.T) {
	t.Parallel()
	mint, trust := newDashboard(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	p := controlplanetest.Start(t, trust, "REDIS_URL=redis://"+addr)
	token := mint("alice", "default", "read", "changes")
	body := map[string]any{"model_ids": []string{"MACK"}, "commit_sha": "abc"}
	if r := p.Refused(503, "coordinator_unavailable", "POST", "/api/changes", token, body); r.Header.Get("Retry-After") == "" {
		t.Errorf(`headers %v; want r.Header.Get("Retry-After") != ""`, r.Header)
	}
	p.Want(200, "GET", "/approvals", token, nil)
	p.Want(200, "POST", "/api/changes", controlplanetest.CI, body)
}

// One token sent concurrently to two replicas writes in one of them.
func TestDelegationAmongReplicas(t *testing.T) {
	t.Parallel()
	mint, trust := newDashboard(t)
	p := controlplanetest.Start(t, trust, "REDIS_URL="+testenv.Redis(t))
	second := *p
	second.Serve()
	token := mint("alice", "default", "changes")
	type result struct {
		status int
		err    error
	}
	results := make(chan result, 8)
	for i := range cap(results) {
		plane := p
		if i%2 == 1 {
			plane = &second
		}
		go func() {
			r, err := plane.Try("POST", "/api/changes", token, map[string]any{"model_ids": []string{"MACK"}, "commit_sha": "abc"})
			results <- result{r.Status, err}
		}()
	}
	count := map[int]int{}
	for range cap(results) {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		count[r.status]++
	}
	if count[200] != 1 || count[401] != cap(results)-1 {
		t.Errorf("answers %v; want count[200] == 1 && count[401] == cap(results) - 1", count)
	}
}

// An invalid trust map prevents the start, like any other invalid variable.
func TestTrustMapBroken(t *testing.T) {
	t.Parallel()
	_, trust := newDashboard(t)
	for member, broken := range map[string]string{"tenants": "tenant", "public_key": "publicKey", "scopes": "Scopes"} {
		_, err := app.LoadConfig([]string{"PLATFORM_DATABASE_URL=postgres://u@localhost/d", strings.Replace(trust, `"`+member+`"`, `"`+broken+`"`, 1)})
		if err == nil || !strings.Contains(err.Error(), "DELEGATION_TRUST_JSON") || !strings.Contains(err.Error(), broken) {
			t.Errorf("%s: got %v, want a refusal that names DELEGATION_TRUST_JSON and the member %s", member, err, broken)
		}
	}
}

// A credential map with any kind of fault refuses every bearer: its own, the legacy one, delegations and strangers.
// Health stays readable.
func TestCredentialMapBroken(t *testing.T) {
	t.Parallel()
	mint, trust := newDashboard(t)
	shared := controlplanetest.Neighbours(t, trust)
	const secret = controlplanetest.Reader
	good := map[string]any{"principal": "reader", "tenant": "default", "scopes": []string{"read"}}
	with := func(name string, v any) string {
		m := maps.Clone(good)
		if m[name] = v; v == nil {
			delete(m, name)
		}
		return controlplanetest.MustJSON(map[string]any{secret: m})
	}
	one, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"no JSON":                 "{",
		"not an object":           "[]",
		"null":                    "null",
		"trailing text":           with("principal", "reader") + "x",
		"principal missing":       with("principal", nil),
		"tenant missing":          with("tenant", nil),
		"scopes missing":          with("scopes", nil),
		"principal empty":         with("principal", ""),
		"tenant empty":            with("tenant", " "),
		"principal a number":      with("principal", 7),
		"scopes text":             with("scopes", "read"),
		"scopes empty":            with("scopes", []string{}),
		"scope unknown":           with("scopes", []string{"root"}),
		"scope twice":             with("scopes", []string{"read", "read"}),
		"member unknown":          with("admin", true),
		"member of another case":  `{"` + secret + `": {"Principal": "r", "tenant": "default", "scopes": ["read"]}}`,
		"member twice":            `{"` + secret + `": {"principal": "r", "principal": "r", "tenant": "default", "scopes": ["read"]}}`,
		"secret twice":            `{"` + secret + `": ` + string(one) + `, "` + secret + `": ` + string(one) + `}`,
		"secret empty":            `{"": ` + string(one) + `}`,
		"entry a string":          `{"` + secret + `": "reader"}`,
		"holds the legacy secret": `{"` + controlplanetest.Legacy + `": ` + string(one) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := *shared
			p.T, p.NoWait = t, true // it is not ready, and says so
			p.Env = append([]string(nil), shared.Env...)
			p.Setenv("CONTROL_PLANE_CREDENTIALS_JSON=" + text)
			p.Serve()
			for _, bearer := range []string{secret, controlplanetest.Legacy, mint("alice", "default", "read"), "nobody", ""} {
				for _, r := range [][2]string{{"GET", "/approvals"}, {"POST", "/api/changes"}} {
					answer := p.Refused(503, "auth_misconfigured", r[0], r[1], bearer, nil)
					if strings.Contains(string(answer.Body), secret) || strings.Contains(string(answer.Body), controlplanetest.Legacy) {
						t.Errorf("the answer shows a secret: %s; want !strings.Contains(string(answer.Body), secret) && !strings.Contains(string(answer.Body), controlplanetest.Legacy)", answer.Body)
					}
				}
			}
			h := p.Health()
			if check := h["startup_checks"].(map[string]any)["token"].(string); !strings.HasPrefix(check, "fail:") || strings.Contains(check, secret) || h["auth_configured"] != false {
				t.Errorf(`health: %q, auth_configured %v; want strings.HasPrefix(check, "fail:") && !strings.Contains(check, secret) && h["auth_configured"] == false`, check, h["auth_configured"])
			}
			p.Want(503, "GET", "/readyz", "", nil)
		})
	}
}
