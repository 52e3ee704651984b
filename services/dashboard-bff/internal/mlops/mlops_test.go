package mlops_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/mlops"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// fixture is the views over recorded services, with a clock that a test moves.
type fixture struct {
	*viewtest.Kit
	views *mlops.Views
	ahead atomic.Int64
}

func setup(t testing.TB) *fixture {
	t.Helper()
	return setupWithin(t, viewtest.Timeout)
}

// setupWithin gives the sources another timeout.
func setupWithin(t testing.TB, timeout time.Duration) *fixture {
	t.Helper()
	f := &fixture{Kit: viewtest.New(t)}
	now := func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }
	f.Pool = viewtest.NewPool(t, timeout, now)
	var err error
	f.views, err = mlops.New(mlops.Parts{Pool: f.Pool, Clients: f.Clients, Log: slog.New(slog.DiscardHandler), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// rules are traffic rules as the serving service lists them.
const rules = `{"items":[{"model":"JPCP","rules":{"Production":90,"Canary":10},"updated_at":"2026-11-23T08:00:00Z","updated_by":"operator"}],"next_cursor":null}`

// withRules makes the serving service answer traffic rules.
func (f *fixture) withRules() *fixture {
	f.Serving.Answer("/traffic-rules", http.StatusOK, rules)
	return f
}

func (f *fixture) overview(t *testing.T) viewtest.Answer {
	t.Helper()
	return viewtest.Get(t, f.views.Overview, "/api/v1/overview", "/api/v1/overview")
}

func TestOverviewCountsWhatTheServicesTell(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	got := f.overview(t)
	got.WantPartial()
	got.Want(map[string]any{
		"meta": map[string]any{"service": "dashboard-bff", "api": "v1"}, "traffic": map[string]any{"models_with_rules": 1},
		"drift": map[string]any{"models_tracked": 5}, "_sources.audit.status": "ok",
	})
	if n, _ := got.At("audit.total_events").(float64); n < 50 {
		t.Errorf("audit.total_events is %v, want the number of entries of the ledger", got.At("audit.total_events"))
	}
}

func TestOverviewLeavesOutWhatGaveNoAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Serving.Break()
	got := f.overview(t)
	got.WantPartial("drift", "traffic")
	got.Want(map[string]any{"drift": nil, "traffic": nil, "_sources.drift.status": "error", "_sources.audit.status": "ok"})
}

func TestServingWithoutTrafficRulesIsSkipped(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Serving.Answer("/traffic-rules", http.StatusNotFound, `{"code":"not_found","status":404,"title":"Not found","detail":"There is no such route."}`)
	got := f.overview(t)
	got.WantPartial("traffic")
	got.Want(map[string]any{"_sources.traffic.status": "skipped", "traffic": nil})
}

func TestAuditCountOfAnotherTenantIsNotShown(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.ControlPlane.Edit("/audit/events", func(body string) string { return strings.ReplaceAll(body, `"default"`, `"other"`) })
	got := f.overview(t)
	got.WantPartial("audit")
	got.Want(map[string]any{"audit": nil})
}

func TestHungServiceIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.ControlPlane.Hang()
	began := time.Now()
	first := f.overview(t)
	if took := time.Since(began); took < viewtest.Timeout || took > viewtest.Timeout+10*time.Second {
		t.Errorf("the first view took %s, want about the time-out, %s", took, viewtest.Timeout)
	}
	first.WantPartial("audit")
	first.Want(map[string]any{"_sources.audit.status": "timeout"})
	asked := f.ControlPlane.Calls("")
	for range 5 {
		f.overview(t).WantPartial("audit")
	}
	if more := f.ControlPlane.Calls("") - asked; more > 3*asked { // a request for each view would be five times
		t.Errorf("five more views asked %d times, the first %d; want them at once", more, asked)
	}
}

func TestUnknownQueryParametersAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, r := range []viewtest.Request{
		{Route: "/o", Path: "/o?x=1", Handler: f.views.Overview}, {Route: "/r", Path: "/r?limt=1", Handler: f.views.Registry},
		{Route: "/m/:name", Path: "/m/jpcp?x=1", Handler: f.views.Model}, {Route: "/p/:name", Path: "/p/jpcp?x=1", Handler: f.views.Promotion},
		{Route: "/s/:name", Path: "/s/jpcp?metric=requests&stop=1", Handler: f.views.Series},
	} {
		viewtest.Do(t, r).WantProblem(422, "validation_failed")
	}
}

// slowly delays the answers of a service, as a real one takes its time.
func (f *fixture) slowly(u *viewtest.Upstream, path string, d time.Duration) {
	u.Handle(path, func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
		_, _ = w.Write([]byte(map[string]string{
			"/traffic-rules": rules, "/drift/status": "[]", "/audit/events": `{"items":[],"next_cursor":null,"count":7}`,
		}[path]))
	})
}

// BenchmarkOverviewBesideItsSlowestSource reports what a view adds to the slowest of its sources, none of them shared.
func BenchmarkOverviewBesideItsSlowestSource(b *testing.B) {
	const slowest = 20 * time.Millisecond
	f := setupWithin(b, time.Minute)
	f.slowly(f.Serving, "/traffic-rules", slowest/2)
	f.slowly(f.Serving, "/drift/status", slowest)
	f.slowly(f.ControlPlane, "/audit/events", slowest/4)
	for i := 0; b.Loop(); i++ {
		who := viewtest.Viewer()
		who.Tenant = strconv.Itoa(i) // another tenant shares no answers
		if a := viewtest.Do(b, viewtest.Request{Who: who, Route: "/o", Path: "/o", Handler: f.views.Overview}); a.At("_partial") != nil {
			b.Fatalf("%s", a.Body)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000-slowest.Seconds()*1000, "ms-added/op")
}

// BenchmarkOverviewWithADeadSource reports what a view takes while a source hangs, after a first request waited for
// it.
func BenchmarkOverviewWithADeadSource(b *testing.B) {
	f := setup(b).withRules()
	f.ControlPlane.Hang()
	began := time.Now()
	viewtest.Do(b, viewtest.Request{Route: "/o", Path: "/o", Handler: f.views.Overview})
	first := time.Since(began)
	b.ResetTimer()
	for b.Loop() {
		viewtest.Do(b, viewtest.Request{Route: "/o", Path: "/o", Handler: f.views.Overview})
	}
	b.ReportMetric(float64(first.Microseconds())/1000, "ms-first")
}

func TestWatchSeesADifferenceThatNobodyLooksAt(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.Serving.Edit("/health", func(body string) string { return strings.Replace(body, `"Production":"1"`, `"Production":"7"`, 1) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.views.WatchServing(ctx) }()
	testenv.Eventually(t, 10*time.Second, func() error {
		if n := f.views.Differences(); n != 1 {
			return fmt.Errorf("%d models differ, want 1", n)
		}
		return nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the watch ended with %v", err)
	}
	f.ahead.Store(int64(time.Minute))
	wantRow(t, f.row(t, "JPCP"), map[string]any{"health": "warn"}) // at the first look
}
