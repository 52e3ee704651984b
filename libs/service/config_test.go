package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
)

type config struct {
	Base
	Addr  string        `env:"T_ADDR" envDefault:"127.0.0.1:1"`
	Token Secret        `env:"T_TOKEN"`
	Poll  time.Duration `env:"T_POLL" envDefault:"10s"`
	Ratio float64       `env:"T_RATIO"`
	Hosts []string      `env:"T_HOSTS"`
	Store struct {
		Key  Secret `env:"KEY"`
		Port int    `env:"PORT" envDefault:"22"`
	} `envPrefix:"T_STORE_"`
}

func (c config) Validate() error {
	return errors.Join(CheckSecret("T_TOKEN", c.Token), RequireLoopbackIfOpen(c.Addr, c.Token != ""))
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	var c config
	if err := LoadConfig(&c, []string{"T_POLL=", "REDIS_URL=redis://localhost:6379", "T_HOSTS=a,b", "HOME=/x", "odd"}); err != nil {
		t.Fatal(err)
	}
	if c.Poll != 10*time.Second || c.Coordinator != "redis" || c.DrainSeconds != 20 || c.DrainDelay != 5*time.Second || c.StartTimeout != time.Minute || !c.EventRelayEnabled ||
		c.NATSURL != "nats://localhost:4222" || c.Store.Port != 22 || len(c.Hosts) != 2 {
		t.Errorf(`%+v; want c.Poll == 10 * time.Second && c.Coordinator == "redis" && c.DrainSeconds == 20 && c.EventRelayEnabled && c.NATSURL == "nats://localhost:4222" && c.Store.Port == 22 && …`, c)
	}
	var d config
	if err := LoadConfig(&d, nil); err != nil || d.Coordinator != "postgres" {
		t.Errorf(`%q %v; want d.Coordinator == "postgres"`, d.Coordinator, err)
	}
}

func TestConfigTellsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var c config
	err := LoadConfig(&c, []string{
		"T_ADDR=0.0.0.0:80", "T_POLL=soon", "T_RATIO=much", "T_STORE_PORT=x", "DRAIN_SECONDS=many", "DRAIN_DELAY=soon", "START_TIMEOUT=later", "EVENT_RELAY_ENABLED=perhaps",
		"COORDINATOR=etcd", "EVENT_PUBLISHER=kafka", "LOG_LEVEL=loud", "T_STORE_KEY=a", "T_STORE_KEY_FILE=b",
		"PLATFORM_DATABASE_URL=postgres://u:changeme@h/db", "NATS_URL_FILE=" + empty, "REDIS_URL_FILE=" + filepath.Join(dir, "absent"),
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`T_POLL is "soon"; it must be a duration such as 30s`, `T_RATIO is "much"; it must be a number`,
		`T_STORE_PORT is "x"; it must be a whole number`, `DRAIN_SECONDS is "many"; it must be a whole number`,
		`DRAIN_DELAY is "soon"; it must be a duration such as 30s`, `START_TIMEOUT is "later"; it must be a duration such as 30s`,
		`EVENT_RELAY_ENABLED is "perhaps"; it must be true or false`, `COORDINATOR is "etcd"`, `EVENT_PUBLISHER is "kafka"`,
		`LOG_LEVEL is "loud"`, "T_STORE_KEY and T_STORE_KEY_FILE are both set", "the password in PLATFORM_DATABASE_URL is a placeholder",
		"NATS_URL_FILE: " + empty + " is empty", "REDIS_URL_FILE names " + filepath.Join(dir, "absent") + ", which does not exist", "address 0.0.0.0:80 can be reached from other machines",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s", want)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 15 {
		t.Errorf("%d faults:\n%v; want n == 15", n, err)
	}
	if strings.Contains(err.Error(), "changeme") {
		t.Error("a secret is shown")
	}
}

func TestSecretFromFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var c config
	if err := LoadConfig(&c, []string{
		"T_TOKEN_FILE=" + write("a", "s3cr3t with = and space\n"), "T_STORE_KEY_FILE=" + write("b", "line 1\nline 2\r\n"),
	}); err != nil {
		t.Fatal(err)
	}
	if c.Token.Reveal() != "s3cr3t with = and space" || c.Store.Key.Reveal() != "line 1\nline 2" {
		t.Errorf("%q %q; want c.Token.Reveal() == \"s3cr3t with = and space\" && c.Store.Key.Reveal() == \"line 1\\nline 2\"", c.Token.Reveal(), c.Store.Key.Reveal())
	}
	var d config
	if err := LoadConfig(&d, []string{"T_TOKEN_FILE=" + write("c", strings.Repeat("x", maxSecretFile+1))}); err == nil {
		t.Error("took a file without bound")
	}
	if err := LoadConfig(&d, []string{"T_TOKEN_FILE=" + write("d", "change-me")}); err == nil || !strings.Contains(err.Error(), "T_TOKEN is a placeholder") {
		t.Errorf(`%v; want an error && strings.Contains(err.Error(), "T_TOKEN is a placeholder")`, err)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	c := config{Token: "hunter2"}
	c.DatabaseURL = "hunter2"
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	NewLogger(&log, "debug").Info("x", "token", c.Token, "config", c)
	for how, text := range map[string]string{
		"v": fmt.Sprintf("%v", c), "+v": fmt.Sprintf("%+v", c), "#v": fmt.Sprintf("%#v", c), "s": fmt.Sprintf("%s", c.Token),
		"q": fmt.Sprintf("%q", c.Token), "x": fmt.Sprintf("%x", c.Token), "d": fmt.Sprintf("%d", c.Token), "json": string(raw), "slog": log.String(), "pointer": fmt.Sprint(&c),
	} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "68756e74657232") {
			t.Errorf(`%s: %s; want !strings.Contains(text, "hunter2") && !strings.Contains(text, "68756e74657232")`, how, text)
		}
	}
	if c.Token.Reveal() != "hunter2" || Secret("").String() != "" {
		t.Error("Reveal or the empty secret")
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for addr, open := range map[string]bool{
		"127.0.0.1:1": true, "127.8.9.1:1": true, "[::1]:1": true, "localhost:1": true,
		"0.0.0.0:1": false, ":1": false, "[::]:1": false, "10.0.0.1:1": false, "example.org:1": false, "localhost": false, "": false,
	} {
		if err := RequireLoopbackIfOpen(addr, false); (err == nil) != open {
			t.Errorf("%q open: %v; want (err == nil) == %v", addr, err, open)
		}
		if err := RequireLoopbackIfOpen(addr, true); err != nil {
			t.Errorf("%q with credentials: %v", addr, err)
		}
	}
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := NewLogger(&out, "warn").With("service", "t").WithGroup("g")
	ctx := auth.WithPrincipal(WithRequestID(t.Context(), "req-1"), auth.Principal{Name: "ci", Tenant: "acme"})
	log.InfoContext(ctx, "quiet")
	log.WarnContext(ctx, "loud", "k", 1)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"service":"t"`) || !strings.Contains(got, `"principal":"ci"`) ||
		!strings.Contains(got, `"request_id":"req-1"`) || strings.Contains(got, "trace_id") {
		t.Error(got, "want strings.Count(got, \"\\n\") == 1 && strings.Contains(got, `\"service\":\"t\"`) && strings.Contains(got, `\"principal\":\"ci\"`) && strings.Contains(got, `\"request_id\":\"req-1\"`) && …")
	}
}

func TestTraceContext(t *testing.T) {
	t.Parallel()
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if Traceparent(context.Background()) != "" || RequestID(context.Background()) != "" {
		t.Error("ids from nowhere")
	}
	for in, kept := range map[string]bool{
		good: true, "01" + good[2:] + "-more": true,
		"": false, "ff" + good[2:]: false, good + "-x": false, good[:54]: false, strings.ToUpper(good): false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false, "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"01" + good[2:] + "x": false, "00-4bf92f3577b34da6a3ce929d0e0e473z-00f067aa0ba902b7-01": false,
	} {
		ctx := WithTrace(t.Context(), "r", in)
		got := Traceparent(ctx)
		if want := map[bool]string{true: in}[kept]; got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	inner := WithRequestID(WithTrace(t.Context(), "a", good), "b")
	if Traceparent(inner) != good || RequestID(inner) != "b" {
		t.Errorf(`%q %q; want Traceparent(inner) == good && RequestID(inner) == "b"`, Traceparent(inner), RequestID(inner))
	}
	if id := RequestID(WithRequestID(t.Context(), "not valid")); len(id) != 36 {
		t.Errorf("%q; want len(id) == 36", id)
	}
}

func FuzzTraceparent(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what")
	f.Fuzz(func(t *testing.T, in string) {
		if validTraceparent(in) && len(traceID(in)) != 32 {
			t.Fatalf("%q; want (!validTraceparent(in) || len(traceID(in)) == 32)", in)
		}
		if validRequestID(in) && strings.ContainsAny(in, "\r\n\x00 ") {
			t.Fatalf("%q; want (!validRequestID(in) || !strings.ContainsAny(in, \"\\r\\n\\x00 \"))", in)
		}
	})
}

func TestClientPassesIDsOn(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	defer srv.Close()
	const callers = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx := WithTrace(t.Context(), "req-1", callers)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := HTTPClient(5 * time.Second)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	h := <-seen
	if h.Get("X-Request-ID") != "req-1" || h.Get("traceparent") != callers {
		t.Errorf("%v; want X-Request-ID req-1 and traceparent %s", h, callers)
	}
	if len(req.Header) != 0 {
		t.Error("the caller's request was changed")
	}
}

func TestClientRefusesRedirectsToOtherHosts(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") }))
	defer other.Close()
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/here":
			http.Redirect(w, r, srv.URL+"/end", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	}))
	defer srv.Close()
	c := HTTPClient(5 * time.Second)
	for path, ok := range map[string]bool{"/away": false, "/here": true, "/loop": false} {
		resp, err := c.Get(srv.URL + path)
		if (err == nil) != ok {
			t.Errorf("%s: %v; want (err == nil) == %v", path, err, ok)
		}
		if resp != nil {
			resp.Body.Close()
		}
	}
}
