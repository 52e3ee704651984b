package httpd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// The load: as many connections at a time, each for one request, as the contract
// admits; an answer of the size of a run.
const (
	connections = 16
	bodySize    = 1600
)

// BenchmarkBesideNetHTTP answers reads here and with a bare net/http server, both
// with one request a connection and a SHA-256 of the body in each answer, in turns
// within the run. ratio is ours over theirs.
func BenchmarkBesideNetHTTP(b *testing.B) {
	body := bytes.Repeat([]byte("evidence"), bodySize/8)
	ours := benchOurs(b, body)
	theirs := benchTheirs(b, body)
	const rounds = 7
	var ratios []float64
	var rates [2]float64
	for b.Loop() {
		for range rounds {
			a, t := readRate(b, ours), readRate(b, theirs)
			ratios = append(ratios, a/t)
			rates[0] = max(rates[0], a)
			rates[1] = max(rates[1], t)
		}
	}
	sort.Float64s(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(rates[0], "ours/s")
	b.ReportMetric(rates[1], "net-http/s")
}

func benchOurs(b *testing.B, body []byte) string {
	l, err := loopback.Listen(0)
	if err != nil {
		b.Fatal(err)
	}
	base := loopback.BaseHeaders("bench/0.1", "1")
	return serveListener(b, &httpd.Server{Handler: func(w *httpd.Writer, r *httpd.Request) {
		digest := sha256.Sum256(body)
		text := hex.EncodeToString(digest[:])
		h := append(make(httpd.Header, 0, 16), base...)
		_ = w.Answer(200, append(h, httpd.Field{Name: "Content-Type", Value: "application/json; charset=utf-8"},
			httpd.Field{Name: "ETag", Value: `"` + text + `"`}), body)
	}}, l)
}

func benchTheirs(b *testing.B, body []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		digest := sha256.Sum256(body)
		h := w.Header()
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("ETag", `"`+hex.EncodeToString(digest[:])+`"`)
		_, _ = w.Write(body)
	})}
	s.SetKeepAlivesEnabled(false)
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	b.Cleanup(func() { _ = s.Close(); wg.Wait() })
	return l.Addr().String()
}

// readRate returns the number of reads a second that the server at addr answers.
func readRate(b *testing.B, addr string) float64 {
	const span = 400 * time.Millisecond
	var done atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range connections {
		wg.Go(func() {
			buf := make([]byte, 8<<10)
			for time.Since(began) < span {
				if !readOnce(addr, buf) {
					b.Error("no answer")
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

// readOnce does one read; it is the same client for both.
func readOnce(addr string, buf []byte) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET /api/v1/runs/run/demo:0001 HTTP/1.1\r\nHost: 127.0.0.1:8770\r\nAccept: application/json\r\nX-SVC-UI-Token: 0123456789abcdef0123456789abcdef\r\n\r\n"); err != nil {
		return false
	}
	n := 0
	for {
		m, err := c.Read(buf[n:])
		n += m
		if err != nil {
			return err == io.EOF && bytes.HasPrefix(buf[:n], []byte("HTTP/1.1 200 OK\r\n")) && n > bodySize
		}
	}
}
