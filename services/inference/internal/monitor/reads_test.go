package monitor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
)

// One client with the scope of predictions must not keep all cores busy.
func TestExpensiveReadsAreComputedOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewInputs(nil, catalog.New(catalog.Config{}), metrics.New(prometheus.NewRegistry()), slog.New(slog.DiscardHandler), Every)
		leave, err := m.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, handler := range map[string]echo.HandlerFunc{"window=5000": m.Status, "z_mode=standard_error": m.Status, "window=100": m.Report} {
			c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/?"+name, nil), httptest.NewRecorder())
			c.SetParamNames("model_name")
			c.SetParamValues("m")
			if err := handler(c); !fault.Overloaded.Has(err) {
				t.Errorf("%s beside another: %v; want overloaded", name, err)
			}
		}
		leave()
		if leave, err = m.enter(t.Context()); err != nil {
			t.Fatalf("after the other: %v; want no error", err)
		}
		leave()
	})
}

// A wide window is read in parts, each of as many rows as one statement may decode.
func TestReportReadsWideWindowsInParts(t *testing.T) {
	t.Parallel()
	m, _ := setup(t, 1)
	ctx := context.Background()
	if _, err := m.pool.Exec(ctx, `insert into snapshots (model, alias, version, prediction, source, norm, mean, std, features, ts)
		select 'WIDE', 'Production', '1', 1, 'http', n, n, n, json_build_object('a', n, 'b', 'x' || n), now() from generate_series(1, $1::int) n`, 2*featureRows+1); err != nil {
		t.Fatal(err)
	}
	if _, err := m.pool.Exec(ctx, `insert into refused_inputs (model, alias, version, source, ts) values ('WIDE', 'Production', '2', 'http', now())`); err != nil {
		t.Fatal(err)
	}
	for newest, want := range map[int]string{
		20: "20 19 19 2", featureRows: "500 499 499 2", featureRows + 1: "501 500 500 2", 5000: "1002 1001 1001 2",
	} {
		in, columns, version, err := readInputs(ctx, m.queries, place{"WIDE", "Production"}, newest)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(in.Len(), len(columns["a"].Values), len(columns["b"].Labels), " ", version); got != want {
			t.Errorf("the newest %d: rows, numbers, texts and version %s; want %s", newest, got, want)
		}
		if n := len(columns["a"].Values); n > 0 && columns["a"].Values[0] != 2*featureRows+1 {
			t.Errorf("the newest %d: first %v; want the newest, %d", newest, columns["a"].Values[0], 2*featureRows+1)
		}
	}
}
