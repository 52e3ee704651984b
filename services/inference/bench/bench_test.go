package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

func TestMain(m *testing.M) { inferencetest.Main(m) }

const (
	clients  = 64
	features = 18
	trees    = 100
	depth    = 6
	rounds   = 5
	bearer   = "bench-secret-of-enough-length"
	// adminBearer may change rules.
	adminBearer = "another-secret-of-length"
)

// roundTime is how long each side of each round runs; BENCH_SECONDS changes it.
func roundTime(b *testing.B) time.Duration {
	if v := os.Getenv("BENCH_SECONDS"); v != "" {
		d, err := time.ParseDuration(v + "s")
		if err != nil {
			b.Fatalf("BENCH_SECONDS: %v", err)
		}
		return d
	}
	return 3 * time.Second
}

// predictBodies vary, since a row that repeats makes trees look faster than they are.
func predictBodies() [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	var out [][]byte
	for range 256 {
		row := map[string]float64{}
		for i := range features {
			row[fmt.Sprintf("f%02d", i)] = float64(r.IntN(100000)) / 1000
		}
		raw, err := json.Marshal(map[string]any{"features": row})
		if err != nil {
			panic(err) // a map of numbers
		}
		out = append(out, raw)
	}
	return out
}

// echoJSON is the floor: a bare handler that reads JSON and writes it.
func echoJSON(w http.ResponseWriter, r *http.Request) {
	var v any
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// BenchmarkPredict runs floor and service in turn, with credentials, metrics, snapshots and micro-batching
// on, and reports the medians of the rounds' ratios.
func BenchmarkPredict(b *testing.B) {
	url := startService(b)
	floor := httptest.NewServer(http.HandlerFunc(echoJSON))
	b.Cleanup(floor.Close)
	rows := predictBodies()
	ctx := context.Background()
	load := func(url string, d time.Duration) Result {
		r, err := Load(ctx, url, bearer, rows, clients, d)
		if err != nil {
			b.Fatal(err)
		}
		if r.Failed > 0 {
			b.Fatalf("%d requests failed at %s; want r.Failed <= 0", r.Failed, url)
		}
		return r
	}
	load(floor.URL, time.Second)
	load(url, time.Second)
	var rates, tails, floors, predicts, p99s []float64
	for b.Loop() {
		for range rounds {
			f := load(floor.URL, roundTime(b))
			p := load(url, roundTime(b))
			b.Logf("floor %6.0f/s p50 %v p99 %v   predict %6.0f/s p50 %v p99 %v", f.PerSecond, f.P50, f.P99, p.PerSecond, p.P50, p.P99)
			rates = append(rates, p.PerSecond/f.PerSecond)
			tails = append(tails, float64(p.P99)/float64(f.P99))
			floors, predicts = append(floors, f.PerSecond), append(predicts, p.PerSecond)
			p99s = append(p99s, float64(p.P99.Microseconds()))
		}
	}
	b.Log(snapshotSummary(b, url))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medianOf(floors), "floor/s")
	b.ReportMetric(medianOf(predicts), "predict/s")
	b.ReportMetric(medianOf(p99s), "p99-us")
	b.ReportMetric(medianOf(rates), "ratio")
	b.ReportMetric(medianOf(tails), "p99-ratio")
}

// snapshotSummary returns the counters of the predictions' snapshots.
func snapshotSummary(b *testing.B, predictURL string) string {
	return scrape(b, strings.TrimSuffix(predictURL, "/predict/runtime"), "snapshot_|batch_rows_(sum|count)")
}

// scrape returns the metrics whose names begin with a match of the expression names, in one line.
func scrape(b *testing.B, base, names string) string {
	resp, err := http.Get(base + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return string(bytes.Join(regexp.MustCompile(`(?m)^(`+names+`).*$`).FindAll(text, -1), []byte(", ")))
}

func medianOf(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// startService runs the service with one tree model and answers the URL that predicts.
func startService(b *testing.B) string {
	reg := fixturetest.NewRegistry(b)
	for _, alias := range []string{"Production", "Canary"} {
		reg.Alias("runtime", alias, reg.Register("runtime", fixturetest.Trees(b, "runtime", features, trees, depth), nil))
	}
	return serve(b, reg, testenv.NATS(b)) + "/predict/runtime"
}

// serve runs the service on the models of a registry and answers its URL.
func serve(b *testing.B, reg *fixturetest.Registry, natsURL string, settings ...string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	database := testenv.Migrated(b, "inference", func(ctx context.Context, url string) error {
		return inference.Migrate(ctx, inference.Config{Base: service.Base{DatabaseURL: service.Secret(url)}})
	})
	cfg, err := inference.LoadConfig(append([]string{
		"PLATFORM_DATABASE_URL=" + database, "NATS_URL=" + natsURL, "DRAIN_DELAY=0s", "TRACKING_URI=" + reg.URL, "MODEL_CACHE_DIR=" + b.TempDir(),
		`INFERENCE_CREDENTIALS_JSON={"` + bearer + `":{"principal":"bench","tenant":"default","scopes":["predict"]},` +
			`"` + adminBearer + `":{"principal":"ops","tenant":"default","scopes":["admin"]}}`,
	}, settings...))
	if err != nil {
		b.Fatal(err)
	}
	cfg.Listener = ln
	if os.Getenv("BENCH_DIRECT") != "" { // BenchmarkBus as in platform: no connection between bridge and service
		var br inference.BridgeConfig
		inference.LinkBridge(&cfg, &br)
		benchLink = br.Link
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- inference.Run(ctx, cfg, slog.New(slog.NewJSONHandler(io.Discard, nil))) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	base := "http://" + ln.Addr().String()
	testenv.Eventually(b, 20*time.Second, func() error {
		resp, err := http.Get(base + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", resp.Status)
		}
		return nil
	})
	return base
}
