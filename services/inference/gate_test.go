package inference_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// gatekeeper returns its admissions as the control plane does.
type gatekeeper struct {
	url string

	mu       sync.Mutex // guards all below
	admitted map[string][2]string
	down     bool
}

func newGatekeeper(t *testing.T) *gatekeeper {
	t.Helper()
	g := &gatekeeper{admitted: map[string][2]string{}}
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	g.url = s.URL
	return g
}

func (g *gatekeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := r.URL.Query()
	if g.down || r.URL.Path != "/alias-history" || q.Get("alias") != "Production" || q.Get("holding") != "true" || r.Header.Get("Authorization") != "Bearer reads" {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	items := []any{}
	for model, a := range g.admitted {
		items = append(items, map[string]any{
			"model": model, "alias": "Production", "version": a[0], "previous_version": nil, "from": time.Now(), "to": nil,
			"actor": "operator", "via": "promotion", "promotion_id": nil, "digest": a[1],
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"items": items, "next_cursor": nil})
}

func (g *gatekeeper) admit(model, version, digest string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admitted[model] = [2]string{version, digest}
}

func (g *gatekeeper) setDown(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
}

// gated makes the service accept only the gatekeeper's admissions.
func gated(g *gatekeeper) inferencetest.Option {
	return func(c *inference.Config) {
		c.RequireGate, c.ControlPlaneURL, c.ControlPlaneToken = "true", g.url, service.Secret("reads")
	}
}

// An alias that was moved is not followed until the control plane admits the version; one that was removed keeps
// serving.
func TestProductionIsWhatTheControlPlaneAdmitted(t *testing.T) {
	t.Parallel()
	reg, gate := fixturetest.NewRegistry(t), newGatekeeper(t)
	files1, files2 := tagged(t, 1), tagged(t, 2)
	v1, v2 := reg.Register("tagged", files1, nil), reg.Register("tagged", files2, nil)
	reg.Alias("tagged", "Production", v2)
	gate.admit("TAGGED", v1, fixturetest.Digest(files1))
	i := start(t, reg, gated(gate))
	i.becomes("tagged", v1)
	if _, body := i.Get("/health"); !strings.Contains(body, "not_admitted") {
		t.Errorf("health: got %s, want the fault not_admitted", body)
	}
	gate.admit("TAGGED", v2, fixturetest.Digest(files2))
	i.becomes("tagged", v2)
	reg.Alias("tagged", "Production", "")
	gate.setDown(true) // its last answer stays in force
	var report reloaded
	i.OK("/reload", nil, &report)
	if got := i.version("tagged"); got != v2 {
		t.Errorf("the alias removed and the control plane away: got %s, want version %s", got, v2)
	}
}

// Files that are not those which were admitted are not served, though their tag was changed along.
func TestAdmittedDigestBinds(t *testing.T) {
	t.Parallel()
	reg, gate := fixturetest.NewRegistry(t), newGatekeeper(t)
	v := reg.Register("tagged", tagged(t, 1), nil)
	reg.Alias("tagged", "Production", v)
	gate.admit("TAGGED", v, strings.Repeat("ab", 32))
	i := start(t, reg, gated(gate))
	if s, body := i.Post("/predict/tagged", `{"features": {"x": 1}}`); s != 404 || !strings.Contains(body, "was admitted") {
		t.Errorf("got %d %s, want 404 and that another digest was admitted", s, body)
	}
}

// A Python version is a program, so its files are compared before it is started.
func TestAdmittedDigestBindsBeforePythonStarts(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]inferencetest.Option{"alias": slow, "request": limited(1, "none"), "unkept alias": func(c *inference.Config) { c.PreloadAliases = "Staging" }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := t.TempDir()
			command, err := json.Marshal([]string{"/bin/sh", "-c", "touch " + started + "/{port}; : {model}"})
			if err != nil {
				t.Fatal(err)
			}
			reg, gate := fixturetest.NewRegistry(t), newGatekeeper(t)
			v := reg.Register("forest", fixturetest.Python(twoNumbers, oneNumber), nil)
			reg.Alias("forest", "Production", v)
			gate.admit("FOREST", v, strings.Repeat("ab", 32))
			i := start(t, reg, gated(gate), slow, option, func(c *inference.Config) { c.PyfuncCommand = string(command) })
			for _, body := range []string{`{"features": {"a": 1, "b": 2}}`, `{"features": {"a": 1, "b": 2}, "version": "` + v + `"}`} {
				if s, out := i.Post("/predict/forest", body); s != 404 || !strings.Contains(out, "was admitted") {
					t.Errorf("%s: got %d %s, want 404 and that another digest was admitted", body, s, out)
				}
			}
			if got, err := os.ReadDir(started); err != nil || len(got) != 0 {
				t.Errorf("got %d starts of its scoring server (%v), want none", len(got), err)
			}
		})
	}
}

// The digest also binds a Production version that the first request loads.
func TestAdmittedDigestBindsWhatARequestLoads(t *testing.T) {
	t.Parallel()
	reg, gate := fixturetest.NewRegistry(t), newGatekeeper(t)
	files := tagged(t, 1)
	v := reg.Register("tagged", files, nil)
	reg.Alias("tagged", "Production", v)
	gate.admit("TAGGED", v, strings.Repeat("ab", 32))
	i := start(t, reg, gated(gate), slow, limited(1, "none"))
	if s, body := i.Post("/predict/tagged", `{"features": {"x": 1}}`); s != 404 || !strings.Contains(body, "was admitted") {
		t.Errorf("got %d %s, want 404 and that another digest was admitted", s, body)
	}
	gate.admit("TAGGED", v, fixturetest.Digest(files))
	i.Post("/reload", nil)
	if got := i.version("tagged"); got != v {
		t.Errorf("once its own digest is admitted: got %s, want version %s", got, v)
	}
}

// Admissions are known at the next start, even if the control plane is down then.
func TestAdmissionsOutliveARestart(t *testing.T) {
	t.Parallel()
	reg, gate := fixturetest.NewRegistry(t), newGatekeeper(t)
	files := tagged(t, 1)
	v := reg.Register("tagged", files, nil)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 2), nil))
	gate.admit("TAGGED", v, fixturetest.Digest(files))
	first := start(t, reg, gated(gate))
	first.becomes("tagged", v)
	gate.setDown(true)
	second := start(t, reg, gated(gate), func(c *inference.Config) { c.DatabaseURL = service.Secret(first.Database) })
	second.becomes("tagged", v)
}

// Without credentials the service is open to this machine, so it answers to no name that a web page can have.
func TestOpenServiceRefusesForeignHosts(t *testing.T) {
	t.Parallel()
	i := start(t, fixturetest.NewRegistry(t), func(c *inference.Config) { c.AllowedHosts = []string{"named.example"} })
	ask := func(url, host string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for host, want := range map[string]int{
		"127.0.0.1": 200, "localhost:18001": 200, "[::1]:18001": 200, "rebound.example": 421, "127.0.0.1.example:18001": 421, "localhost.example": 421,
		"named.example:18001": 200, // configured
	} {
		if got := ask(i.URL, host); got != want {
			t.Errorf("host %s: got %d, want %d", host, got, want)
		}
	}
	const secret = "0123456789abcdef0123456789"
	keyed := start(t, fixturetest.NewRegistry(t), func(c *inference.Config) {
		c.Credentials = service.Secret(`{"` + secret + `": {"principal": "a", "tenant": "default", "scopes": ["predict"]}}`)
	})
	if got := ask(keyed.URL, "predict.example"); got != 401 {
		t.Errorf("with credentials, any host: got %d, want 401", got)
	}
}
