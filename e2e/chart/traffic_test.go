//go:build e2e && full

package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// request is one of the requests that traffic repeats.
type request struct {
	name, method, url, token string
	body                     func(n int) any // of the nth request; nil: none
	pause                    time.Duration   // between two requests of one client; some routes allow 120 a minute
	notice                   bool            // the answer names a record that must not be lost
}

// traffic repeats requests through the Services over kept-alive connections, two clients each.
type traffic struct {
	requests []request
	client   *http.Client
	stop     context.CancelFunc
	clients  sync.WaitGroup

	sent, again, failed atomic.Int64
	mu                  sync.Mutex // guards the fields below
	noticed             []string   // ids of records
	failures, resets    []string
	slowest             time.Duration
}

// startTraffic sends until finish is called.
func (w *world) startTraffic(t *testing.T, requests []request) *traffic {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	tr := &traffic{requests: requests, stop: stop, client: &http.Client{
		Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: w.node.Dial, MaxIdleConnsPerHost: 2 * len(requests)},
	}}
	t.Cleanup(func() { stop(); tr.clients.Wait() })
	for _, r := range requests {
		for client := range 2 {
			tr.clients.Go(func() {
				tick := time.NewTicker(r.pause)
				defer tick.Stop()
				for n := client; ; n += 2 {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
						tr.send(r, n)
					}
				}
			})
		}
	}
	return tr
}

// send sends one request, and once more if its connection was reset.
func (tr *traffic) send(r request, n int) {
	began := time.Now()
	tr.sent.Add(1)
	status, answer, err := tr.try(r, n)
	var reset error
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) { // everything else is a failure
		reset = err
		tr.again.Add(1)
		status, answer, err = tr.try(r, n)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if reset != nil {
		tr.resets = append(tr.resets, fmt.Sprintf("%s %s: %v", began.Format("15:04:05.000"), r.name, reset))
	}
	tr.slowest = max(tr.slowest, time.Since(began))
	if err != nil || status != http.StatusOK {
		tr.failed.Add(1)
		tr.failures = append(tr.failures, fmt.Sprintf("%s %s: %d %v %.120s", began.Format("15:04:05.000"), r.name, status, err, answer))
		return
	}
	if r.notice {
		var records struct{ Created, Existing []string }
		if err := json.Unmarshal(answer, &records); err != nil || len(records.Created)+len(records.Existing) != 1 {
			tr.failed.Add(1)
			tr.failures = append(tr.failures, fmt.Sprintf("%s: %v %.120s; want one record", r.name, err, answer))
		}
		tr.noticed = append(tr.noticed, append(records.Created, records.Existing...)...)
	}
}

func (tr *traffic) try(r request, n int) (int, []byte, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body(n))
		if err != nil {
			return 0, nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequest(r.method, r.url, body) // never cancelled: that would look like a failure of the service
	if err != nil {
		return 0, nil, err
	}
	req.Host = "localhost" // a host name that the dashboard accepts
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := tr.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// finish ends the traffic and fails the test unless every request succeeded.
func (tr *traffic) finish(t *testing.T, during string) {
	t.Helper()
	tr.stop()
	tr.clients.Wait()
	t.Logf("%s: %d requests, %d sent once more after a reset, %d failed, the slowest took %s", during, tr.sent.Load(), tr.again.Load(), tr.failed.Load(), tr.slowest.Round(time.Millisecond))
	for _, r := range tr.resets {
		t.Log(r)
	}
	if tr.failed.Load() > 0 || tr.sent.Load() < 100 {
		t.Errorf("%s: %d of %d requests failed, want none of at least 100: %v", during, tr.failed.Load(), tr.sent.Load(), tr.failures)
	}
}
