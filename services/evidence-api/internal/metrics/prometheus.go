package metrics

import (
	"fmt"
	"strconv"
	"strings"
)

// TextType is the media type of [Document.Text].
const TextType = "text/plain; version=0.0.4; charset=utf-8"

// Text writes the counters in the Prometheus text format. A dozen fixed names need no registry; the client library
// would add its protocol buffers to every command that starts this server. A test reads the text with that library's
// own parser.
func (d Document) Text() []byte {
	var b strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	single := func(name, kind, help string, v int64) {
		family(name, kind, help)
		fmt.Fprintf(&b, "%s %d\n", name, v)
	}
	const prefix = "svc_control_tower_"
	family(prefix+"build_info", "gauge", "The build that answers.")
	fmt.Fprintf(&b, "%sbuild_info{version=%s} 1\n", prefix, strconv.Quote(d.ServiceVersion))
	family(prefix+"requests_total", "counter", "Answers by status class.")
	for class := '1'; class <= '5'; class++ {
		name := string(class) + "xx"
		fmt.Fprintf(&b, "%srequests_total{class=%q} %d\n", prefix, name, d.Requests.ByStatusClass[name])
	}
	family(prefix+"request_duration_seconds", "histogram", "Time from the head of the request to its answer; of a stream, to its first byte.")
	for _, bucket := range d.Latency.Buckets {
		fmt.Fprintf(&b, "%srequest_duration_seconds_bucket{le=%q} %d\n", prefix, formatSeconds(float64(bucket.LeMS)), bucket.Count)
	}
	fmt.Fprintf(&b, "%srequest_duration_seconds_bucket{le=\"+Inf\"} %d\n", prefix, d.Latency.Count)
	fmt.Fprintf(&b, "%srequest_duration_seconds_sum %s\n%srequest_duration_seconds_count %d\n",
		prefix, formatSeconds(d.Latency.Sum), prefix, d.Latency.Count)
	single(prefix+"requests_in_flight", "gauge", "Requests under way.", int64(d.Concurrency.InFlight))
	single(prefix+"requests_in_flight_limit", "gauge", "Requests that may be under way.", int64(d.Concurrency.MaxInFlight))
	single(prefix+"event_streams", "gauge", "Open event streams.", int64(d.Concurrency.Streams))
	single(prefix+"event_streams_limit", "gauge", "Event streams that may be open.", int64(d.Concurrency.MaxStreams))
	family(prefix+"rejections_total", "counter", "Requests turned away before any work.")
	fmt.Fprintf(&b, "%srejections_total{reason=\"overload\"} %d\n%srejections_total{reason=\"draining\"} %d\n",
		prefix, d.Admission.Overload, prefix, d.Admission.Draining)
	single(prefix+"run_evidence_inspections_total", "counter", "Reports brought for inspection, valid or not.", d.Operations.Inspections)
	return []byte(b.String())
}

func formatSeconds(ms float64) string { return strconv.FormatFloat(ms/1000, 'g', -1, 64) }
