package recordstest

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// recorded are the answers of a real control plane, one of the tenant default with a spent budget and a failed
// evaluation.
//
//go:embed testdata/*.json
var recorded embed.FS

// Recorded returns one of the recorded answers.
func Recorded[T any](t testing.TB, name string) T {
	t.Helper()
	raw, err := recorded.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Mode is how the control plane behaves.
type Mode int

// The modes. Leaky answers everybody with the facts of the tenant default.
const (
	Well Mode = iota
	Broken
	Hanging
	Unauthorized
	Leaky
)

// ControlPlane answers with recorded documents, to the tenant that a delegation names, until a test changes them.
type ControlPlane struct {
	T   testing.TB
	URL string

	mu     sync.Mutex // guards all below
	mode   Mode
	alerts map[string][]controlplane.Alert      // by tenant
	facts  map[string][]controlplane.AuditEvent // by tenant, newest first
	calls  int
	last   map[string]string // query of the last call to the ledger
	held   chan struct{}     // closed to release an answer that Hold stopped
}

// NewControlPlane serves until the test ends.
func NewControlPlane(t testing.TB) *ControlPlane {
	t.Helper()
	p := &ControlPlane{
		T:      t,
		alerts: map[string][]controlplane.Alert{"default": Recorded[controlplane.AlertList](t, "alerts").Items},
		facts: map[string][]controlplane.AuditEvent{
			"default": Recorded[controlplane.AuditEventList](t, "audit").Items, "platform": Recorded[controlplane.AuditEventList](t, "audit_platform").Items,
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /alerts", p.listAlerts)
	mux.HandleFunc("GET /audit/events", p.listFacts)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	p.URL = srv.URL
	return p
}

// Set changes how it behaves.
func (p *ControlPlane) Set(m Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
}

// SetAlerts replaces what fires for a tenant.
func (p *ControlPlane) SetAlerts(tenant string, alerts ...controlplane.Alert) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alerts[tenant] = alerts
}

// SetFacts replaces the ledger of a tenant; newest first.
func (p *ControlPlane) SetFacts(tenant string, facts ...controlplane.AuditEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts[tenant] = facts
}

// Calls returns the number of calls.
func (p *ControlPlane) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// LastQuery returns the query of the last call to the ledger.
func (p *ControlPlane) LastQuery() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Hold blocks the next list of alerts, with what fires at the time of the request, until the returned function is
// called.
func (p *ControlPlane) Hold() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := make(chan struct{})
	p.held = held
	return func() { close(held) }
}

// admit reports the caller's tenant; ok is false if the answer is given.
func (p *ControlPlane) admit(w http.ResponseWriter, r *http.Request) (tenant string, ok bool) {
	p.mu.Lock()
	mode := p.mode
	p.calls++
	p.mu.Unlock()
	switch mode {
	case Broken:
		http.Error(w, "broken", http.StatusInternalServerError)
		return "", false
	case Hanging:
		<-r.Context().Done()
		return "", false
	case Unauthorized:
		p.refuse(w, http.StatusUnauthorized, "unauthorized")
		return "", false
	case Leaky:
		return "default", true
	}
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	var claims struct {
		Tenant string `json:"tenant"`
	}
	if len(parts) == 3 {
		raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(raw, &claims)
	}
	if claims.Tenant == "" {
		p.refuse(w, http.StatusUnauthorized, "unauthorized")
		return "", false
	}
	return claims.Tenant, true
}

// refuse answers with a recorded problem.
func (p *ControlPlane) refuse(w http.ResponseWriter, status int, name string) {
	raw, err := recorded.ReadFile("testdata/" + name + ".json")
	if err != nil {
		p.T.Error(err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

func (p *ControlPlane) listAlerts(w http.ResponseWriter, r *http.Request) {
	tenant, ok := p.admit(w, r)
	if !ok {
		return
	}
	p.mu.Lock()
	all := slices.Concat(p.alerts[tenant], p.alerts["platform"])
	held := p.held
	p.held = nil
	p.mu.Unlock()
	if held != nil {
		<-held
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	out := controlplane.AlertList{Items: all[min(from, len(all)):]}
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); len(out.Items) > limit {
		next := strconv.Itoa(from + limit)
		out.Items, out.NextCursor = out.Items[:limit], &next
	}
	answer(w, out)
}

func (p *ControlPlane) listFacts(w http.ResponseWriter, r *http.Request) {
	tenant, ok := p.admit(w, r)
	if !ok {
		return
	}
	query := map[string]string{}
	for name, v := range r.URL.Query() {
		query[name] = v[0]
	}
	p.mu.Lock()
	p.last = query
	if query["tenant"] == "platform" {
		tenant = "platform"
	}
	facts := slices.Clone(p.facts[tenant])
	p.mu.Unlock()
	if query["action"] == "refused" {
		p.refuse(w, http.StatusUnprocessableEntity, "invalid")
		return
	}
	if m := query["model"]; m != "" {
		facts = slices.DeleteFunc(facts, func(e controlplane.AuditEvent) bool { return e.Target != "model:"+strings.ToUpper(m) })
	}
	out := controlplane.AuditEventList{Items: []controlplane.AuditEvent{}, Count: int64(len(facts))}
	before, _ := strconv.ParseInt(strings.TrimPrefix(query["cursor"], "before-"), 10, 64)
	limit, _ := strconv.Atoi(query["limit"])
	for _, e := range facts {
		if before > 0 && e.Seq >= before {
			continue
		}
		if len(out.Items) == limit {
			next := fmt.Sprintf("before-%d", out.Items[limit-1].Seq)
			out.NextCursor = &next
			break
		}
		out.Items = append(out.Items, e)
	}
	answer(w, out)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// urls are settings with the control plane's address alone.
type urls string

func (u urls) Value(key string) string {
	if key == "control_plane_url" {
		return string(u)
	}
	return ""
}

// Clients calls the control plane at the URL in the name of the caller; an empty URL is none.
func Clients(t testing.TB, url string) *upstream.Clients {
	t.Helper()
	signer, err := auth.NewDelegator("dashboard", base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	clients, err := upstream.New(upstream.Config{Settings: urls(url), Delegator: signer})
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// Views shares answers of one replica. A test sets the clock on to make it read again.
type Views struct {
	*compose.Pool
	mu    sync.Mutex // guards ahead
	ahead time.Duration
}

// NewViews ends with the test.
func NewViews(t testing.TB, timeout time.Duration) *Views {
	t.Helper()
	v := &Views{}
	pool, err := compose.New(compose.Config{Timeout: timeout, Log: Log(), Now: func() time.Time {
		v.mu.Lock()
		defer v.mu.Unlock()
		return time.Now().Add(v.ahead)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	v.Pool = pool
	return v
}

// Age makes all shared answers too old to be shared.
func (v *Views) Age() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ahead += time.Minute
}
