package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/direct"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// busUUID is the benchmark's model on the bus.
const busUUID = "7b0c5f4e-2f0a-4c8e-9a52-0d9b1f3f6a11"

// BenchmarkBus sends the same messages to a responder that returns them and to a bridge that has them predicted, in turn,
// from 64 producers, and reports the median ratio of their messages a second. The third figure is /predict itself.
func BenchmarkBus(b *testing.B) {
	reg := fixturetest.NewRegistry(b)
	reg.Alias("runtime", "Production", reg.Register("runtime", fixturetest.Trees(b, "runtime", features, trees, depth), nil))
	natsURL := testenv.NATS(b)
	base := serve(b, reg, natsURL)
	startBridge(b, natsURL, base)
	nc, err := nats.Connect(natsURL)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	bare, err := nats.Connect(natsURL)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bare.Close)
	if _, err := bare.QueueSubscribe("bench.echo", "bench", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		b.Fatal(err)
	}
	if err := bare.Flush(); err != nil {
		b.Fatal(err)
	}
	rows := predictBodies()
	messages := make([][]byte, len(rows))
	for i, row := range rows {
		messages[i] = append([]byte(`{"job_id": "j", "user_id": 7, "num_nodes": 2, `), bytes.TrimPrefix(row, []byte("{"))...)
	}
	load := func(subject string, want []byte, d time.Duration) float64 {
		var done atomic.Int64
		var wg sync.WaitGroup
		start := time.Now()
		for c := range clients {
			wg.Go(func() {
				for i := c; time.Since(start) < d; i++ {
					msg, err := nc.Request(subject, messages[i%len(messages)], 30*time.Second)
					if err != nil || !bytes.Contains(msg.Data, want) {
						b.Errorf("%s: %v %.200s, want %s", subject, err, msg.Data, want)
						return
					}
					done.Add(1)
				}
			})
		}
		wg.Wait()
		return float64(done.Load()) / time.Since(start).Seconds()
	}
	toBare := func(d time.Duration) float64 { return load("bench.echo", []byte("job_id"), d) }
	toBridge := func(d time.Duration) float64 { return load("bus.infer."+busUUID, []byte(`"error":null`), d) }
	toBare(time.Second)
	toBridge(time.Second)
	var ratios, https []float64
	for b.Loop() {
		for range rounds {
			floor, bridged := toBare(roundTime(b)), toBridge(roundTime(b))
			r, err := Load(context.Background(), base+"/predict/runtime", bearer, rows, clients, roundTime(b))
			if err != nil || r.Failed > 0 {
				b.Fatalf("%v, %d requests failed; want none", err, r.Failed)
			}
			b.Logf("bare %6.0f/s   bus %6.0f/s   /predict %6.0f/s", floor, bridged, r.PerSecond)
			ratios, https = append(ratios, bridged/floor), append(https, bridged/r.PerSecond)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medianOf(ratios), "ratio")
	b.ReportMetric(medianOf(https), "ratio-to-http")
}

// startBridge runs a bridge between the broker and the service.
func startBridge(b *testing.B, natsURL, servingURL string) {
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `[{"model_name": "RUNTIME", "datasets": [], "bus_uuid": %q}]`, busUUID)
	}))
	b.Cleanup(control.Close)
	cfg, err := inference.LoadBridgeConfig([]string{"NATS_URL=" + natsURL, "SERVING_URL=" + servingURL, "SERVING_TOKEN=" + bearer, "CONTROL_PLANE_URL=" + control.URL})
	if err != nil {
		b.Fatal(err)
	}
	if cfg.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		b.Fatal(err)
	}
	cfg.Link = benchLink
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- inference.RunBridge(ctx, cfg, slog.New(slog.NewJSONHandler(io.Discard, nil))) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	testenv.Eventually(b, 20*time.Second, func() error {
		resp, err := http.Get("http://" + cfg.Listener.Addr().String() + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", resp.Status)
		}
		return nil
	})
}

// benchLink leads to the service of serve; nil: over HTTP.
var benchLink *direct.Link
