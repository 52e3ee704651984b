package startup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/libs/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// migratedOptions describe a service whose schema is up to date.
func migratedOptions(t *testing.T) startup.Options {
	t.Helper()
	o := startup.Options{
		Name: "sample", Schema: "sample", Addr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler),
		Base: service.Base{
			DatabaseURL: service.Secret(testenv.Postgres(t)), NATSURL: service.Secret(testenv.NATS(t)),
			Coordinator: "postgres", EventPublisher: "nats", EventRelayEnabled: true, NATSReplicas: 1, DrainSeconds: 5,
		},
	}
	if err := startup.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFoundationServesUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := migratedOptions(t)
	o.Listener = ln
	f, err := startup.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	f.OnClose(func() { order = append(order, "first") })
	f.OnClose(func() { order = append(order, "last") })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	testenv.Eventually(t, 30*time.Second, func() error { return startup.CheckHealth(ctx, "http://"+ln.Addr().String()) })
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run = %v, want nil after an orderly stop", err)
	}
	if got, want := strings.Join(order, " "), "last first"; got != want {
		t.Errorf("closers ran %q, want %q", got, want)
	}
	if err := f.Pool.Ping(t.Context()); err == nil {
		t.Error("the pool still answers after Run; want it closed")
	}
}

// throughProxy makes the options reach their database through a proxy.
func throughProxy(t *testing.T, o *startup.Options) *testenv.Proxy {
	t.Helper()
	u, err := url.Parse(o.Base.DatabaseURL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	p := testenv.NewProxy(t, u.Host)
	u.Host = p.Addr()
	o.Base.DatabaseURL = service.Secret(u.String())
	return p
}

// expectStatus reports a GET that is answered with another status, or without the text.
func expectStatus(url string, status int, text string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != status || !strings.Contains(string(body), text) {
		return fmt.Errorf("got %d %s, want %d with %q", resp.StatusCode, body, status, text)
	}
	return nil
}

func TestOpenWaitsForTheDatabaseAndAnswersProbes(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := migratedOptions(t)
	o.Listener, o.Log, o.Base.StartTimeout = ln, slog.New(slog.NewTextHandler(&log, nil)), time.Minute
	database := throughProxy(t, &o)
	database.Refuse()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		f, err := startup.Open(ctx, o)
		if err == nil {
			err = f.Run(ctx)
		}
		done <- err
	}()
	base := "http://" + ln.Addr().String()
	testenv.Eventually(t, 30*time.Second, func() error { return expectStatus(base+"/livez", http.StatusOK, "alive") })
	if err := expectStatus(base+"/readyz", http.StatusServiceUnavailable, "fail: the database does not answer yet"); err != nil {
		t.Error(err)
	}
	database.Resume()
	testenv.Eventually(t, 30*time.Second, func() error { return expectStatus(base+"/readyz", http.StatusOK, "") })
	stop()
	if err := <-done; err != nil {
		t.Errorf("got %v, want nil after an orderly stop", err)
	}
	for _, want := range []string{"waiting for the database", "start_timeout=1m0s", "the database answers"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log.String())
		}
	}
}

func TestOpenGivesUpAtTheStartTimeout(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := migratedOptions(t)
	o.Listener, o.Base.StartTimeout = ln, 3*time.Second
	throughProxy(t, &o).Refuse()
	f, err := startup.Open(t.Context(), o)
	if f != nil || err == nil || !strings.Contains(err.Error(), "within 3s (START_TIMEOUT)") {
		t.Errorf("got %v, %v; want an error that names START_TIMEOUT", f, err)
	}
	if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		conn.Close()
		t.Error("the address is still served; want it free")
	}
}

func TestOpenRefusesAnOutdatedSchema(t *testing.T) {
	t.Parallel()
	o := migratedOptions(t)
	o.Schema = "other"
	f, err := startup.Open(t.Context(), o)
	if f != nil || err == nil || !strings.Contains(err.Error(), "migrate") {
		t.Errorf("Open = %v, %v; want an error that names migrate", f, err)
	}
}

func TestRedisKeysBeginWithTheServiceName(t *testing.T) {
	t.Parallel()
	o := migratedOptions(t)
	o.Name = testenv.Prefix(t)
	o.Base.Coordinator, o.Base.RedisURL = "redis", service.Secret(testenv.Redis(t))
	f, err := startup.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Coordinator.Once(t.Context(), "key", time.Minute); err != nil {
		t.Fatal(err)
	}
	opt, err := redis.ParseURL(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opt)
	defer client.Close()
	keys, err := client.Keys(t.Context(), o.Name+":*").Result()
	if err != nil || len(keys) != 1 {
		t.Errorf("keys under %s: = %v, %v; want one", o.Name, keys, err)
	}
}

// sampleProgram serves nothing: run is called with the result of LoadConfig for the
// environment.
func sampleProgram(run func(string) error) startup.Program[string] {
	return startup.Program[string]{
		Name: "sample", AddrVar: "SAMPLE_ADDR", Addr: "127.0.0.1:1",
		LoadConfig: func(environ []string) (string, error) {
			if len(environ) == 0 {
				return "", errors.New("SAMPLE_ADDR is not set")
			}
			return environ[0], nil
		},
		LogLevel: func(string) string { return "info" },
		Run:      func(_ context.Context, cfg string, _ *slog.Logger) error { return run(cfg) },
	}
}

func TestProgramExitCodes(t *testing.T) {
	t.Parallel()
	ready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(ready.Close)
	unready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"checks": {"store": "fail: the database does not answer", "bus": "ok"}}`))
	}))
	t.Cleanup(unready.Close)
	env := []string{"SAMPLE_ADDR=" + strings.TrimPrefix(ready.URL, "http://")}
	failing := func(string) error { return errors.New("port in use") }
	for name, c := range map[string]struct {
		args, env      []string
		code           int
		stdout, stderr string
	}{
		"serve":            {nil, env, 1, "", "sample: port in use\n"},
		"no configuration": {[]string{"serve"}, nil, 1, "", "sample: cannot start:\nSAMPLE_ADDR is not set\n"},
		"wrong word":       {[]string{"server"}, env, 2, "", `sample: unknown arguments "server"; usage: sample [serve | health [URL] | version | help]` + "\n"},
		"one word too many": {[]string{"serve", "now"}, env, 2, "",
			`sample: unknown arguments "serve now"; usage: sample [serve | health [URL] | version | help]` + "\n"},
		"no schema, no migrate": {[]string{"migrate"}, env, 2, "",
			`sample: unknown arguments "migrate"; usage: sample [serve | health [URL] | version | help]` + "\n"},
		"version":          {[]string{"--version"}, nil, 0, "sample dev\n", ""},
		"healthy":          {[]string{"health"}, env, 0, "ok\n", ""},
		"healthy by URL":   {[]string{"health", ready.URL}, nil, 0, "ok\n", ""},
		"another path":     {[]string{"health", ready.URL + "/livez"}, nil, 1, "", "sample: " + ready.URL + "/livez answered 418\n"},
		"unready says why": {[]string{"health", unready.URL}, nil, 1, "", "sample: " + unready.URL + "/readyz answered 503: store: fail: the database does not answer\n"},
		"not a URL":        {[]string{"health", "localhost:1"}, nil, 2, "", `sample: "localhost:1" is not an http or https URL` + "\n"},
		"nobody listens":   {[]string{"health"}, nil, 1, "", "sample: health check failed: Get \"http://127.0.0.1:1/readyz\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := sampleProgram(failing).Execute(t.Context(), c.args, c.env, nil, &stdout, &stderr)
			if code != c.code || stdout.String() != c.stdout || stderr.String() != c.stderr {
				t.Errorf("exit %d, stdout %q, stderr %q\nwant %d, %q, %q; want code == c.code && stdout.String() == c.stdout && stderr.String() == c.stderr", code, stdout.String(), stderr.String(), c.code, c.stdout, c.stderr)
			}
		})
	}
}
