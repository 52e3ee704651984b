package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/testenv"
)

// Container probes: the worker is alive while it waits for the orchestrator, and ready while the orchestrator accepts
// its heartbeats.
func TestWorkerProbes(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	away.Store(true)
	orchestrator := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case away.Load():
			rw.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasSuffix(r.URL.Path, "/heartbeat"):
			rw.WriteHeader(http.StatusNoContent)
		case strings.HasSuffix(r.URL.Path, "/filter"), strings.HasSuffix(r.URL.Path, "/get_scheduled_flow_runs"):
			_, _ = rw.Write([]byte("[]"))
		default:
			_, _ = rw.Write([]byte(`{"id":"` + uuid.NewString() + `"}`))
		}
	}))
	defer orchestrator.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	cfg, err := LoadConfig([]string{"PREFECT_API_URL=" + orchestrator.URL + "/api", "MODELREPO_DIR=../../../../deploy/modelrepo", "WORKER_ADDR=" + addr,
		"WORKER_STATE_DIR=" + filepath.Join(t.TempDir(), "state"), "WORKER_HEARTBEAT_SECONDS=1", "WORKER_POLL_SECONDS=1"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorker(cfg, []string{"/bin/false"}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	wantProbe(t, addr, "/livez", 200, "")
	wantProbe(t, addr, "/readyz", 503, "not registered at the orchestrator yet")
	away.Store(false)
	wantProbe(t, addr, "/readyz", 200, `"orchestrator":"ok"`)
	away.Store(true)
	wantProbe(t, addr, "/readyz", 503, "the orchestrator has taken no heartbeat for")
	wantProbe(t, addr, "/livez", 200, "")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the worker ended with %v; want no error", err)
	}
	if resp, err := http.Get("http://" + addr + "/livez"); err == nil {
		_ = resp.Body.Close()
		t.Errorf("the probes answer %s after the worker has ended; want no answer", resp.Status)
	}
}

func wantProbe(t *testing.T, addr, path string, status int, text string) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, func() error {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if resp.StatusCode != status || !strings.Contains(string(body), text) {
			return fmt.Errorf("%s answers %d %s; want %d with %q", path, resp.StatusCode, body, status, text)
		}
		return nil
	})
}

// An address that is not available is an error at the start, rather than a worker without probes.
func TestWorkerAddressInUse(t *testing.T) {
	t.Parallel()
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	cfg, err := LoadConfig([]string{"PREFECT_API_URL=http://127.0.0.1:1/api", "MODELREPO_DIR=../../../../deploy/modelrepo",
		"WORKER_ADDR=" + taken.Listener.Addr().String(), "WORKER_STATE_DIR=" + filepath.Join(t.TempDir(), "state")})
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorker(cfg, []string{"/bin/false"}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v; want address already in use", err)
	}
}
