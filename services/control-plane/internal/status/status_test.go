package status_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

type row struct {
	OK        bool     `json:"ok"`
	Status    string   `json:"status"`
	LatencyMS *float64 `json:"latency_ms"`
	Note      *string  `json:"note"`
}

func readStatus(t *testing.T, p *controlplanetest.Plane, bearer string) (services map[string]row, pending *int) {
	t.Helper()
	var out struct {
		Services map[string]row `json:"services"`
		Pending  *int           `json:"pending_approvals"`
	}
	if err := json.Unmarshal(p.Want(200, "GET", "/status", bearer, nil).Body, &out); err != nil {
		t.Fatal(err)
	}
	return out.Services, out.Pending
}

// Each state of a dependency, queried in parallel within the time of one.
func TestStatus(t *testing.T) {
	t.Parallel()
	answering := func(status int) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			if r.URL.Path != "/health" || r.Header.Get("Authorization") != "" {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		return s
	}
	redirecting := answering(http.StatusFound)
	p := controlplanetest.Neighbours(t, "SERVING_URL="+answering(204).URL+"/", "BUS_BRIDGE_URL="+redirecting.URL)
	p.Serve()
	p.Orchestrator.Set(controlplanetest.Hang)
	p.Tracker.Set(controlplanetest.Down)
	p.Notice("JPCP", "abc")
	begin := time.Now()
	services, pending := readStatus(t, p, controlplanetest.Reader)
	if took := time.Since(begin); took > 14*time.Second {
		t.Errorf("took %v; the neighbours are asked at once and have 3 s; want took <= 14 * time.Second", took)
	}
	for key, want := range map[string]struct{ status, note string }{
		"serving":      {"ok", ""},
		"bus":          {"degraded", "answers 302"},
		"tracker":      {"down", "no connection"},
		"orchestrator": {"down", "no answer within 3s"},
	} {
		got, ok := services[key]
		note := ""
		if got.Note != nil {
			note = *got.Note
		}
		if !ok || got.Status != want.status || got.OK != (want.status == "ok") || note != want.note {
			t.Errorf("%s: %+v %q, want %+v", key, got, note, want)
		}
		if (got.LatencyMS != nil) != (want.status != "down") {
			t.Errorf(`%s: latency %v; want (got.LatencyMS != nil) == (want.status != "down")`, key, got.LatencyMS)
		}
	}
	if len(services) != 4 || pending == nil || *pending != 1 {
		t.Errorf("%v, %v pending; want len(services) == 4 && pending != nil && *pending == 1", services, pending)
	}
	if _, pending := readStatus(t, p, controlplanetest.Foreign); pending == nil || *pending != 0 {
		t.Errorf("another tenant sees %v pending; want pending != nil && *pending == 0", pending)
	}
	p.Refused(403, "insufficient_scope", "GET", "/status", controlplanetest.Trainer, nil)
}

// A component that is not configured is reported as unknown; one without a listener is down.
func TestStatusUnconfigured(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "SERVING_URL=http://127.0.0.1:1")
	services, _ := readStatus(t, p, controlplanetest.Reader)
	if bus := services["bus"]; bus.Status != "unknown" || bus.OK || bus.Note == nil || *bus.Note == "" || bus.LatencyMS != nil {
		t.Errorf(`bus: %+v; want bus.Status == "unknown" && !bus.OK && bus.Note != nil && *bus.Note != "" && bus.LatencyMS == nil`, bus)
	}
	if s := services["serving"]; s.Status != "down" || s.OK {
		t.Errorf(`serving: %+v; want s.Status == "down" && !s.OK`, s)
	}
}
