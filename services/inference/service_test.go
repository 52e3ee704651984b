package inference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/fixture"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// instance is a running service with its registry.
type instance struct {
	t        testing.TB
	url      string
	registry *fixture.Registry
	database string
	nats     string
	bearer   string
	log      *lockedBuffer
	done     chan error // holds what Run returned
}

// option changes the configuration before the start.
type option func(*Config)

// start runs the service on a free port until the test ends, and waits until it is ready.
func start(t testing.TB, registry *fixture.Registry, opts ...option) *instance {
	t.Helper()
	i := launch(t, registry, opts...)
	i.awaits("/readyz", http.StatusOK)
	return i
}

// awaits polls path until it answers with the status.
func (i *instance) awaits(path string, want int) {
	i.t.Helper()
	testenv.Eventually(i.t, 20*time.Second, func() error {
		select {
		case err := <-i.done:
			i.done <- err
			i.t.Fatalf("the service did not start: %v", err)
		default:
		}
		if s, body := i.get(path); s != want {
			return fmt.Errorf("%s: %d %s", path, s, body)
		}
		return nil
	})
}

// launch is start without the wait.
func launch(t testing.TB, registry *fixture.Registry, opts ...option) *instance {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{t: t, url: "http://" + ln.Addr().String(), registry: registry, log: &lockedBuffer{}}
	i.nats = testenv.NATS(t)
	i.database = testenv.Migrated(t, "inference", func(ctx context.Context, url string) error {
		return Migrate(ctx, Config{Base: service.Base{DatabaseURL: service.Secret(url)}})
	})
	cfg, err := LoadConfig([]string{
		"PLATFORM_DATABASE_URL=" + i.database, "NATS_URL=" + i.nats, "TRACKING_URI=" + registry.URL,
		"MODEL_CACHE_DIR=" + t.TempDir(), "RELOAD_POLL_SECONDS=1", "DRAIN_SECONDS=5",
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listener = ln
	cfg.driftEvery = 500 * time.Millisecond
	for _, o := range opts {
		o(&cfg)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	i.done = done
	go func() {
		done <- Run(ctx, cfg, slog.New(slog.NewJSONHandler(i.log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the service ended with %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		if t.Failed() {
			t.Logf("log of the service:\n%s", i.log.String())
		}
	})
	return i
}

func (i *instance) do(method, path string, body any, header ...string) (int, http.Header, string) {
	i.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			i.t.Fatal(err)
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, i.url+path, r)
	if err != nil {
		i.t.Fatal(err)
	}
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if i.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+i.bearer)
	}
	for k := 0; k+1 < len(header); k += 2 {
		req.Header.Set(header[k], header[k+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return resp.StatusCode, resp.Header, string(out)
}

func (i *instance) get(path string) (int, string) {
	i.t.Helper()
	s, _, b := i.do(http.MethodGet, path, nil)
	return s, b
}

func (i *instance) post(path string, body any) (int, string) {
	i.t.Helper()
	s, _, b := i.do(http.MethodPost, path, body)
	return s, b
}

// ok posts and wants 200; dst takes the answer.
func (i *instance) ok(path string, body, dst any) {
	i.t.Helper()
	s, b := i.post(path, body)
	if s != http.StatusOK {
		i.t.Fatalf("POST %s: %d %s", path, s, b)
	}
	if dst != nil {
		if err := json.Unmarshal([]byte(b), dst); err != nil {
			i.t.Fatalf("POST %s: %s: %v", path, b, err)
		}
	}
}

type prediction struct {
	ModelName     string             `json:"model_name"`
	ModelVersion  string             `json:"model_version"`
	RunID         string             `json:"run_id"`
	Prediction    any                `json:"prediction"`
	Alias         string             `json:"alias"`
	Unit          string             `json:"unit"`
	Probabilities map[string]float64 `json:"probabilities"`
	JobID         string             `json:"job_id"`
}

type document struct {
	Status int      `json:"status"`
	Code   string   `json:"code"`
	Detail string   `json:"detail"`
	Loaded []string `json:"loaded"`
	Errors []struct {
		Loc []string `json:"loc"`
		Msg string   `json:"msg"`
	} `json:"errors"`
	RequestID string `json:"request_id"`
}

func (d document) errors() string {
	var out []string
	for _, e := range d.Errors {
		out = append(out, strings.Join(e.Loc, ".")+": "+e.Msg)
	}
	return strings.Join(out, "; ")
}

func problemOf(t testing.TB, status int, body string) document {
	t.Helper()
	var d document
	if err := json.Unmarshal([]byte(body), &d); err != nil || d.Status != status {
		t.Fatalf("%d %s is no problem document (%v)", status, body, err)
	}
	return d
}

// lockedBuffer takes a log from many goroutines.
type lockedBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
