package access_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

func TestStepUpOfFederatedCallers(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	mfa, phr, none := []string{"urn:x:mfa"}, []string{"urn:x:phr", "urn:x:mfa"}, []string(nil)
	for _, c := range []struct {
		name      string
		acrValues []string
		off       bool
		acr       string
		age       time.Duration
		noTime    bool
		met       bool
	}{
		{"listed and fresh", mfa, false, "urn:x:mfa", time.Minute, false, true},
		{"one of two listed", phr, false, "urn:x:mfa", time.Minute, false, true},
		{"any level will do", none, false, "", time.Minute, false, true},
		{"at its full age", mfa, false, "urn:x:mfa", 899 * time.Second, false, true},
		{"too old", mfa, false, "urn:x:mfa", 901 * time.Second, false, false},
		{"too old, any level", none, false, "", 901 * time.Second, false, false},
		{"weaker", mfa, false, "urn:x:pwd", time.Minute, false, false},
		{"acr missing", mfa, false, "", time.Minute, false, false},
		{"acr missing, and an empty one listed", []string{""}, false, "", time.Minute, false, false},
		{"auth_time missing", mfa, false, "urn:x:mfa", 0, true, false},
		{"auth_time in an hour", mfa, false, "urn:x:mfa", -time.Hour, false, false},
		{"provider without the rule", none, true, "", 24 * time.Hour, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &accesstest.Provider{}
			if !c.off {
				p.DemandStepUp(15*time.Minute, c.acrValues...)
			}
			r, reached := newReplica(f, accesstest.Options{Federation: p})
			who := caller.Caller{
				Subject: "idp-a:" + c.name, Tenant: "default", Role: caller.Admin, Method: caller.IDPBearer, Provider: "idp-a", ACR: c.acr,
				AuthTime: f.Now().Add(-c.age), SessionID: "d", ExpiresAt: f.Now().Add(time.Hour),
			}
			if c.noTime {
				who.AuthTime = time.Time{}
			}
			p.Know("t", who)
			a := r.Do("POST", "/test/flag?step_up=false&max_age=99999", nil, accesstest.Bearer("t")) // no parameter lowers it
			if c.met {
				a.Want(200, "")
			} else if a.Want(401, "step_up_required"); reached.reached != 0 {
				t.Error("the handler was reached; want no effect before the step-up")
			}
			r.Do("POST", "/test/unlisted", nil, accesstest.Bearer("t")).Want(200, "") // an action that is not listed
			r.Do("PUT", "/test/config", nil, accesstest.Bearer("t")).Want(200, "")    // a request without the action
			want := map[bool]int{true: 200, false: 401}[c.met]
			if got := r.Do("PUT", "/test/config?secret=true", nil, accesstest.Bearer("t")).Code; got != want {
				t.Errorf("a request with the action: %d; want %d", got, want)
			}
		})
	}
}

func TestTheExact401OfAStepUp(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	p.DemandStepUp(15*time.Minute, "urn:x:mfa")
	r, _ := newReplica(f, accesstest.Options{Federation: p})
	person := f.Person(caller.Admin)
	person.ACR = "urn:x:pwd"
	cookie, proof := signIn(t, r, person), accesstest.Header("X-PLATFORM-CSRF", "1")
	a := r.Do("POST", "/test/flag", nil, cookie, proof).Want(401, "step_up_required")
	if got, want := a.Header.Get("WWW-Authenticate"), `Bearer error="insufficient_user_authentication", acr_values="urn:x:mfa", max_age=900`; got != want {
		t.Errorf("WWW-Authenticate %q; want %q", got, want)
	}
	body := a.Object()
	got := map[string]any{}
	for _, member := range []string{"acr_values", "max_age", "provider", "login_url", "action"} {
		got[member] = body[member]
	}
	want := map[string]any{
		"acr_values": []any{"urn:x:mfa"}, "max_age": 900.0, "provider": "idp-a", "login_url": "/api/auth/sso/idp-a/login?step_up=true", "action": "flag.write",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}

	p.DemandStepUp(10 * time.Minute)
	f.Advance(11 * time.Minute)
	a = r.Do("POST", "/test/flag", nil, cookie, proof).Want(401, "step_up_required")
	if got, want := a.Header.Get("WWW-Authenticate"), `Bearer error="insufficient_user_authentication", max_age=600`; got != want {
		t.Errorf("WWW-Authenticate without levels %q; want %q", got, want)
	}
	if list, ok := a.Object()["acr_values"].([]any); !ok || len(list) != 0 {
		t.Errorf("acr_values = %v; want an empty list", a.Object()["acr_values"])
	}

	p.DemandStepUp(10*time.Minute, `a"b\`, "c\r\nX-Evil: 1")
	a = r.Do("POST", "/test/flag", nil, cookie, proof).Want(401, "step_up_required")
	if got, want := a.Header.Get("WWW-Authenticate"), `Bearer error="insufficient_user_authentication", acr_values="a\"b\\ cX-Evil: 1", max_age=600`; got != want {
		t.Errorf("WWW-Authenticate with odd levels %q; want %q", got, want)
	}
}

func TestASteppedUpSessionGoesOn(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	p.DemandStepUp(15*time.Minute, "urn:x:mfa")
	r, _ := newReplica(f, accesstest.Options{Federation: p})
	weak := f.Person(caller.Admin)
	weak.ACR = ""
	proof := accesstest.Header("X-PLATFORM-CSRF", "1")
	cookie := signIn(t, r, weak)
	r.Do("POST", "/test/flag", nil, cookie, proof).Want(401, "step_up_required")
	r.Do("GET", "/test/view", nil, cookie).Want(200, "") // the session continues
	stronger := accesstest.Cookie(r.Do("POST", "/test/sign-in", f.Person(caller.Admin), cookie).Want(204, "").Response)
	r.Do("POST", "/test/flag", nil, stronger, proof).Want(200, "")
	r.Do("GET", "/test/view", nil, cookie).Want(401, "invalid_token") // its id changed
}

func TestPasswordSessionsStepUpOnlyWhenEnforced(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	lax, _ := newReplica(f, accesstest.Options{})
	strict, _ := newReplica(f, accesstest.Options{EnforceStepUp: true})
	token := accesstest.Bearer(lax.SignIn(caller.Admin))
	strict.Do("POST", "/test/flag", nil, token).Want(200, "") // just signed in
	f.Advance(15*time.Minute + 2*time.Second)
	lax.Do("POST", "/test/flag", nil, token).Want(200, "")
	a := strict.Do("POST", "/test/flag", nil, token).Want(401, "step_up_required")
	if got, want := a.Header.Get("WWW-Authenticate"), `Bearer error="insufficient_user_authentication", max_age=900`; got != want {
		t.Errorf("WWW-Authenticate %q; want %q", got, want)
	}
	if body := a.Object(); body["provider"] != nil || body["login_url"] != nil {
		t.Errorf("provider %v, login_url %v; want none: a password helps", body["provider"], body["login_url"])
	}
	strict.Do("POST", "/test/flag", nil, accesstest.Bearer(strict.SignIn(caller.Admin))).Want(200, "")
}
