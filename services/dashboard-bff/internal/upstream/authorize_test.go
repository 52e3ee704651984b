package upstream

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

type fixed map[string]string

func (f fixed) Value(key string) string { return f[key] }

// refusing is a control plane that knows its token and no delegations.
type refusing struct {
	mu    sync.Mutex // guards seen
	seen  []string   // method, kind of credential, body
	token string
}

func (s *refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	kind := "delegation"
	switch bearer {
	case "":
		kind = "none"
	case s.token:
		kind = "token"
	}
	s.mu.Lock()
	s.seen = append(s.seen, strings.TrimSpace(r.Method+" "+kind+" "+string(body)))
	s.mu.Unlock()
	if kind != "token" {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// take returns what came since the last call.
func (s *refusing) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.seen
	s.seen = nil
	return out
}

type recorder struct {
	mu    sync.Mutex // guards facts
	facts []string
	err   error
}

func (r *recorder) audit(_ context.Context, who caller.Caller, action, target string, details map[string]any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.facts = append(r.facts, who.Subject+" "+action+" "+target+" "+details["method"].(string))
	return nil
}

var (
	ana = caller.Caller{Subject: "idp-a:ana", Tenant: "default", Role: caller.Admin, SessionID: "1"}
	vic = caller.Caller{Subject: "idp-a:vic", Tenant: "default", Role: caller.Viewer, SessionID: "2"}
	bob = caller.Caller{Subject: "idp-b:bob", Tenant: "b", Role: caller.Admin, SessionID: "3"}
)

func newClients(t *testing.T, delegates bool) (*Clients, *refusing, *recorder, string) {
	t.Helper()
	service, facts := &refusing{token: "cp-token"}, &recorder{}
	srv := httptest.NewServer(service)
	t.Cleanup(srv.Close)
	cfg := Config{Settings: fixed{"control_plane_url": srv.URL, "control_plane_token": "cp-token", "tracker_url": srv.URL}, LocalTenant: "default", Audit: facts.audit}
	if delegates {
		var err error
		if cfg.Delegator, err = auth.NewDelegator("dashboard", base64.StdEncoding.EncodeToString(make([]byte, 32))); err != nil {
			t.Fatal(err)
		}
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, service, facts, srv.URL
}

// call makes one request and returns its status, 0 for an error.
func call(t *testing.T, c *Clients, s Service, who caller.Caller, method, url string, body io.Reader) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer of-somebody-else")
	res, err := c.Authorize(s, who, http.DefaultTransport).RoundTrip(r)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

func TestRefusedDelegationIsReplacedByTheTokenForItsTenant(t *testing.T) {
	t.Parallel()
	c, service, facts, url := newClients(t, true)
	for _, tc := range []struct {
		name   string
		who    caller.Caller
		method string
		body   io.Reader
		status int
		seen   []string
	}{
		{"an admin writes", ana, "POST", strings.NewReader("{}"), 200, []string{"POST delegation {}", "POST token {}"}},
		{"an admin reads", ana, "GET", nil, 200, []string{"GET delegation", "GET token"}},
		{"a viewer reads", vic, "GET", nil, 200, []string{"GET delegation", "GET token"}},
		{"a viewer writes", vic, "POST", strings.NewReader("{}"), 401, []string{"POST delegation {}"}},
		{"another tenant", bob, "GET", nil, 401, []string{"GET delegation"}},
		{"a body of unknown length", ana, "POST", struct{ io.Reader }{strings.NewReader("{}")}, 401, []string{"POST delegation {}"}},
	} {
		if got := call(t, c, ControlPlane, tc.who, tc.method, url+"/x", tc.body); got != tc.status {
			t.Errorf("%s: %d; want %d", tc.name, got, tc.status)
		}
		if diff := cmp.Diff(tc.seen, service.take()); diff != "" {
			t.Errorf("%s: the service saw (-want +got):\n%s", tc.name, diff)
		}
	}
	want := []string{"idp-a:ana upstream.token_used control_plane/x POST", "idp-a:ana upstream.token_used control_plane/x GET", "idp-a:vic upstream.token_used control_plane/x GET"}
	if diff := cmp.Diff(want, facts.facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestTokenIsNotUsedWithoutARecord(t *testing.T) {
	t.Parallel()
	c, service, facts, url := newClients(t, true)
	facts.err = errors.New("database away")
	if got := call(t, c, ControlPlane, ana, "POST", url+"/x", strings.NewReader("{}")); got != 0 {
		t.Errorf("%d; want an error", got)
	}
	if diff := cmp.Diff([]string{"POST delegation {}"}, service.take()); diff != "" {
		t.Errorf("the service saw (-want +got):\n%s", diff)
	}
	facts.err = nil // the read that could not be recorded does not count as recorded
	call(t, c, ControlPlane, ana, "GET", url+"/x", nil)
	call(t, c, ControlPlane, ana, "GET", url+"/x", nil)
	if len(facts.facts) != 1 {
		t.Errorf("facts %q; want one for the reads of a minute", facts.facts)
	}
}

func TestTokenAloneServesItsTenantOnly(t *testing.T) {
	t.Parallel()
	c, service, facts, url := newClients(t, false)
	for _, tc := range []struct {
		who    caller.Caller
		method string
		status int
		seen   string
	}{{ana, "DELETE", 200, "DELETE token"}, {vic, "GET", 200, "GET token"}, {vic, "DELETE", 401, "DELETE none"}, {bob, "GET", 401, "GET none"}} {
		if got := call(t, c, ControlPlane, tc.who, tc.method, url+"/x", nil); got != tc.status {
			t.Errorf("%s %s: %d; want %d", tc.who.Subject, tc.method, got, tc.status)
		}
		if diff := cmp.Diff([]string{tc.seen}, service.take()); diff != "" {
			t.Errorf("%s %s: the service saw (-want +got):\n%s", tc.who.Subject, tc.method, diff)
		}
	}
	if len(facts.facts) != 2 {
		t.Errorf("facts %q; want two", facts.facts)
	}
}

func TestServicesWithoutCredentialsGetNone(t *testing.T) {
	t.Parallel()
	c, service, _, url := newClients(t, true)
	call(t, c, Tracker, ana, "GET", url+"/x", nil)
	if diff := cmp.Diff([]string{"GET none"}, service.take()); diff != "" {
		t.Errorf("the service saw (-want +got):\n%s", diff)
	}
}

func TestGeneratedClientsSignEachCall(t *testing.T) {
	t.Parallel()
	c, service, _, _ := newClients(t, true)
	client, err := c.ControlPlane(ana)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Livez(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if diff := cmp.Diff([]string{"GET delegation", "GET token"}, service.take()); diff != "" || res.StatusCode != 200 {
		t.Errorf("%d; the service saw (-want +got):\n%s", res.StatusCode, diff)
	}
}
