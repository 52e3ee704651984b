// Package bench measures reads over the wire beside a floor: a bare net/http server
// that takes one request a connection and answers with the same body after hashing it.
package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

const (
	connections = 16
	rounds      = 9 // of each server, in turn; the median of the ratios counts
	aRound      = 400 * time.Millisecond
)

// BenchmarkReads prints for each read the requests a second of this server and of the
// floor, and their ratio, which is to be at least 0.9.
func BenchmarkReads(b *testing.B) {
	tower := evidenceapitest.Start(b)
	for _, read := range []struct{ name, target string }{
		{"status", "/api/v1/status"},
		{"run", "/api/v1/runs/run/demo:0001"},
		{"evidence", "/api/v1/runs/run/demo:0002/evidence"},
		{"runs", "/api/v1/runs"},
		{"events", "/api/v1/events"},
	} {
		b.Run(read.name, func(b *testing.B) { compareWithFloor(b, tower, []string{read.target}) })
	}
}

// BenchmarkDifferentRuns reads one run after the other, so that no answer is one that
// was given before: each is read from the store, checked and written. The server keeps
// 4 MiB of answers, less than these.
func BenchmarkDifferentRuns(b *testing.B) {
	const runs = 6000
	path := filepath.Join(b.TempDir(), "store.sqlite")
	w, err := store.OpenWriter(b.Context(), path, store.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	targets := make([]string, runs)
	for i := range targets {
		run := fixture.Run()
		run.RunID = fmt.Sprintf("run/bench:%06d", i)
		targets[i] = "/api/v1/runs/" + run.RunID
		if _, err := w.CreateRun(b.Context(), store.CreateRun{Projection: run, IdempotencyKey: run.RunID}); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	compareWithFloor(b, evidenceapitest.Start(b, evidenceapitest.At(path)), targets)
}

// compareWithFloor asks the tower for the targets in turn, and the floor for an answer like the
// first, and reports both.
func compareWithFloor(b *testing.B, tower *evidenceapitest.Tower, targets []string) {
	body := tower.Get(targets[0]).Want(200, "").Body
	floor := startFloor(b, body)
	var asked, askedFloor [][]byte
	for _, target := range targets {
		request := evidenceapitest.Request{Target: target}
		asked, askedFloor = append(asked, request.Text(tower.Addr)), append(askedFloor, request.Text(floor))
	}
	var turn, turnFloor atomic.Int64
	for b.Loop() {
		var ours, theirs, ratios []float64
		measureRate(b, tower.Addr, asked, &turn, len(body)) // warm
		measureRate(b, floor, askedFloor, &turnFloor, len(body))
		for range rounds {
			t := measureRate(b, floor, askedFloor, &turnFloor, len(body))
			o := measureRate(b, tower.Addr, asked, &turn, len(body))
			ours, theirs, ratios = append(ours, o), append(theirs, t), append(ratios, o/t)
		}
		b.ReportMetric(medianOf(ours), "req/s")
		b.ReportMetric(medianOf(theirs), "floor-req/s")
		b.ReportMetric(medianOf(ratios), "ratio")
		b.ReportMetric(0, "ns/op")
	}
}

// startFloor starts the floor and gives its address.
func startFloor(b *testing.B, body []byte) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: evidenceapitest.Patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sum := sha256.Sum256(body)
		h := w.Header()
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("X-SVC-Content-Digest", "sha256:"+hex.EncodeToString(sum[:]))
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})}
	s.SetKeepAlivesEnabled(false)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	b.Cleanup(func() {
		_ = s.Shutdown(context.Background())
		<-ended
	})
	return l.Addr().String()
}

// measureRate asks over 16 connections at a time, a new one for each request, and gives
// the answers a second.
func measureRate(b *testing.B, addr string, requests [][]byte, turn *atomic.Int64, size int) float64 {
	b.Helper()
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	for range connections {
		wg.Go(func() {
			buffer := make([]byte, 64<<10)
			for time.Since(began) < aRound {
				request := requests[turn.Add(1)%int64(len(requests))]
				if err := sendRequest(addr, request, buffer, size); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
	return float64(done.Load()) / time.Since(began).Seconds()
}

// sendRequest sends one request and reads to the end of its connection.
func sendRequest(addr string, request, buffer []byte, size int) error {
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(request); err != nil {
		return err
	}
	n := 0
	for first := true; ; first = false {
		k, err := c.Read(buffer)
		if first && (k < 12 || string(buffer[9:12]) != "200") {
			return fmt.Errorf("answered with %.40q", buffer[:k])
		}
		n += k
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if n < size {
		return fmt.Errorf("%d bytes of %d", n, size)
	}
	return nil
}

func medianOf(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
