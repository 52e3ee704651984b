package monitor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/drift"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// statements notes the names of the SQL statements that a pool sends.
type statements struct {
	mu    sync.Mutex // guards names
	names []string
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if rest, named := strings.CutPrefix(data.SQL, "-- name: "); named {
		name, _, _ := strings.Cut(rest, " ")
		s.mu.Lock()
		s.names = append(s.names, name)
		s.mu.Unlock()
	}
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// take returns the names since the last call.
func (s *statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.names
	s.names = nil
	return names
}

// setup is a monitor whose database has so many models, each with a baseline and 100 snapshots of the same
// distribution, the newest of version 2.
func setup(t testing.TB, models int) (*Monitor, *statements) {
	t.Helper()
	ctx := context.Background()
	url := testenv.Migrated(t, "monitor", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, store.Schema, store.Migrations())
	})
	plain, err := postgres.Open(ctx, url, store.Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	sent := &statements{}
	cfg := plain.Config()
	cfg.ConnConfig.Tracer = sent
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for _, sql := range []string{
		`insert into snapshots (model, alias, version, prediction, source, norm, mean, std, ts)
		 select 'M' || lpad(m::text, 4, '0'), 'Production', case n when 100 then '2' else '1' end, 50 + 10 * sin(m * 7919.0 + n * 104729.0), 'http', v, v, v, now()
		 from generate_series(1, $1::int) m, generate_series(1, 100) n, lateral (select 1 + 0.1 * sin(m * 7919.0 + n * 104729.0) as v) x`,
		`insert into drift_baselines (model, alias, kind, version, predictions, mean, std, set_at, set_by)
		 select 'M' || lpad(m::text, 4, '0'), 'Production', 'prediction', '1', array(select 50 + 10 * sin(m * 15485863.0 + n * 32452843.0) from generate_series(1, 500) n), 50, 7.1, now(), 'test'
		 from generate_series(1, $1::int) m`,
		`insert into drift_baselines (model, alias, kind, version, predictions, means, stds, zeros, set_at, set_by)
		 select 'M' || lpad(m::text, 4, '0'), 'Production', 'input', '1', v, v, v, 0, now(), 'test'
		 from generate_series(1, $1::int) m, lateral (select array(select 1 + 0.1 * sin(m * 15485863.0 + n * 32452843.0) from generate_series(1, 1000) n) as v) x`,
	} {
		if _, err := plain.Exec(ctx, sql, models); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := plain.Exec(ctx, "analyze snapshots"); err != nil {
		t.Fatal(err)
	}
	return New(pool, catalog.New(catalog.Config{}), metrics.New(prometheus.NewRegistry()), slog.New(slog.DiscardHandler), Every), sent
}

// get calls a handler and decodes its answer.
func get[T any](t testing.TB, handler echo.HandlerFunc, query string, params ...string) (out T, next string) {
	t.Helper()
	rec := httptest.NewRecorder()
	c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/drift/status?"+query, nil), rec)
	c.SetParamNames("model_name")
	c.SetParamValues(params...)
	if err := handler(c); err != nil {
		t.Fatal(err)
	}
	if err := echo.New().JSONSerializer.Deserialize(echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", rec.Body), nil), &out); err != nil {
		t.Fatal(err)
	}
	return out, rec.Header().Get("X-Next-Cursor")
}

// The drift status reads the windows of a hundred models with one statement, and none twice.
func TestDriftStatusReadsAllModelsAtOnce(t *testing.T) {
	t.Parallel()
	m, sent := setup(t, 300)
	const first, perHundred, read = "Baselines SnapshotKeys", " NewestSnapshots", " RecentSnapshotsOfMany"
	for _, tc := range []struct{ query, want string }{
		{"limit=500", first + strings.Repeat(perHundred+read, 3)},
		{"limit=500", first + strings.Repeat(perHundred, 3)},
		{"limit=500&model=m0007", first + perHundred},
	} {
		rows, _ := get[[]api.DriftStatus](t, m.Status, tc.query)
		if got := strings.Join(sent.take(), " "); got != tc.want {
			t.Errorf("%s, %d rows: statements %s; want %s", tc.query, len(rows), got, tc.want)
		}
	}
	rows, next := get[[]api.DriftStatus](t, m.Status, "limit=200")
	rest, end := get[[]api.DriftStatus](t, m.Status, "limit=200&cursor="+next)
	if len(rows) != 200 || len(rest) != 100 || end != "" {
		t.Fatalf("pages of %d and %d rows, then %q; want 200, 100 and no more", len(rows), len(rest), end)
	}
	for i, row := range append(rows, rest...) {
		got := fmt.Sprint(row.Model, " ", row.Alias, " ", row.Version, " ", row.NSnapshots, " ", row.NBaseline, " ", len(row.Recent))
		if want := fmt.Sprintf("M%04d Production 2 100 500 24", i+1); got != want {
			t.Fatalf("row %d: %s; want %s", i, got, want)
		}
	}
}

// The memo of a model ends with its next snapshot, a reset and a new baseline.
func TestDriftStatusFollowsWhatChanges(t *testing.T) {
	t.Parallel()
	m, _ := setup(t, 2)
	exec := func(sql string) func() {
		return func() {
			t.Helper()
			if _, err := m.pool.Exec(context.Background(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	const insert = "insert into snapshots (model, alias, version, prediction, source, norm, mean, std, ts) select 'M0001', 'Production', '3', 999, 'http', 1, 0, 1, now() from generate_series(1, 10)"
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"at first", func() {}, "2 100 500"},
		{"unchanged", func() {}, "2 100 500"},
		{"new snapshots", exec(insert), "3 100 500"},
		{"new baseline", exec("update drift_baselines set predictions = array[1.0, 2.0], set_at = now() where model = 'M0001'"), "3 100 2"},
		{"reset", exec("delete from snapshots where model = 'M0001'"), " 0 2"},
		{"new snapshots after it", exec(insert), "3 10 2"},
	} {
		step.change()
		rows, _ := get[[]api.DriftStatus](t, m.Status, "")
		if got := fmt.Sprint(rows[0].Version, " ", rows[0].NSnapshots, " ", rows[0].NBaseline); got != step.want {
			t.Errorf("%s: version, snapshots and baseline %s; want %s", step.name, got, step.want)
		}
	}
}

// A large window is read in several statements, so that memory stays bounded.
func TestDriftStatusReadsLargeWindowsInParts(t *testing.T) {
	t.Parallel()
	m, sent := setup(t, 5)
	get[[]api.DriftStatus](t, m.Status, "limit=500&window=5000")
	want := []string{"Baselines", "SnapshotKeys", "RecentSnapshotsOfMany", "RecentSnapshotsOfMany", "RecentSnapshotsOfMany"}
	if diff := cmp.Diff(want, sent.take()); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

func TestLatencySeriesIsThePercentileOfEachStep(t *testing.T) {
	t.Parallel()
	m, _ := setup(t, 0)
	const sql = `insert into snapshots (model, alias, version, prediction, source, norm, mean, std, ts, seconds)
		select 'M', 'Production', '1', 1, 'http', 1, 0, 1, timestamptz '2026-01-02T03:00:00Z' + step * interval '1 hour', ms / 1000.0
		from generate_series(0, 1) step, generate_series(1, 100) ms
		union all select 'M', 'Production', '1', 1, 'http', 1, 0, 1, timestamptz '2026-01-02T05:00:00Z', null`
	if _, err := m.pool.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
	got, _ := get[api.Series](t, m.Series, "metric=latency_p95&step=3600&from=2026-01-02T02:00:00Z&to=2026-01-02T06:00:00Z", "m")
	var text []string
	for _, p := range got.Points {
		value := "none"
		if p.Value != nil {
			value = fmt.Sprintf("%.2f", *p.Value)
		}
		text = append(text, p.At.Format(time.TimeOnly)+" "+value)
	}
	// The last hour has only a snapshot of a replica that did not note its time.
	want := []string{"02:00:00 none", "03:00:00 95.05", "04:00:00 95.05", "05:00:00 none"}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

// BenchmarkEvaluate measures the leader's work every 30 s, without the notification of changes, with 1,000 models of
// 100 snapshots each, of predictions and of inputs: while all models get requests, so that each window is read and
// compared again, and while none does.
func BenchmarkEvaluate(b *testing.B) {
	m, _ := setup(b, 1000)
	w := NewInputs(m.pool, m.catalog, m.metrics, m.log, m.every)
	for name, m := range map[string]*Monitor{"predictions": m, "inputs": w} {
		for _, forget := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/all-changed=%t", name, forget), func(b *testing.B) {
				for b.Loop() {
					if forget {
						m.memo.kept = nil
					}
					baselines, err := m.subject.baselines(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					places, err := m.places(b.Context(), baselines)
					if err != nil {
						b.Fatal(err)
					}
					if err := m.evaluate(b.Context(), places, baselines, DefaultWindow, drift.Spread, func(status) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/Every.Seconds()*100, "%of-30s")
			})
		}
	}
}

// Inputs are read together, and their baselines only where something has changed.
func TestInputStatusReadsBaselinesOfWhatChangedAlone(t *testing.T) {
	t.Parallel()
	m, sent := setup(t, 3)
	w := NewInputs(m.pool, m.catalog, m.metrics, m.log, m.every)
	const first, newest, read = "InputBaselines SnapshotKeys", " NewestSnapshots", " RecentInputsOfMany InputBaselinesOfMany"
	for _, want := range []string{first + newest + read, first + newest} {
		rows, _ := get[[]api.DriftStatus](t, w.Status, "limit=500")
		if got := strings.Join(sent.take(), " "); got != want || len(rows) != 3 {
			t.Errorf("%d rows, statements %s; want 3, %s", len(rows), got, want)
		}
	}
}

// BenchmarkDriftStatus is GET /drift/status with 500 models of 100 snapshots each: while all models get
// predictions, so that each window is read again, and while none does.
func BenchmarkDriftStatus(b *testing.B) {
	m, sent := setup(b, 500)
	for name, forget := range map[string]bool{"all-changed": true, "unchanged": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			sent.take()
			for b.Loop() {
				if forget {
					m.memo.kept = nil
				}
				if rows, _ := get[[]api.DriftStatus](b, m.Status, "limit=500"); len(rows) != 500 {
					b.Fatalf("%d rows; want 500", len(rows))
				}
			}
			b.ReportMetric(float64(len(sent.take()))/float64(b.N), "statements/op")
		})
	}
}
