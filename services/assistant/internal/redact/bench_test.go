package redact_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// toolOutput returns typical output of tools, mixed: logs, JSON, YAML, a description, tables. Secrets are as rare in it
// as in a well-run cluster.
func toolOutput(t testing.TB) string {
	pod, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for b.Len() < 1<<20 {
		b.Write(pod)
		for range 60 {
			b.WriteString("2026-11-20T08:14:03.117Z INFO  [http-nio-8080-exec-4] c.e.shop.OrderController : GET /orders/4711?page=2&size=50 200 in 13 ms trace=4bf92f3577b34da6a3ce929d0e0e4736\n")
			b.WriteString(`{"ts":"2026-11-20T08:14:03Z","level":"warn","msg":"retrying","attempt":3,"err":"dial tcp 10.3.4.5:5432: connect: connection refused","pod":"web-7d9f8b6c5-x2x4z"}` + "\n")
			b.WriteString("    Image:          registry.example/shop/web@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n")
			b.WriteString("web-7d9f8b6c5-x2x4z   1/1   Running   0   3d4h   10.2.3.4   node-3   <none>   <none>\n")
		}
		b.WriteString("level=info token=hunter2-Correct.Horse9 user=bob\n")
	}
	return b.String()
}

// BenchmarkText reports the throughput on tool output, and the ratio to a plain copy in the same run.
func BenchmarkText(b *testing.B) {
	text := toolOutput(b)
	b.SetBytes(int64(len(text)))
	var with, without time.Duration
	for b.Loop() {
		start := time.Now()
		redact.Text(text)
		with += time.Since(start)
		start = time.Now()
		_ = strings.Clone(text)
		without += time.Since(start)
	}
	b.ReportMetric(float64(with)/float64(without), "x-copy")
}

// BenchmarkLine reports the throughput on short texts, such as event messages.
func BenchmarkLine(b *testing.B) {
	line := `Failed to pull image "registry.example/shop/web:2.4.0": rpc error: code = NotFound desc = failed to resolve reference: not found`
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		redact.Text(line)
	}
}
