// Package inferencetest runs the inference service for tests, and calls it. Only tests import it.
package inferencetest

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
	"github.com/mlp-platform/platform/services/inference/internal/app"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// Instance is a running service with its registry.
type Instance struct {
	T        testing.TB
	URL      string
	Registry *fixturetest.Registry
	Database string
	NATS     string
	Bearer   string // sent with each request, if set

	log  *lockedBuffer
	done chan error // holds the result of Run
}

// Option changes the configuration before the start.
type Option func(*app.Config)

// Start runs the service on a free port until the test ends, and waits until it is ready.
func Start(t testing.TB, registry *fixturetest.Registry, opts ...Option) *Instance {
	t.Helper()
	i := Launch(t, registry, opts...)
	i.Awaits("/readyz", http.StatusOK)
	return i
}

// Awaits polls path until it answers with the status.
func (i *Instance) Awaits(path string, want int) {
	i.T.Helper()
	testenv.Eventually(i.T, 20*time.Second, func() error {
		select {
		case err := <-i.done:
			i.done <- err
			i.T.Fatalf("the service did not start: %v", err)
		default:
		}
		if s, body := i.Get(path); s != want {
			return fmt.Errorf("%s: %d %s", path, s, body)
		}
		return nil
	})
}

// Launch is Start without the wait.
func Launch(t testing.TB, registry *fixturetest.Registry, opts ...Option) *Instance {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &Instance{T: t, URL: "http://" + ln.Addr().String(), Registry: registry, log: &lockedBuffer{}}
	i.NATS = testenv.NATS(t)
	i.Database = testenv.Migrated(t, "inference", func(ctx context.Context, url string) error {
		return app.Migrate(ctx, app.Config{Base: service.Base{DatabaseURL: service.Secret(url)}})
	})
	cfg, err := app.LoadConfig([]string{
		"PLATFORM_DATABASE_URL=" + i.Database, "NATS_URL=" + i.NATS, "TRACKING_URI=" + registry.URL,
		"MODEL_CACHE_DIR=" + t.TempDir(), "RELOAD_POLL_SECONDS=1", "DRAIN_SECONDS=30", "DRAIN_DELAY=0s",
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listener = ln
	cfg.DriftEvery = 500 * time.Millisecond
	for _, o := range opts {
		o(&cfg)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	i.done = done
	go func() {
		done <- app.Run(ctx, cfg, slog.New(slog.NewJSONHandler(i.log, &slog.HandlerOptions{Level: slog.LevelWarn})))
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

// Do sends a request; a string is a body as it is, all else becomes JSON. Header is pairs of name and value.
func (i *Instance) Do(method, path string, body any, header ...string) (int, http.Header, string) {
	i.T.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			i.T.Fatal(err)
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, i.URL+path, r)
	if err != nil {
		i.T.Fatal(err)
	}
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if i.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+i.Bearer)
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

// Get sends GET.
func (i *Instance) Get(path string) (int, string) {
	i.T.Helper()
	s, _, b := i.Do(http.MethodGet, path, nil)
	return s, b
}

// Post sends POST.
func (i *Instance) Post(path string, body any) (int, string) {
	i.T.Helper()
	s, _, b := i.Do(http.MethodPost, path, body)
	return s, b
}

// OK posts and wants 200; dst takes the answer.
func (i *Instance) OK(path string, body, dst any) {
	i.T.Helper()
	s, b := i.Post(path, body)
	if s != http.StatusOK {
		i.T.Fatalf("POST %s: %d %s; want s == %v", path, s, b, http.StatusOK)
	}
	if dst != nil {
		if err := json.Unmarshal([]byte(b), dst); err != nil {
			i.T.Fatalf("POST %s: %s: %v", path, b, err)
		}
	}
}

// Prediction is the answer of a prediction route.
type Prediction struct {
	ModelName     string             `json:"model_name"`
	ModelVersion  string             `json:"model_version"`
	RunID         string             `json:"run_id"`
	Prediction    any                `json:"prediction"`
	Alias         string             `json:"alias"`
	Unit          string             `json:"unit"`
	Probabilities map[string]float64 `json:"probabilities"`
	JobID         string             `json:"job_id"`
}

// Document is a problem document.
type Document struct {
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

// ErrorList is the faults of a request, in one line.
func (d Document) ErrorList() string {
	var out []string
	for _, e := range d.Errors {
		out = append(out, strings.Join(e.Loc, ".")+": "+e.Msg)
	}
	return strings.Join(out, "; ")
}

// ProblemOf reads a body that must be a problem document of the status.
func ProblemOf(t testing.TB, status int, body string) Document {
	t.Helper()
	var d Document
	if err := json.Unmarshal([]byte(body), &d); err != nil || d.Status != status {
		t.Fatalf("%d %s is no problem document (%v); want d.Status == status", status, body, err)
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
