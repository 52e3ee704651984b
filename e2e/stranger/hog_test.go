//go:build e2e

package stranger

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

const (
	// hogConns is the number of connections that the stranger opens to each port, of each shape in turn.
	hogConns = 1500
	// hogPatience is how long a caller waits for its answer while the hogs hold every port; the fastest of hogTries
	// counts, since other tests share the CPUs.
	hogPatience = time.Second
	hogTries    = 3
	// fillPatience is the wait while they connect, which keeps the machine busy.
	fillPatience = 10 * time.Second
)

// hogShapes take a place and do nothing with it. The last one requests a large answer that needs no credential, and
// does not read it.
func hogShapes() []struct{ name, text string } {
	return []struct{ name, text string }{
		{"silent", ""},
		{"half a header", "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nA: b"},
		{"body held back", "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		{"answer not read", "GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
	}
}

// hog opens connections to every port and keeps them open.
type hog struct {
	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func (h *hog) fill(ports []string, text string) {
	for range hogConns {
		for _, port := range ports {
			c, err := net.DialTimeout("tcp", port, hogPatience)
			if err != nil {
				continue // a refusal is as good for the platform
			}
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetReadBuffer(4 << 10)
			}
			_, _ = io.WriteString(c, text)
			h.mu.Lock()
			h.conns = append(h.conns, c)
			h.mu.Unlock()
		}
	}
}

func (h *hog) leave() {
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.conns = nil
}

// A stranger opens idle connections of every shape to every port: health, a prediction and a sign-in are answered as
// before, over new connections and over old ones.
func TestHogsKeepNobodyOut(t *testing.T) {
	p := harness.New(t)
	p.Start(t, 3*time.Minute)
	p.WaitOutput(t, "Next:", 15*time.Minute, time.Now())
	ports := inspect(t, p).Ports
	calls := polite(t, p)
	for _, c := range calls {
		if took, err := c.try(fillPatience); err != nil {
			t.Fatalf("%s without hogs: %v after %s", c.name, err, took)
		}
	}
	for _, shape := range hogShapes() {
		t.Run(shape.name, func(t *testing.T) {
			h := &hog{}
			defer h.leave()
			filled := make(chan struct{})
			go func() {
				defer close(filled)
				h.fill(ports, shape.text)
			}()
			worst, asked := map[string]time.Duration{}, 0
			for arriving := true; arriving; {
				select {
				case <-filled:
					arriving = false
				default:
					asked += askAll(t, calls, fillPatience)
				}
			}
			for _, c := range calls {
				took, err := c.tryFastest()
				if err != nil {
					t.Errorf("%s: %v after %s, want an answer within %s", c.name, err, took, hogPatience)
				}
				worst[c.name] = took
			}
			t.Logf("%d connections to %d ports, %d requests while they came; afterwards: %v", len(h.conns), len(ports), asked, worst)
		})
	}
}

// askAll makes each call once, except those with a separate limit.
func askAll(t *testing.T, calls []politeCall, limit time.Duration) (asked int) {
	t.Helper()
	for _, c := range calls {
		if c.once {
			continue
		}
		took, err := c.try(limit)
		if err != nil { // those who wait give way to newcomers, and of thousands at once a polite one may be among them
			took, err = c.try(limit)
		}
		if err != nil {
			t.Errorf("%s while the hogs come: %v after %s, want an answer within %s", c.name, err, took, limit)
		}
		asked++
	}
	return asked
}

// politeCall is a call by a well-behaved client.
type politeCall struct {
	name string
	ask  func() (*http.Request, error)
	want int
	once bool // it has a separate limit, ten a minute: sent when all hogs are there
}

// tryFastest returns the shortest of several tries; one within the limit is enough.
func (c politeCall) tryFastest() (took time.Duration, err error) {
	for range hogTries {
		if took, err = c.try(hogPatience); err == nil {
			return took, nil
		}
	}
	return took, err
}

// try sends the request on a new connection.
func (c politeCall) try(limit time.Duration) (time.Duration, error) {
	begin := time.Now()
	req, err := c.ask()
	if err != nil {
		return 0, err
	}
	client := &http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return time.Since(begin), err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return time.Since(begin), err
	}
	if resp.StatusCode != c.want {
		return time.Since(begin), fmt.Errorf("got status %d, want %d", resp.StatusCode, c.want)
	}
	return time.Since(begin), nil
}

func polite(t *testing.T, p *harness.Platform) []politeCall {
	t.Helper()
	get := func(url string) func() (*http.Request, error) {
		return func() (*http.Request, error) { return http.NewRequest(http.MethodGet, url, nil) }
	}
	post := func(url, token, body string) func() (*http.Request, error) {
		return func() (*http.Request, error) {
			req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
			if err == nil {
				req.Header.Set("Content-Type", "application/json")
				if token != "" {
					req.Header.Set("Authorization", "Bearer "+token)
				}
			}
			return req, err
		}
	}
	bodies, err := filepath.Glob(filepath.Join(p.Dir, "samples", "RuntimeClass-job-*.json"))
	if err != nil || len(bodies) == 0 {
		t.Fatalf("held-out jobs: %v, %v; want some", bodies, err)
	}
	job, err := os.ReadFile(bodies[0])
	if err != nil {
		t.Fatal(err)
	}
	password, err := json.Marshal(map[string]string{"password": p.Secret(t, "dashboard_admin_password")})
	if err != nil {
		t.Fatal(err)
	}
	dashboard := "http://" + p.Setting("DASHBOARD_ADDR")
	calls := []politeCall{
		{"health of the tracker", get("http://" + p.Setting("TRACKER_ADDR") + "/health"), http.StatusOK, false},
		{"health of the orchestrator", get("http://" + p.Setting("ORCHESTRATOR_ADDR") + "/api/health"), http.StatusOK, false},
		{"health of the evidence API", get(p.Env["SVC_CONTROL_TOWER_URL"] + "/healthz"), http.StatusOK, false},
		{"prediction", post(p.Env["SERVING_URL"]+"/predict/RuntimeClass", p.Env["SERVING_TOKEN"], string(job)), http.StatusOK, false},
		{"sign-in", post(dashboard+"/api/auth/login", "", string(password)), http.StatusOK, true},
	}
	for name, url := range map[string]string{
		"control plane": p.Env["CONTROL_PLANE_URL"], "inference": p.Env["SERVING_URL"], "bus bridge": p.Env["BUS_BRIDGE_URL"],
		"assistant": p.Env["ASSISTANT_URL"], "dashboard": dashboard,
	} {
		calls = append(calls, politeCall{"health of the " + name, get(url + "/livez"), http.StatusOK, false})
	}
	return calls
}

// A request without a credential whose body never comes is refused at once, on every route with a body.
func TestRefusalsDoNotWaitForBodies(t *testing.T) {
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 3*time.Minute)
	type route struct{ service, port, method, path string }
	routes := []route{
		{"tracker", p.Setting("TRACKER_ADDR"), "POST", "/api/2.0/mlflow/runs/create"},
		{"tracker", p.Setting("TRACKER_ADDR"), "PUT", "/api/2.0/mlflow-artifacts/artifacts/1/x/artifacts/a"},
		{"orchestrator", p.Setting("ORCHESTRATOR_ADDR"), "POST", "/api/flows/filter"},
		{"dashboard tools", p.Setting("DASHBOARD_TOOLS_ADDR"), "POST", "/api/proxy/tracker/api/2.0/mlflow/runs/create"},
	}
	for _, s := range services(p) {
		for _, o := range operations(t, s) {
			if o.writes() && !o.public {
				routes = append(routes, route{s.name, s.port(), o.method, o.path(nil)})
			}
		}
	}
	for _, r := range routes {
		begin := time.Now()
		c, err := net.DialTimeout("tcp", r.port, hogPatience)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(begin.Add(5 * hogPatience))
		_, err = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n", r.method, r.path, r.port)
		head := make([]byte, len("HTTP/1.1 401"))
		if err == nil {
			_, err = io.ReadFull(c, head)
		}
		took := time.Since(begin)
		_ = c.Close()
		if status := string(head[len(head)-3:]); err != nil || took > hogPatience || status != "401" && status != "403" {
			t.Errorf("%s: %s %s: got %q, %v after %s; want 401 or 403 at once", r.service, r.method, r.path, head, err, took)
		}
	}
	t.Logf("%d routes", len(routes))
}
