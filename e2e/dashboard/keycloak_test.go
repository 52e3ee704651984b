//go:build e2e

package dashboard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/keycloak"
)

// organisation is a dashboard that trusts a real identity provider, under the name university.
type organisation struct {
	*keycloak.Server
	*harness.Dashboard
	url    string // of the dashboard
	file   string // the trust file
	people byte   // number of people so far
}

func (o *organisation) writeTrust(t *testing.T, more string) {
	t.Helper()
	text := fmt.Sprintf(`version: 1
providers:
- name: university
  issuer: %s
  display_name: Example University
  audience: platform
  clients: {dashboard: {client_id: %s, client_secret_ref: "env:E2E_IDP_SECRET"}}
  step_up: {acr_values: [gold], max_age_s: 300}
%s`, o.Issuer, keycloak.ClientID, more)
	if err := os.WriteFile(o.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startOrganisation starts the dashboard first, with an empty trust file: the provider must know its address.
func startOrganisation(t *testing.T) *organisation {
	t.Helper()
	o := &organisation{file: filepath.Join(t.TempDir(), "trust.yaml")}
	if err := os.WriteFile(o.file, []byte("version: 1\nproviders: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Dashboard = harness.StartDashboard(t, "PLATFORM_SEED=false", "PLATFORM_IAM_CONFIG="+o.file, "E2E_IDP_SECRET="+keycloak.ClientSecret,
		"DASHBOARD_SESSION_COOKIE_SECURE=false", "DASHBOARD_TRUSTED_PROXIES=127.0.0.1")
	o.url = o.Dashboard.URL
	o.Server = keycloak.Start(t, harness.FreePorts(t, 1)[0], o.url)
	o.writeTrust(t, "")
	o.person(t).await("the provider on the login page", func(*person) error {
		if page := o.person(t).Do(http.MethodGet, o.url+"/api/auth/sso/providers", nil); !strings.Contains(page.Body, "Example University") {
			return fmt.Errorf("got %d %s", page.Status, page.Body)
		}
		return nil
	})
	return o
}

// person is a person's browser.
type person struct {
	*keycloak.Browser
	t *testing.T
	o *organisation
}

// person has a browser without cookies, at a separate address.
func (o *organisation) person(t *testing.T) *person {
	o.people++
	p := &person{keycloak.NewBrowser(t, o.url), t, o}
	p.Address = fmt.Sprintf("10.0.0.%d", o.people)
	return p
}

const login = "/api/auth/sso/university/login"

// back opens the callback and returns where it leads.
func (p *person) back(callback string) string {
	p.t.Helper()
	page := p.Do(http.MethodGet, callback, nil)
	if page.Status != http.StatusFound || page.Location == nil {
		p.t.Fatalf("the callback answers %d %s; want 302", page.Status, page.Body)
	}
	return strings.TrimPrefix(page.Location.String(), p.o.url)
}

// signIn signs in as the user. The dashboard waits 5 s for the provider, whose first answers take longer on a busy
// machine; so it retries, as a person would.
func (p *person) signIn(path, user string) (to string) {
	p.t.Helper()
	const tries = 3
	for range tries {
		p.Forms = nil
		if to = p.back(p.Walk(p.o.url+path, user)); to != "/?sso_error=idp_unreachable" {
			break
		}
	}
	return to
}

// me returns the answer of /me; nil without a session.
func (p *person) me() map[string]any {
	p.t.Helper()
	page := p.Do(http.MethodGet, p.o.url+"/api/auth/me", nil)
	if page.Status == http.StatusUnauthorized {
		return nil
	}
	var me map[string]any
	if err := json.Unmarshal([]byte(page.Body), &me); err != nil || page.Status != http.StatusOK {
		p.t.Fatalf("/me answers %d %s", page.Status, page.Body)
	}
	return me
}

func (p *person) wantMe(want map[string]any) {
	p.t.Helper()
	me := p.me()
	for name, value := range want {
		if me[name] != value {
			p.t.Errorf("/me: %s is %v, want %v", name, me[name], value)
		}
	}
}

// TestSingleSignOnAtARealProvider uses one dashboard and one provider: both start slowly.
func TestSingleSignOnAtARealProvider(t *testing.T) {
	o := startOrganisation(t)
	t.Run("password, then a one-time code for more", o.testStepUp)
	t.Run("200 groups in a small cookie", o.testManyGroups)
	t.Run("a group of the same name elsewhere gives no role", o.testNobody)
	t.Run("an answer is good once, in one browser", o.testReplay)
	t.Run("an answer without issuer is refused", o.testMissingIssuer)
	t.Run("stepping up as another person is refused", o.testOtherSubject)
	t.Run("logout ends the session here and there", o.testLogout)
	t.Run("in Chromium", o.testBrowser)
	t.Run("a provider that is taken away", o.testRemoved) // no sign-in works after it
	t.Run("no secret is left behind", o.testSecrets)
}

func (o *organisation) testStepUp(t *testing.T) {
	p := o.person(t)
	if got := p.signIn(login+"?return_to=/models", "alice"); got != "/models" {
		t.Fatalf("the callback leads to %q, want /models", got)
	}
	if !slices.Equal(p.Forms, []string{"password"}) {
		t.Errorf("the provider asked for %v, want the password", p.Forms)
	}
	p.wantMe(map[string]any{"name": "alice", "idp": "university", "auth_method": "sso", "role": "admin", "tenant": "university", "acr": "silver"})

	id := p.me()["sub"]
	if got := p.signIn(login+"?step_up=true&return_to=/flags", "alice"); got != "/flags" {
		t.Fatalf("after the step-up: %q, want /flags", got)
	}
	if !slices.Equal(p.Forms, []string{"password", "code"}) {
		t.Errorf("the provider asked for %v, want password and code: max_age=0 asks again", p.Forms)
	}
	p.wantMe(map[string]any{"sub": id, "acr": "gold", "role": "admin"})
}

func (o *organisation) testManyGroups(t *testing.T) {
	p := o.person(t)
	if got := p.signIn(login, "carol"); got != "/" {
		t.Fatalf("the callback leads to %q, want /", got)
	}
	p.wantMe(map[string]any{"name": "carol", "role": "viewer"})
	size := 0
	for _, c := range p.Cookies() {
		size += len(c.Name) + len(c.Value)
	}
	if size > 300 {
		t.Errorf("the cookies have %d bytes, want under 300", size)
	}
}

func (o *organisation) testNobody(t *testing.T) {
	p := o.person(t)
	if got := p.signIn(login, "nobody"); got != "/?sso_error=no_role" {
		t.Errorf("the callback leads to %q, want no_role", got)
	}
	if me := p.me(); me != nil {
		t.Errorf("got a session: %v", me)
	}
}

func (o *organisation) testReplay(t *testing.T) {
	p, other := o.person(t), o.person(t)
	other.Walk(o.url+login, "carol") // has its own browser key
	callback := p.Walk(o.url+login, "bob")
	if got := other.back(callback); got != "/?sso_error=state_mismatch" {
		t.Errorf("in another browser: %q, want state_mismatch", got)
	}
	if got := p.back(callback); got != "/" {
		t.Errorf("in its own browser: %q, want /", got)
	}
	if got := p.back(callback); got != "/?sso_error=state_mismatch" {
		t.Errorf("once more: %q, want state_mismatch", got)
	}
}

func (o *organisation) testMissingIssuer(t *testing.T) {
	p := o.person(t)
	callback, err := url.Parse(p.Walk(o.url+login, "bob"))
	if err != nil {
		t.Fatal(err)
	}
	q := callback.Query()
	if q.Get("iss") != o.Issuer {
		t.Fatalf("the provider's answer has iss %q; this test needs %q", q.Get("iss"), o.Issuer)
	}
	q.Del("iss")
	callback.RawQuery = q.Encode()
	if got := p.back(callback.String()); got != "/?sso_error=login_rejected" {
		t.Errorf("got %q, want login_rejected", got)
	}
}

func (o *organisation) testOtherSubject(t *testing.T) {
	p := o.person(t)
	p.signIn(login, "bob")
	// The address of the step-up, opened at the provider by a browser in which alice has signed in.
	page := p.Do(http.MethodGet, o.url+login+"?step_up=true", nil)
	if page.Location == nil {
		t.Fatalf("got %d %s, want 302", page.Status, page.Body)
	}
	alice := o.person(t)
	if got := p.back(alice.Walk(page.Location.String(), "alice")); got != "/?sso_error=step_up_not_met" {
		t.Errorf("got %q, want step_up_not_met", got)
	}
	p.wantMe(map[string]any{"name": "bob", "role": "viewer", "acr": "silver"})
}

func (o *organisation) testLogout(t *testing.T) {
	p := o.person(t)
	p.signIn(login, "bob")
	page := p.Do(http.MethodPost, o.url+"/api/auth/sso/logout", nil, "X-PLATFORM-CSRF", "1")
	var answer struct {
		OK            bool   `json:"ok"`
		EndSessionURL string `json:"end_session_url"`
	}
	if err := json.Unmarshal([]byte(page.Body), &answer); err != nil || !answer.OK || page.Status != http.StatusOK {
		t.Fatalf("logout answers %d %s", page.Status, page.Body)
	}
	if me := p.me(); me != nil {
		t.Errorf("after logout: got a session %v", me)
	}
	end := p.Do(http.MethodGet, answer.EndSessionURL, nil)
	if end.Location == nil || end.Location.String() != o.url+"/" {
		t.Fatalf("the provider's logout answers %d to %v, want the way back to the dashboard", end.Status, end.Location)
	}
	p.signIn(login, "bob")
	if !slices.Equal(p.Forms, []string{"password"}) {
		t.Errorf("after logout the provider asked for %v, want the password again", p.Forms)
	}
}

func (o *organisation) testRemoved(t *testing.T) {
	p := o.person(t)
	p.signIn(login, "bob")
	p.wantMe(map[string]any{"name": "bob"})
	o.writeTrust(t, "  deny: ['"+strings.TrimPrefix(fmt.Sprint(p.me()["sub"]), "university:")+"']\n")
	p.awaitNobody("on the deny list")
	o.writeTrust(t, "")
	p.await("off the deny list", func(p *person) error {
		if p.me() == nil {
			return errors.New("still no session")
		}
		return nil
	})
	o.writeTrust(t, "  colour: red\n")
	p.awaitNobody("with a faulty trust file")
	p.await("readiness", func(p *person) error { // a warning: people with a password sign in as before
		if ready := p.Do(http.MethodGet, o.url+"/readyz", nil); ready.Status != http.StatusOK || !strings.Contains(ready.Body, "trust.yaml:9") {
			return fmt.Errorf("/readyz answers %d %s, want 200 with the line", ready.Status, ready.Body)
		}
		return nil
	})
}

// await waits until check succeeds; a changed trust file takes effect within 2 s.
func (p *person) await(what string, check func(p *person) error) {
	p.t.Helper()
	harness.Eventually(p.t, time.Minute, func() error {
		if err := check(p); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

func (p *person) awaitNobody(when string) {
	p.t.Helper()
	p.await(when, func(p *person) error {
		if me := p.me(); me != nil {
			return fmt.Errorf("still a session of %v", me["name"])
		}
		return nil
	})
}
