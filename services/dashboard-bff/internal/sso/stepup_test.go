package sso_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
)

func TestAStepUpAsksForTheLevelAndReplacesTheSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.browser()
	w.signIn("")
	before := b.browser()
	before.cookies["__Host-platform_session"] = w.cookies["__Host-platform_session"]
	provider := w.begin("?step_up=true&return_to=/approvals")
	for name, want := range map[string]string{"acr_values": "gold", "max_age": "0", "prompt": "login"} {
		if got := provider.Query().Get(name); got != want {
			t.Errorf("authorization request: %s is %q, want %q", name, got, want)
		}
	}
	b.SignsIn(person("1001", map[string]any{"acr": "gold"}))
	if got := w.back(w.visit(provider)); got != "/approvals" {
		t.Fatalf("got %q, want /approvals", got)
	}
	if me := w.me().Want(http.StatusOK, ""); me.Text("acr") != "gold" {
		t.Errorf("/me: got %s, want the level gold", me.Body)
	}
	if before.cookies["__Host-platform_session"].Value == w.cookies["__Host-platform_session"].Value {
		t.Error("the session's id did not change")
	}
	b.Fleet.Advance(3 * time.Second) // verdicts are kept for 2 s
	before.wantNobody("the weaker session")
	facts := b.Fleet.Facts("auth.step_up")
	if len(facts) != 1 || facts[0].Actor != "idp-a:1001" || facts[0].Details["acr"] != "gold" || len(b.Fleet.Facts("auth.login")) != 1 {
		t.Errorf("ledger: got %+v, want one step-up beside the login", facts)
	}
}

func TestAGuardedActWaitsForTheStepUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.browser()
	w.signIn("")
	proof := accesstest.Header("Sec-Fetch-Site", "same-origin")
	a := w.do("POST", "/guarded", false, proof).Want(http.StatusUnauthorized, "step_up_required")
	const want = `Bearer error="insufficient_user_authentication", acr_values="gold", max_age=900`
	if got := a.Header.Get("WWW-Authenticate"); got != want {
		t.Errorf("WWW-Authenticate: got %s, want %s", got, want)
	}
	if a.Text("provider") != "idp-a" || b.done.Load() != 0 {
		t.Errorf("got %s and %d acts; want the provider named and nothing done", a.Body, b.done.Load())
	}
	b.SignsIn(person("1001", map[string]any{"acr": "gold"}))
	// The address that the refusal gives is the one that works.
	if got := w.back(w.visit(w.location(w.do("GET", a.Text("login_url")+"&return_to=/flags", false)))); got != "/flags" {
		t.Fatalf("the step-up leads to %q, want /flags", got)
	}
	w.do("POST", "/guarded", false, proof).Want(http.StatusNoContent, "")
	b.Fleet.Advance(16 * time.Minute)
	w.do("POST", "/guarded", false, proof).Want(http.StatusUnauthorized, "step_up_required")
	if got := b.done.Load(); got != 1 {
		t.Errorf("got %d acts, want one", got)
	}
}

func TestAStepUpThatIsNoneLeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	for name, claims := range map[string]map[string]any{
		"another subject":        person("2002", map[string]any{"acr": "gold"}),
		"another, who is denied": person("mallory", map[string]any{"acr": "gold"}),
		"weak level":             person("1001", map[string]any{"acr": "silver"}),
		"no level":               person("1001", map[string]any{"acr": nil}),
		"old auth_time":          person("1001", map[string]any{"acr": "gold", "auth_time": time.Now().Add(-2 * time.Minute).Unix()}),
		"no auth_time":           person("1001", map[string]any{"acr": "gold", "auth_time": nil}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			w := b.browser()
			w.signIn("")
			b.SignsIn(claims)
			if got := w.signIn("?step_up=true"); got != "/?sso_error=step_up_not_met" {
				t.Errorf("got %q, want step_up_not_met", got)
			}
			me := w.me().Want(http.StatusOK, "")
			if me.Text("acr") != "silver" || me.Text("sub") != "idp-a:1001" {
				t.Errorf("/me: got %s, want the session as it was", me.Body)
			}
			if facts := b.Fleet.Facts("auth.login_denied"); len(facts) != 1 || facts[0].Details["step_up"] != true {
				t.Errorf("ledger: got %+v, want the denial", facts)
			}
		})
	}
}

func TestAStepUpWithoutASessionIsAStrongSignIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SignsIn(person("3003", map[string]any{"acr": "gold"}))
	w := b.browser()
	if got := w.signIn("?step_up=true"); got != "/" {
		t.Errorf("got %q, want /", got)
	}
	if me := w.me().Want(http.StatusOK, ""); me.Text("sub") != "idp-a:3003" {
		t.Errorf("/me: got %s", me.Body)
	}
}

func TestWhatCannotBeWrittenDownDoesNotHappen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.browser()
	callback := w.visit(w.begin(""))
	if _, err := b.Fleet.Pool.Exec(t.Context(), "alter table outbox rename to outbox_away"); err != nil {
		t.Fatal(err)
	}
	if got := w.back(callback); got != "/?sso_error=store_unavailable" {
		t.Errorf("got %q, want store_unavailable", got)
	}
	w.wantNobody("unrecorded")
}

func TestAStoreThatIsAwayIsSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.browser()
	callback := w.visit(w.begin(""))
	b.records.away = true
	b.Do("GET", "/api/auth/sso/idp-a/login", nil).Want(http.StatusServiceUnavailable, "session_store_unavailable")
	if got := w.back(callback); got != "/?sso_error=session_store_unavailable" {
		t.Errorf("the callback leads to %q, want session_store_unavailable", got)
	}
}
