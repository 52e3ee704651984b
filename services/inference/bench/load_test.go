// Package bench measures POST /predict beside a floor of the same run: a bare net/http handler that decodes
// and encodes the same bodies with encoding/json; and beside its peers, which are other model servers with the
// same graph. `go test -bench . ./bench` prints the ratios.
package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Result of one load.
type Result struct {
	PerSecond float64
	P50, P99  time.Duration
	Failed    int // answers other than 2xx, and broken connections
}

// Load sends the bodies in turn from that many connections for the time given: by wrk where it is
// installed, since it leaves more of the machine to the server, else from this process.
func Load(ctx context.Context, url, bearer string, bodies [][]byte, clients int, d time.Duration) (Result, error) {
	if wrk, err := exec.LookPath("wrk"); err == nil {
		return byWrk(ctx, wrk, url, bearer, bodies, clients, d)
	}
	return byGo(ctx, url, bearer, bodies, clients, d)
}

func byWrk(ctx context.Context, wrk, url, bearer string, bodies [][]byte, clients int, d time.Duration) (Result, error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	var lua strings.Builder
	lua.WriteString("local requests, n, at = {}, 0, 0\nlocal function add(body)\n  n = n + 1\n  requests[n] = body\nend\n")
	for _, b := range bodies {
		fmt.Fprintf(&lua, "add(%q)\n", b)
	}
	fmt.Fprintf(&lua, `
local headers = {["Content-Type"] = "application/json", ["Authorization"] = "Bearer %s"}
function init()
  for i = 1, n do requests[i] = wrk.format("POST", nil, headers, requests[i]) end
end
function request()
  at = at %% n + 1
  return requests[at]
end
function done(summary, latency)
  io.write(string.format("RESULT %%d %%d %%d %%d %%d\n", summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
`, bearer)
	script := filepath.Join(dir, "load.lua")
	if err := os.WriteFile(script, []byte(lua.String()), 0o600); err != nil {
		return Result{}, err
	}
	out, err := exec.CommandContext(ctx, wrk, "-t1", "-c"+strconv.Itoa(clients), fmt.Sprintf("-d%ds", max(1, int(d.Seconds()))), "--timeout", "10s", "-s", script, url).CombinedOutput()
	if err != nil {
		return Result{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	m := regexp.MustCompile(`RESULT (\d+) (\d+) (\d+) (\d+) (\d+)`).FindSubmatch(out)
	if m == nil {
		return Result{}, fmt.Errorf("wrk printed no result: %s", out)
	}
	var v [5]float64
	for i := range v {
		if v[i], err = strconv.ParseFloat(string(m[i+1]), 64); err != nil {
			return Result{}, err
		}
	}
	us := func(f float64) time.Duration { return time.Duration(f) * time.Microsecond }
	return Result{PerSecond: v[0] / v[1] * 1e6, P50: us(v[2]), P99: us(v[3]), Failed: int(v[4])}, nil
}

// requestTime limits one request, as it does wrk's.
const requestTime = 10 * time.Second

// byGo begins no request after the time given, but awaits those under way, and counts them: with a slow server they are
// many, and given up they would be work that it does beside the next load.
func byGo(ctx context.Context, url, bearer string, bodies [][]byte, clients int, d time.Duration) (Result, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: requestTime}
	defer client.CloseIdleConnections()
	var mu sync.Mutex // guards times and failed
	var times []time.Duration
	failed := 0
	var wg sync.WaitGroup
	began := time.Now()
	for c := range clients {
		wg.Go(func() {
			var mine []time.Duration
			bad := 0
			for i := c; ctx.Err() == nil && time.Since(began) < d; i++ {
				start := time.Now()
				if err := sendOnce(ctx, client, url, bearer, bodies[i%len(bodies)]); err == nil {
					mine = append(mine, time.Since(start))
				} else {
					bad++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			times, failed = append(times, mine...), failed+bad
		})
	}
	wg.Wait()
	if len(times) == 0 {
		return Result{}, errors.New("no request succeeded")
	}
	took := time.Since(began)
	slices.Sort(times)
	return Result{
		PerSecond: float64(len(times)) / took.Seconds(), P50: times[len(times)/2], P99: times[len(times)*99/100], Failed: failed,
	}, nil
}

func sendOnce(ctx context.Context, client *http.Client, url, bearer string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+bearer)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
