package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	goruntime "runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// BenchmarkResidents sends a prediction to each of 1,000 models, of which 100 may be loaded, and reports the peak
// memory of this process in MiB: it includes the service, and the registry with all files. Each model is first tried in
// a separate process, which takes most of the time; after residentsTime it reports how many models were queried.
func BenchmarkResidents(b *testing.B) {
	const models, most, residentsTime = 1000, 100, 90 * time.Second
	reg := fixturetest.NewRegistry(b)
	files := fixturetest.Trees(b, "runtime", features, trees, depth)
	for n := range models {
		name := fmt.Sprintf("m%04d", n)
		reg.Alias(name, "Production", reg.Register(name, files, nil))
	}
	base := serve(b, reg, testenv.NATS(b), fmt.Sprintf("MODELS_RESIDENT_MAX=%d", most), "PRELOAD_ALIASES=none")
	goruntime.GC()
	before, after := resident(b), 0.0
	body := predictBodies()[0]
	asked := 0
	for b.Loop() {
		asked = 0
		end := time.Now().Add(residentsTime)
		var wg sync.WaitGroup
		names := make(chan int)
		for range 4 {
			wg.Go(func() {
				for n := range names {
					if err := sendOnce(context.Background(), http.DefaultClient, fmt.Sprintf("%s/predict/m%04d", base, n), bearer, body); err != nil {
						b.Errorf("model %d: %v", n, err)
					}
				}
			})
		}
		for n := range models {
			if time.Now().After(end) {
				break
			}
			names <- n
			asked++
			if n%50 == 0 {
				after = max(after, resident(b))
			}
		}
		close(names)
		wg.Wait()
		after = max(after, resident(b))
	}
	b.Log(scrape(b, base, "model_aliases|reload_total"))
	b.ReportMetric(float64(asked), "models")
	b.ReportMetric(before, "before-MiB")
	b.ReportMetric(after, "most-MiB")
}

// resident is the memory of this process, in MiB.
func resident(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		b.Fatalf("no VmRSS in %s", text)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}
