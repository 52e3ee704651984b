package health_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/health"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type settings map[string]string

func (s settings) Value(key string) string { return s[key] }

// server answers with a status, and counts.
type server struct {
	*httptest.Server
	calls atomic.Int64
	paths sync.Map
}

func answers(t *testing.T, status int) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		s.paths.Store(r.URL.Path, true)
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(func() {
		s.Close()
		service.HTTPClient(0).CloseIdleConnections()
	})
	return s
}

// away returns an address on which nothing listens.
func away(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

type document struct {
	Status    string
	CheckedAt time.Time `json:"checked_at"`
	Services  map[string]struct {
		Status string
		URL    *string
		Note   *string
	}
	Unmeasured []string
}

func newAggregate(t *testing.T, p health.Parts, urls settings) *health.Aggregate {
	t.Helper()
	var err error
	if p.Clients, err = upstream.New(upstream.Config{Settings: urls}); err != nil {
		t.Fatal(err)
	}
	if p.Published == nil {
		p.Published = map[string]string{}
	}
	a, err := health.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func read(t *testing.T, a *health.Aggregate, host string) document {
	t.Helper()
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/api/health", nil)
	req.Host = host
	if err := a.Get(echo.New().NewContext(req, rec)); err != nil || rec.Code != http.StatusOK {
		t.Fatalf("got %d, %v; want 200 always", rec.Code, err)
	}
	var doc document
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatalf("%s: %v", rec.Body, err)
	}
	return doc
}

func (d document) statuses() map[string]string {
	out := map[string]string{}
	for key, s := range d.Services {
		out[key] = s.Status
	}
	return out
}

func TestEveryKeyIsThereAndTellsWhatItsProbeFound(t *testing.T) {
	t.Parallel()
	well, ill, moved, bus := answers(t, 200), answers(t, 503), answers(t, 302), answers(t, 204)
	a := newAggregate(t, health.Parts{SchedulerMode: "mock"}, settings{
		"tracker_url": well.URL, "orchestrator_url": ill.URL + "/api", "serving_url": moved.URL, "bus_url": bus.URL, "metrics_store_url": away(t),
	})
	got := read(t, a, "localhost:8099")
	want := map[string]string{
		"tracker": "ok", "orchestrator": "degraded", "serving": "degraded", "metrics_store": "down", "dashboards": "unknown", "scheduler": "unknown",
		"bus": "ok", "bus_sim": "unknown",
	}
	if diff := cmp.Diff(want, got.statuses()); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"bus_sim", "dashboards", "scheduler"}, got.Unmeasured); diff != "" {
		t.Errorf("unmeasured (-want +got):\n%s", diff)
	}
	for key, s := range got.Services {
		if s.Status == "unknown" && (s.Note == nil || *s.Note == "") {
			t.Errorf("%s is unknown without a note", key)
		}
	}
	if note := *got.Services["dashboards"].Note; note != "not configured" {
		t.Errorf("note of a service without an address: %q, want not configured", note)
	}
	if got.Status != "degraded" || time.Since(got.CheckedAt) > time.Minute {
		t.Errorf("status %s, checked at %s; want degraded, now", got.Status, got.CheckedAt)
	}
	for s, path := range map[*server]string{well: "/health", ill: "/api/health", moved: "/health", bus: "/health"} {
		if _, ok := s.paths.Load(path); !ok || s.calls.Load() != 1 {
			t.Errorf("%d calls of %s, want one of %s: redirects are not followed", s.calls.Load(), s.URL, path)
		}
	}
}

func TestProbePathsOfMetricsStoreAndDashboards(t *testing.T) {
	t.Parallel()
	metrics, dashboards := answers(t, 200), answers(t, 200)
	a := newAggregate(t, health.Parts{}, settings{"metrics_store_url": metrics.URL, "dashboards_url": dashboards.URL})
	if got := read(t, a, "localhost").Status; got != "ok" {
		t.Errorf("status %s, want ok: what is not measured does not change it", got)
	}
	for s, path := range map[*server]string{metrics: "/-/healthy", dashboards: "/api/health"} {
		if _, ok := s.paths.Load(path); !ok {
			t.Errorf("%s was not probed at %s", s.URL, path)
		}
	}
}

func TestTopLevelStatus(t *testing.T) {
	t.Parallel()
	dead := away(t)
	for want, urls := range map[string]settings{
		"ok":       {"tracker_url": answers(t, 200).URL, "serving_url": answers(t, 200).URL},
		"down":     {"tracker_url": dead, "serving_url": dead},
		"degraded": {"tracker_url": dead, "serving_url": answers(t, 200).URL},
		"unknown":  {},
	} {
		if got := read(t, newAggregate(t, health.Parts{}, urls), "localhost").Status; got != want {
			t.Errorf("%v: %s, want %s", urls, got, want)
		}
	}
}

func TestServiceThatDoesNotAnswerIsDownAfterTwoSeconds(t *testing.T) {
	t.Parallel()
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hung.Close)
	a := newAggregate(t, health.Parts{}, settings{"tracker_url": hung.URL, "serving_url": answers(t, 200).URL})
	began := time.Now()
	got := read(t, a, "localhost")
	if took := time.Since(began); took < 2*time.Second || took > 16*time.Second {
		t.Errorf("the round took %s, want 2 s", took)
	}
	if s := got.statuses(); s["tracker"] != "down" || s["serving"] != "ok" {
		t.Errorf("%v, want the tracker alone down", s)
	}
}

func TestOneRoundOfProbesServesAllForFiveSeconds(t *testing.T) {
	t.Parallel()
	s := answers(t, 200)
	a := newAggregate(t, health.Parts{}, settings{"tracker_url": s.URL})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { read(t, a, "localhost") })
	}
	wg.Wait()
	if n := s.calls.Load(); n != 1 {
		t.Errorf("%d probes for 50 requests, want 1", n)
	}
}

func TestPublishedAddresses(t *testing.T) {
	t.Parallel()
	a := newAggregate(t, health.Parts{
		AllowedHosts: []string{"ops.example"},
		Published: map[string]string{
			"tracker": "http://localhost:15000/x", "serving": "https://user:secret@serving.example", "bus": "http://[::1]:18003",
		},
	}, settings{
		"tracker_url": away(t), "serving_url": away(t), "bus_url": away(t),
		"orchestrator_url": "http://127.0.0.1:14200/api", "dashboards_url": "http://grafana.internal:3000", "metrics_store_url": "http://10.1.2.3:9090",
	})
	for host, want := range map[string]map[string]string{
		"ops.example:8099": {"tracker": "http://ops.example:15000/x", "serving": "https://serving.example", "bus": "http://ops.example:18003", "orchestrator": "http://ops.example:14200/api"},
		"localhost:8099":   {"tracker": "http://localhost:15000/x", "serving": "https://serving.example", "bus": "http://localhost:18003", "orchestrator": "http://localhost:14200/api"},
		"[::1]:8099":       {"tracker": "http://[::1]:15000/x", "serving": "https://serving.example", "bus": "http://[::1]:18003", "orchestrator": "http://[::1]:14200/api"},
		"evil.example":     {"tracker": "http://localhost:15000/x", "serving": "https://serving.example", "bus": "http://[::1]:18003", "orchestrator": "http://127.0.0.1:14200/api"},
	} {
		urls := map[string]string{}
		for key, s := range read(t, a, host).Services {
			if s.URL != nil {
				urls[key] = *s.URL
			}
		}
		if diff := cmp.Diff(want, urls); diff != "" {
			t.Errorf("asked as %s (-want +got):\n%s", host, diff)
		}
	}
}

func TestNotesTellNothingOfTheNetwork(t *testing.T) {
	t.Parallel()
	address := away(t)
	a := newAggregate(t, health.Parts{Published: map[string]string{"tracker": "https://tracker.example"}}, settings{"tracker_url": address})
	text := fmt.Sprint(*read(t, a, "localhost").Services["tracker"].Note)
	if strings.Contains(text, strings.TrimPrefix(address, "http://")) || strings.Contains(text, "127.0.0.1") {
		t.Errorf("note %q tells an internal address", text)
	}
}

func TestKeysAreExactlyThoseOfTheContract(t *testing.T) {
	t.Parallel()
	got := read(t, newAggregate(t, health.Parts{}, settings{}), "localhost")
	var keys []string
	for key := range got.Services {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	want := []string{"bus", "bus_sim", "dashboards", "metrics_store", "orchestrator", "scheduler", "serving", "tracker"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
