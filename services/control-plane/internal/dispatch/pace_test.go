package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// slowOrchestrator answers 503 while more than most calls are in progress, as a Prefect server on SQLite does.
type slowOrchestrator struct {
	most       int64
	under      atomic.Int64
	refused    atomic.Int64
	deployment uuid.UUID

	mu   sync.Mutex // guards runs
	runs map[string]uuid.UUID
}

func (s *slowOrchestrator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.under.Add(-1)
	n := s.under.Add(1)
	<-time.After(5 * time.Millisecond) // its work
	w.Header().Set("Content-Type", "application/json")
	if n > s.most {
		s.refused.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"detail": "database is locked"}`))
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/create_flow_run") {
		properties := map[string]any{"model_name": 1, "dataset_cls_name": 1, "is_dummy": 1, "backend_name": 1}
		_ = json.NewEncoder(w).Encode(map[string]any{"id": s.deployment, "name": "platform-dispatch",
			"parameter_openapi_schema": map[string]any{"properties": properties}})
		return
	}
	var in struct {
		Key string `json:"idempotency_key"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	s.mu.Lock()
	id, known := s.runs[in.Key]
	if !known {
		id = uuid.New()
		s.runs[in.Key] = id
	}
	s.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"id": id})
}

// newSender sends to url with a breaker in a real database; opened counts its openings.
func newSender(t *testing.T, url string) (sender *dispatch.Sender, opened *atomic.Int64) {
	t.Helper()
	database := testenv.Migrated(t, "coord", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, "svc", coord.Migrations())
	})
	pool, err := postgres.Open(t.Context(), database, "svc", postgres.MaxConns(8))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	log := slog.New(slog.DiscardHandler)
	client := orchestrator.New(url, nil)
	target, err := dispatch.NewTarget(client, "training_flow/platform-dispatch", log)
	if err != nil {
		t.Fatal(err)
	}
	opened = new(atomic.Int64)
	breaker := coord.NewBreaker(coord.NewPostgres(pool), "orchestrator", 5, time.Minute)
	return dispatch.NewSender(client, target, breaker, 5*time.Minute, func() { opened.Add(1) }, log), opened
}

// 266 of 400 decisions failed here when every client called as soon as possible.
func TestAnOverloadedOrchestratorGetsEveryRun(t *testing.T) {
	t.Parallel()
	const decisions, clients = 400, 16
	server := &slowOrchestrator{most: 3, deployment: uuid.New(), runs: map[string]uuid.UUID{}}
	api := httptest.NewServer(server)
	t.Cleanup(api.Close)
	sender, opened := newSender(t, api.URL+"/api")
	var next, failed atomic.Int64
	var first atomic.Pointer[error]
	var load sync.WaitGroup
	for range clients {
		load.Go(func() {
			for n := next.Add(1); n <= decisions; n = next.Add(1) {
				if _, err := sender.Send(t.Context(), dispatch.Request{Model: "JPCP", Dataset: "JobEmbeddings"}, fmt.Sprint("approval:", n)); err != nil {
					failed.Add(1)
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	load.Wait()
	t.Logf("%d of the orchestrator's answers were 503", server.refused.Load())
	if failed.Load() > 0 {
		t.Errorf("%d of %d decisions failed, the first with %v; want none", failed.Load(), decisions, *first.Load())
	}
	if opened.Load() > 0 {
		t.Errorf("the breaker opened %d times, want never", opened.Load())
	}
	if got := len(server.runs); got != decisions {
		t.Errorf("got %d runs, want %d", got, decisions)
	}
}

// An orchestrator that only answers 503 is broken, not overloaded by this process.
func TestABrokenOrchestratorStillOpensTheBreaker(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(api.Close)
	sender, opened := newSender(t, api.URL+"/api")
	for range 2 { // three attempts and two
		if _, err := sender.Send(t.Context(), dispatch.Request{Model: "JPCP", Dataset: "JobEmbeddings"}, "approval:1"); err == nil {
			t.Error("got no error, want orchestrator_unreachable")
		}
	}
	if opened.Load() != 1 {
		t.Errorf("the breaker opened %d times, want once", opened.Load())
	}
}
