package metrics_test

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/mlp-platform/platform/services/evidence-api/internal/metrics"
)

// TestTextIsPrometheus reads the text with the parser of the client library and compares every sample with the
// document.
func TestTextIsPrometheus(t *testing.T) {
	t.Parallel()
	var c metrics.Counters
	for status, took := range map[int]time.Duration{
		200: 3 * time.Millisecond, 206: 30 * time.Millisecond, 404: time.Second, 503: time.Minute,
	} {
		c.Answered(status, took)
	}
	c.Inspected()
	version := "1.2.3 \"quoted\" \\ é"
	d := c.Document(metrics.Gauges{Version: version, Requests: 3, MaxRequests: 16, Streams: 2, MaxStreams: 8, Overloaded: 5, Drained: 7})
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(d.Text()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, d.Text())
	}
	const prefix = "svc_control_tower_"
	want := map[string]float64{
		"build_info{version=" + version + "}": 1,
		"requests_total{class=1xx}":           0, "requests_total{class=2xx}": 2, "requests_total{class=3xx}": 0,
		"requests_total{class=4xx}": 1, "requests_total{class=5xx}": 1,
		"requests_in_flight": 3, "requests_in_flight_limit": 16, "event_streams": 2, "event_streams_limit": 8,
		"rejections_total{reason=overload}": 5, "rejections_total{reason=draining}": 7, "run_evidence_inspections_total": 1,
	}
	got := map[string]float64{}
	for name, family := range families {
		if family.GetHelp() == "" {
			t.Errorf(`%s has no help; want family.GetHelp() != ""`, name)
		}
		short, ok := bytes.CutPrefix([]byte(name), []byte(prefix))
		if !ok {
			t.Errorf("%s is not named after the service; want ok", name)
		}
		for _, m := range family.GetMetric() {
			key := string(short)
			for _, l := range m.GetLabel() {
				key += "{" + l.GetName() + "=" + l.GetValue() + "}"
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				got[key] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				got[key] = m.GetGauge().GetValue()
			case dto.MetricType_HISTOGRAM:
				checkHistogram(t, m.GetHistogram(), d)
			default:
				t.Errorf("%s is a %v", name, family.GetType())
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if len(families) != 9 {
		t.Errorf("families %v; want len(families) == 9", slices.Sorted(maps.Keys(families)))
	}
}

// checkHistogram compares the latencies with the document, which uses another unit.
func checkHistogram(t *testing.T, h *dto.Histogram, d metrics.Document) {
	t.Helper()
	if h.GetSampleCount() != 4 || math.Abs(h.GetSampleSum()-61.033) > 1e-9 {
		t.Errorf("%d latencies, %v s; want h.GetSampleCount() == 4 && math.Abs(h.GetSampleSum() - 61.033) <= 1e-9", h.GetSampleCount(), h.GetSampleSum())
	}
	buckets := h.GetBucket()
	if len(buckets) != len(d.Latency.Buckets)+1 {
		t.Fatalf("%d buckets; want len(buckets) == len(d.Latency.Buckets) + 1", len(buckets))
	}
	for i, b := range d.Latency.Buckets {
		if buckets[i].GetUpperBound() != float64(b.LeMS)/1000 || buckets[i].GetCumulativeCount() != uint64(b.Count) {
			t.Errorf("bucket %d: %v; want buckets[i].GetUpperBound() == float64(b.LeMS) / 1000 && buckets[i].GetCumulativeCount() == uint64(b.Count)", i, buckets[i])
		}
	}
	if last := buckets[len(buckets)-1]; !math.IsInf(last.GetUpperBound(), 1) || last.GetCumulativeCount() != 4 {
		t.Errorf("last bucket %v; want math.IsInf(last.GetUpperBound(), 1) && last.GetCumulativeCount() == 4", last)
	}
}
