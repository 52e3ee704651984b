package evidenceapi_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

func TestRow53RequestLine(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	line := func(n int) evidenceapitest.Request {
		const around = len("GET  HTTP/1.1\r\n")
		return evidenceapitest.Request{Target: "/nope/" + strings.Repeat("a", n-around-len("/nope/"))}
	}
	tw.Do(line(65536)).Want(404, "not_found")
	if r := tw.Do(line(65537)); r.Status != 414 || strings.Count(string(r.Body), "\n") > 1 || len(r.Body) == 0 {
		t.Errorf("%d %q; want r.Status == 414 && strings.Count(string(r.Body), \"\\n\") <= 1 && len(r.Body) != 0", r.Status, r.Body)
	}
}

func TestRow54Fields(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	long := func(n int) string { return "X-Long: " + strings.Repeat("a", n-len("X-Long: \r\n")) }
	tw.Get("/api/v1/status", long(65536)).Want(200, "")
	if r := tw.Get("/api/v1/status", long(65537)); r.Status != 431 {
		t.Errorf("%d %q; want r.Status == 431", r.Status, r.Body)
	}
	many := func(n int) (out []string) { // in addition to Host and the token
		for i := range n - 2 {
			out = append(out, fmt.Sprintf("X-%d: a", i))
		}
		return out
	}
	tw.Get("/api/v1/status", many(99)...).Want(200, "")
	if r := tw.Get("/api/v1/status", many(100)...); r.Status != 431 {
		t.Errorf("%d %q; want r.Status == 431", r.Status, r.Body)
	}
}

func TestRow55OneRequestAConnection(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.RequestTimeout = 300 * time.Millisecond })
	one := evidenceapitest.Request{Target: "/healthz"}.Text(tw.Addr)
	if got := string(tw.Raw(append(one, one...))); strings.Count(got, "HTTP/1.1 ") != 1 || !strings.HasSuffix(got, "\r\n\r\nok\n") {
		t.Errorf("%q; want strings.Count(got, \"HTTP/1.1 \") == 1 && strings.HasSuffix(got, \"\\r\\n\\r\\nok\\n\")", got)
	}
	began := time.Now()
	if got := tw.Raw([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n")); len(got) != 0 {
		t.Errorf("%q; want len(got) == 0", got)
	}
	if took := time.Since(began); took < 200*time.Millisecond || took > 15*time.Second {
		t.Errorf("after %v; want took >= 200 * time.Millisecond && took <= 5 * time.Second", took)
	}
	for text, status := range map[string]string{"nonsense\r\n\r\n": "400", "GET / HTTP/2.0\r\n\r\n": "505", "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n": "400"} {
		if got := string(tw.Raw([]byte(text))); !strings.HasPrefix(got, "HTTP/1.1 "+status+" ") || !strings.Contains(got, "\r\nX-Request-ID: req_") || strings.Contains(got, "{") {
			t.Errorf("%q: %q; want strings.HasPrefix(got, \"HTTP/1.1 \"+status+\" \") && strings.Contains(got, \"\\r\\nX-Request-ID: req_\") && !strings.Contains(got, \"{\")", text, got)
		}
	}
}

// TestStalledHeads: a thousand connections that send half a head hold the server up until
// they are late, and no longer.
func TestStalledHeads(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.RequestTimeout = 500 * time.Millisecond })
	for range 1000 {
		c, err := net.Dial("tcp4", tw.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	tw.Do(evidenceapitest.Request{Target: "/healthz", NoToken: true}).Want(200, "")
	tw.Get("/api/v1/status").Want(200, "")
}

// TestOpenConnections: with requests and streams to spare and 256 more open, a new connection replaces the one that
// has waited longest for its request; no more than that many are open. The listener pauses while none can be replaced:
// TestListenerPauses of libs/loopback/httpd.
func TestOpenConnections(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.RequestTimeout = 300 * time.Second })
	var open []net.Conn
	for range 16 + 8 + 256 {
		c, err := net.Dial("tcp4", tw.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		open = append(open, c)
	}
	tw.Do(evidenceapitest.Request{Target: "/healthz", NoToken: true}).Want(200, "")
	if err := open[0].SetReadDeadline(time.Now().Add(evidenceapitest.Patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := open[0].Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first that waits: got %d bytes, %v; want it closed for the newcomer", n, err)
	}
	last := open[len(open)-1]
	if err := last.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := last.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the last that waits: got %d bytes, %v; want it open", n, err)
	}
}

func TestRow56SettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	const token = "SVC_CONTROL_TOWER_TOKEN="
	good := strings.Repeat("a", 32)
	for _, env := range []string{
		token + good[:31], token + strings.Repeat("a", 4097), token + good + " b", token, token + good + "é",
		"SVC_CONTROL_TOWER_REQUEST_TIMEOUT=0.05", "SVC_CONTROL_TOWER_REQUEST_TIMEOUT=300.1", "SVC_CONTROL_TOWER_REQUEST_TIMEOUT=x",
		"SVC_CONTROL_TOWER_REQUEST_TIMEOUT=NaN", "SVC_CONTROL_TOWER_REQUEST_TIMEOUT=-1", "SVC_CONTROL_TOWER_MAX_CONCURRENT_REQUESTS=1025",
		"SVC_CONTROL_TOWER_MAX_CONCURRENT_REQUESTS=0", "SVC_CONTROL_TOWER_MAX_SSE_CLIENTS=0", "SVC_CONTROL_TOWER_MAX_SSE_CLIENTS=65",
		"SVC_CONTROL_TOWER_MAX_SSE_CLIENTS=x", "SVC_CONTROL_TOWER_PORT=65536", "SVC_CONTROL_TOWER_PORT=-1",
	} {
		if _, err := evidenceapi.LoadConfig([]string{env}); err == nil {
			t.Errorf("%.60s was taken; want an error", env)
		}
	}
	for _, env := range []string{token + good, token + strings.Repeat("~", 4096), "SVC_CONTROL_TOWER_REQUEST_TIMEOUT=0.1", "SVC_CONTROL_TOWER_REQUEST_TIMEOUT=300",
		"SVC_CONTROL_TOWER_MAX_CONCURRENT_REQUESTS=1024", "SVC_CONTROL_TOWER_MAX_SSE_CLIENTS=64", "SVC_CONTROL_TOWER_PORT=0", "SVC_CONTROL_TOWER_PORT="} {
		if _, err := evidenceapi.LoadConfig([]string{env}); err != nil {
			t.Errorf("%.60s: %v", env, err)
		}
	}
	// All faults at once, and never the secret.
	_, err := evidenceapi.LoadConfig([]string{token + "short-secret", "SVC_CONTROL_TOWER_PORT=x", "SVC_CONTROL_TOWER_MAX_SSE_CLIENTS=99"})
	if err == nil || strings.Count(err.Error(), "\n") != 2 || strings.Contains(err.Error(), "short-secret") {
		t.Error(err, "want an error && strings.Count(err.Error(), \"\\n\") == 2 && !strings.Contains(err.Error(), \"short-secret\")")
	}
	cfg, err := evidenceapi.LoadConfig([]string{token + good})
	if err != nil || strings.Contains(fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg.Token), good) {
		t.Errorf(`the token shows: %v; want !strings.Contains(fmt.Sprintf("%%v %%+v %%#v %%s", cfg, cfg, cfg, cfg.Token), good)`, err)
	}
	for value, on := range map[string]bool{"1": true, "true": true, "yes": true, "on": true, "": false, "0": false, "false": false, "no": false, "off": false, "2": false} {
		if cfg, err := evidenceapi.LoadConfig([]string{"SVC_HTTP_ACCESS_LOG=" + value}); err != nil || (cfg.AccessLog != nil) != on {
			t.Errorf("SVC_HTTP_ACCESS_LOG=%s: %v; want (cfg.AccessLog != nil) == on", value, err)
		}
	}
	// The longest token is as good as any.
	longest := strings.Repeat("~", 4096)
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore, func(c *evidenceapi.Config) { c.Token = evidenceapi.Token(longest) })
	tw.Do(evidenceapitest.Request{Target: "/api/v1/status", NoToken: true, Fields: []string{"X-SVC-UI-Token: " + longest}}).Want(200, "")
	tw.Do(evidenceapitest.Request{Target: "/api/v1/status", NoToken: true, Fields: []string{"X-SVC-UI-Token: " + longest[1:]}}).Want(403, "invalid_session_token")
	// Nothing listens where a setting is refused.
	called := false
	err = evidenceapi.Run(t.Context(), evidenceapi.Config{MaxStreams: 65, Started: func(evidenceapi.Tower) { called = true }}, slog.New(slog.DiscardHandler))
	if err == nil || called {
		t.Error(err, "want an error && !called")
	}
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore)
	var port int
	if _, err := fmt.Sscanf(tw.Addr, "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	err := evidenceapi.Run(t.Context(), evidenceapi.Config{Port: port}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "is taken")`)
	}
}

func TestRow57ThePage(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	bare := tw.Do(evidenceapitest.Request{Target: "/", NoToken: true}).Want(200, "")
	without := func(what string, r *evidenceapitest.Response) {
		t.Helper()
		if strings.Contains(string(r.Body), evidenceapitest.Token) || strings.Contains(string(r.Body), "run/demo:0002") {
			t.Errorf(`%s: token or report in the page; want !strings.Contains(string(r.Body), evidenceapitest.Token) && !strings.Contains(string(r.Body), "run/demo:0002")`, what)
		}
	}
	without("bare", bare)
	without("index", tw.Do(evidenceapitest.Request{Target: "/index.html", NoToken: true}).Want(200, ""))
	without("a wrong code", tw.Do(evidenceapitest.Request{Target: "/?launch=" + strings.Repeat("A", 32), NoToken: true}).Want(200, ""))
	launch := strings.TrimPrefix(tw.Launch(), "http://"+tw.Addr)
	without("its head", tw.Do(evidenceapitest.Request{Method: "HEAD", Target: launch, NoToken: true}))
	full := tw.Do(evidenceapitest.Request{Target: launch, NoToken: true}).Want(200, "")
	if !strings.Contains(string(full.Body), evidenceapitest.Token) || !strings.Contains(string(full.Body), "run/demo:0002") {
		t.Error("no token or no report")
	}
	without("spent", tw.Do(evidenceapitest.Request{Target: launch, NoToken: true}).Want(200, ""))
	if len(launch) != len("/?launch=")+32 {
		t.Error(launch, `want len(launch) == len("/?launch=") + 32`)
	}
	policy := func(r *evidenceapitest.Response) string { return r.Header.Get("Content-Security-Policy") }
	if policy(bare) == policy(full) {
		t.Error("one nonce twice")
	}
}
