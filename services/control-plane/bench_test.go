package controlplane_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// pendingRows is the number of pending approvals in these benchmarks.
const pendingRows = 50_000

func startCrowdedPlane(b *testing.B) *controlplanetest.Plane {
	b.Helper()
	p := controlplanetest.Start(b)
	p.SQL(`insert into control_plane.notices (id, commit_msg, changed_files)
		select gen_random_uuid(), 'a change of some models', array(select 'models/a/b' || i from generate_series(1, 20) i) from generate_series(1, 500)`)
	p.SQL(`insert into control_plane.approvals (id, kind, origin, tenant, model_id, status, commit_sha, notice_id, requested_by, requested_at, updated_at, updated_by)
		select gen_random_uuid(), 'retrain', 'ci', 'default', 'MODEL-' || i, 'pending', 'c0ffee', n.id, 'ci', now() - i * interval '1 second', now(), 'ci'
		from generate_series(1, $1) i join (select id, row_number() over () as k from control_plane.notices) n on n.k = 1 + i % 500`, pendingRows)
	// Records decided long ago must not be read.
	p.SQL(`insert into control_plane.approvals (id, kind, origin, tenant, model_id, status, commit_sha, requested_by, requested_at, updated_at, updated_by)
		select gen_random_uuid(), 'retrain', 'ci', 'default', 'MODEL-' || i % 100, 'approved', 'c0ffee', 'ci', now() - interval '30 days', now(), 'ci'
		from generate_series(1, $1) i`, 4*pendingRows)
	p.SQL(`analyze control_plane.approvals`)
	b.ResetTimer()
	return p
}

// BenchmarkApprovalsPage reads all of the pending approvals, a page of 500 at a time, beside /livez of
// the same process as the floor of a request.
func BenchmarkApprovalsPage(b *testing.B) {
	p := startCrowdedPlane(b)
	floor := measureFastest(b, p, "/livez", 50)
	var worst, sum time.Duration
	pages := 0
	for b.Loop() {
		cursor, rows := "", 0
		for {
			path := "/approvals?status=pending&limit=500"
			if cursor != "" {
				path += "&cursor=" + cursor
			}
			body, header, took := timeGet(b, p, path)
			worst, sum, pages = max(worst, took), sum+took, pages+1
			var page []json.RawMessage
			if err := json.Unmarshal(body, &page); err != nil {
				b.Fatal(err)
			}
			rows += len(page)
			if cursor = header.Get("X-Next-Cursor"); cursor == "" {
				break
			}
		}
		if rows != pendingRows {
			b.Fatalf("%d rows; want %v", rows, pendingRows)
		}
	}
	mean := sum / time.Duration(pages)
	b.ReportMetric(inMilliseconds(mean), "ms/page")
	b.ReportMetric(inMilliseconds(worst), "ms/worst-page")
	b.ReportMetric(float64(mean)/float64(floor), "x-livez")
}

// BenchmarkMetricsCrowded scrapes a control plane with that many pending approvals, beside /livez.
func BenchmarkMetricsCrowded(b *testing.B) {
	p := startCrowdedPlane(b)
	floor := measureFastest(b, p, "/livez", 50)
	var worst, sum time.Duration
	n := 0
	for b.Loop() {
		_, _, took := timeGet(b, p, "/metrics")
		worst, sum, n = max(worst, took), sum+took, n+1
	}
	b.ReportMetric(inMilliseconds(sum/time.Duration(n)), "ms/scrape")
	b.ReportMetric(inMilliseconds(worst), "ms/worst-scrape")
	b.ReportMetric(float64(sum/time.Duration(n))/float64(floor), "x-livez")
}

func measureFastest(b *testing.B, p *controlplanetest.Plane, path string, times int) time.Duration {
	best := time.Hour
	for range times {
		_, _, took := timeGet(b, p, path)
		best = min(best, took)
	}
	return best
}

// timeGet measures one request without the harness, which also validates each answer.
func timeGet(b *testing.B, p *controlplanetest.Plane, path string) ([]byte, http.Header, time.Duration) {
	b.Helper()
	begin := time.Now()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, p.URL+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+controlplanetest.Operator)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d %v %s; want resp.StatusCode == http.StatusOK", path, resp.StatusCode, err, body)
	}
	return body, resp.Header, time.Since(begin)
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
