//go:build e2e

package dashboard_test

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// sourceSettings are the services that the dashboard shows figures of, as pages name them, with the variables that hold
// their addresses.
var sourceSettings = map[string]string{
	"tracker": "TRACKING_URI", "serving": "SERVING_URL", "control_plane": "CONTROL_PLANE_URL", "orchestrator": "ORCHESTRATOR_API_URL",
}

// TestNoPageClaimsWhatWasNotMeasured stops each source of a dashboard and opens every page in Chromium.
func TestNoPageClaimsWhatWasNotMeasured(t *testing.T) {
	w := sharedWorld(t)
	gates, env := map[string]*harness.Proxy{}, []string{"DASHBOARD_SOURCE_TIMEOUT=" + sourceTimeout.String()}
	var names []string
	for name, variable := range sourceSettings {
		address := strings.TrimSuffix(w.Env[variable], "/api")
		gates[name] = harness.NewProxy(t, harness.FreePorts(t, 1)[0], address)
		env = append(env, variable+"="+gates[name].URL+strings.TrimPrefix(w.Env[variable], address))
		names = append(names, name)
	}
	slices.Sort(names)
	r := w.startReplica(t, env...)
	walk{Part: "truth", Name: "truth", URL: r.url, Model: "MCBOUND", Gates: serveGates(t, gates), Sources: names}.play(t, w.Platform, "truth.cjs")
}

// serveGates lets a script stop and start services: POST /<name>/stop and /<name>/start. It returns the address.
func serveGates(t *testing.T, gates map[string]*harness.Proxy) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		name, state, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		g := gates[name]
		switch {
		case g != nil && state == "stop":
			g.Refuse()
		case g != nil && state == "start":
			g.Forward()
		default:
			http.NotFound(rw, r)
		}
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return "http://" + l.Addr().String()
}
