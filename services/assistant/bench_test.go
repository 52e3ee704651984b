package assistant_test

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkHandshake measures the time until a stream's handshake and its first status arrive, each request in a
// separate session.
func BenchmarkHandshake(b *testing.B) {
	s := startBench(b)
	var handshakes, statuses []time.Duration
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), "POST", s.url+chatPath, strings.NewReader(chatBody("hello")))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+operator)
		began := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		r := bufio.NewReader(resp.Body)
		for i, into := range []*[]time.Duration{&handshakes, &statuses} {
			line, err := r.ReadString('\n')
			if err != nil || i == 0 && !strings.Contains(line, "stream.start") {
				b.Fatalf(`%v: %s; want (i != 0 || strings.Contains(line, "stream.start"))`, err, line)
			}
			*into = append(*into, time.Since(began))
			if _, err := r.ReadString('\n'); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	for name, all := range map[string][]time.Duration{"handshake": handshakes, "status": statuses} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"-p99-ms")
	}
}
