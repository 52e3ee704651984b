package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// batchRows are the rows of one V2 request, batchClients those that send them at once.
const (
	batchRows    = 64
	batchClients = 8
)

// BenchmarkV2 runs the graph alone, from as many goroutines as there are processors, and the service with requests of
// 64 rows in JSON, in turn, and reports the median ratio of their rows a second.
func BenchmarkV2(b *testing.B) {
	url := strings.TrimSuffix(startService(b), "/predict/runtime") + "/v2/models/runtime/infer"
	session, err := runtime.OpenBytes(fixturetest.Trees(b, "runtime", features, trees, depth)["model.onnx"], runtime.Options{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = session.Close() })
	bodies, tensors := batches()
	serve := func(d time.Duration) float64 {
		r, err := Load(context.Background(), url, bearer, bodies, batchClients, d)
		if err != nil || r.Failed > 0 {
			b.Fatalf("%v, %d requests failed; want none", err, r.Failed)
		}
		return r.PerSecond * batchRows
	}
	run := func(d time.Duration) float64 { return runAlone(b, session, tensors, d) }
	run(time.Second)
	serve(time.Second)
	var ratios, raws []float64
	for b.Loop() {
		for range rounds {
			raw, v2 := run(roundTime(b)), serve(roundTime(b))
			b.Logf("graph alone %8.0f rows/s   V2 %8.0f rows/s", raw, v2)
			ratios, raws = append(ratios, v2/raw), append(raws, raw)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medianOf(raws), "raw-rows/s")
	b.ReportMetric(medianOf(ratios), "ratio")
}

// batches are requests of varying rows, and the same rows as tensors of the graph.
func batches() (bodies [][]byte, tensors [][]runtime.Tensor) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 32 {
		rows := make([][]float32, batchRows)
		in := make([]runtime.Tensor, features)
		for c := range in {
			in[c] = runtime.Tensor{Floats: make([]float32, batchRows), Dims: []int64{batchRows, 1}}
		}
		for i := range rows {
			rows[i] = make([]float32, features)
			for c := range rows[i] {
				v := float32(r.IntN(100000)) / 1000
				rows[i][c], in[c].Floats[i] = v, v
			}
		}
		raw, err := json.Marshal(map[string]any{"inputs": []any{map[string]any{"name": "input", "datatype": "FP32", "shape": []int{batchRows, features}, "data": rows}}})
		if err != nil {
			panic(err) // numbers alone
		}
		bodies, tensors = append(bodies, raw), append(tensors, in)
	}
	return bodies, tensors
}

// runAlone is how many rows a second the graph answers without a service.
func runAlone(b *testing.B, session *runtime.Session, tensors [][]runtime.Tensor, d time.Duration) float64 {
	var runs atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range goruntime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := 0; time.Since(start) < d; i++ {
				if _, err := session.Run(tensors[i%len(tensors)]); err != nil {
					b.Error(err)
					return
				}
				runs.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(runs.Load()*batchRows) / time.Since(start).Seconds()
}

// BenchmarkShadow runs predictions with and without a shadow of every request, in turn, and reports the median ratios.
func BenchmarkShadow(b *testing.B) {
	url := startService(b)
	base := strings.TrimSuffix(url, "/predict/runtime")
	rows := predictBodies()
	load := func() Result {
		r, err := Load(context.Background(), url, bearer, rows, clients, roundTime(b))
		if err != nil || r.Failed > 0 {
			b.Fatalf("%v, %d requests failed; want none", err, r.Failed)
		}
		return r
	}
	load()
	var rates, halves []float64
	for b.Loop() {
		for range rounds {
			setShadow(b, base, 0)
			without := load()
			setShadow(b, base, 100)
			with := load()
			b.Logf("without %6.0f/s p50 %v p99 %v   with %6.0f/s p50 %v p99 %v", without.PerSecond, without.P50, without.P99, with.PerSecond, with.P50, with.P99)
			rates, halves = append(rates, with.PerSecond/without.PerSecond), append(halves, float64(with.P50)/float64(without.P50))
		}
	}
	b.Log(scrape(b, base, "shadow_total"))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medianOf(rates), "ratio")
	b.ReportMetric(medianOf(halves), "p50-ratio")
}

func setShadow(b *testing.B, base string, percent int) {
	b.Helper()
	req, err := http.NewRequest(http.MethodPut, base+"/shadow-rules/runtime", bytes.NewReader(fmt.Appendf(nil, `{"alias": "Canary", "percent": %d}`, percent)))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminBearer)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		b.Fatalf("shadow rule: %s %s, want 200", resp.Status, body)
	}
}
