package model_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
)

// tokensInBench is the number of tokens in one answer of the benchmark.
const tokensInBench = 4000

// BenchmarkToken measures the engine's overhead for each token of an answer, compared with a reader that only splits
// the same stream into lines. The target is under 1 ms.
func BenchmarkToken(b *testing.B) {
	step := scripttest.Say("word ")
	step.Repeat = tokensInBench
	s := setup(b, model.Config{Tokens: 1 << 30, Time: time.Minute}, scripttest.Always(step))
	var bare, whole time.Duration
	for b.Loop() {
		s.sink.text.Reset()
		began := time.Now()
		if _, err := s.Investigate(b.Context(), newTurn("why does api crash?"), s.cluster, s.sink); err != nil {
			b.Fatal(err)
		}
		whole += time.Since(began)
		bodies := s.server.Bodies()
		began = time.Now()
		readStream(b, s.url, bodies[len(bodies)-1])
		bare += time.Since(began)
	}
	each := func(d time.Duration) float64 { return float64(d) / float64(b.N) / tokensInBench }
	b.ReportMetric(each(whole-bare), "added-ns/token")
	b.ReportMetric(each(bare), "bare-ns/token")
	b.ReportMetric(float64(whole)/float64(bare), "ratio")
	if added := each(whole - bare); added > float64(time.Millisecond) {
		b.Errorf("%v added to each token; the reach is under 1 ms; want added <= float64(time.Millisecond)", time.Duration(added))
	}
}

// readStream reads a stream to its end and counts its events.
func readStream(b *testing.B, url string, body []byte) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	n := 0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			n++
		}
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || n < tokensInBench {
		b.Fatalf("%d events, error %v; want n >= tokensInBench", n, err)
	}
}
