// Package metrics counts the server's answers since its start. No counter has a label that
// a caller chooses, so their number is fixed and they reveal nothing about callers.
package metrics

import (
	"math"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/services/evidence-api/internal/status"
)

// bounds are the upper ends of the latency buckets, in milliseconds.
var bounds = [...]int64{5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000}

// Counters are the counters of one server. The zero value is ready to use.
type Counters struct {
	mu          sync.Mutex // guards the fields below
	classes     [5]int64   // by status class, 1xx first
	count       int64
	sum, max    float64 // milliseconds
	buckets     [len(bounds)]int64
	inspections int64
}

// Answered counts an answer and how long it took. A stream counts when it begins.
func (c *Counters) Answered(status int, took time.Duration) {
	ms := float64(took) / float64(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if class := status/100 - 1; class >= 0 && class < len(c.classes) {
		c.classes[class]++
	}
	c.count++
	c.sum += ms
	c.max = max(c.max, ms)
	for i, bound := range bounds {
		if ms <= float64(bound) {
			c.buckets[i]++
		}
	}
}

// Inspected counts a report sent for inspection, valid or not.
func (c *Counters) Inspected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inspections++
}

// Gauges are the values that the rest of the server provides.
type Gauges struct {
	Version               string
	StoreConfigured       bool
	Requests, MaxRequests int // taken and all
	Streams, MaxStreams   int
	Overloaded, Drained   int64
}

// Document is the metrics document.
type Document struct {
	SchemaVersion  string         `json:"schema_version"`
	Kind           string         `json:"kind"`
	Service        string         `json:"service"`
	ServiceVersion string         `json:"service_version"`
	Scope          string         `json:"scope"`
	Requests       Requests       `json:"requests"`
	Latency        Latency        `json:"latency_ms"`
	Concurrency    Concurrency    `json:"concurrency"`
	Admission      Admission      `json:"admission"`
	Operations     Operations     `json:"operations"`
	Dependencies   Dependencies   `json:"dependencies"`
	Telemetry      map[string]any `json:"telemetry"`
	Authority      map[string]any `json:"authority"`
}

// Requests are the answers by class.
type Requests struct {
	Total         int64            `json:"total"`
	ClientErrors  int64            `json:"client_errors_total"`
	ServerErrors  int64            `json:"server_errors_total"`
	ByStatusClass map[string]int64 `json:"by_status_class"`
}

// Latency is how long the answers took.
type Latency struct {
	Count   int64    `json:"count"`
	Sum     float64  `json:"sum"`
	Max     float64  `json:"max"`
	Buckets []Bucket `json:"buckets"` // cumulative
}

// Bucket counts the answers that took at most its upper bound.
type Bucket struct {
	LeMS  int64 `json:"le_ms"`
	Count int64 `json:"count"`
}

// Concurrency is the number of requests and streams in progress.
type Concurrency struct {
	InFlight    int `json:"in_flight_requests"`
	MaxInFlight int `json:"max_concurrent_requests"`
	Streams     int `json:"event_stream_clients"`
	MaxStreams  int `json:"max_event_stream_clients"`
}

// Admission counts the refused requests.
type Admission struct {
	Overload        int64  `json:"overload_rejections_total"`
	Draining        int64  `json:"draining_rejections_total"`
	RateLimit       int64  `json:"rate_limit_rejections_total"`
	RateLimitStatus string `json:"rate_limit_status"`
}

// Operations counts requests that are not reads.
type Operations struct {
	Inspections          int64  `json:"run_evidence_inspections_total"`
	HumanDecisions       int64  `json:"human_decision_ingestions_total"`
	HumanDecisionsStatus string `json:"human_decision_ingestion_status"`
}

// Dependencies are the states of what the server reads. The store is never probed for this.
type Dependencies struct {
	Store StoreState `json:"product_spine_store"`
}

// StoreState reports whether a store is configured.
type StoreState struct {
	State                    string `json:"state"`
	RequiredForCoreReadiness bool   `json:"required_for_core_readiness"`
}

const notImplemented = "not_implemented"

// Document reads the counters.
func (c *Counters) Document(g Gauges) Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := Document{
		SchemaVersion: spine.SchemaVersion, Kind: "svc-api-operational-metrics",
		Service: document.ServiceName, ServiceVersion: g.Version, Scope: "process_lifetime",
		Requests: Requests{ClientErrors: c.classes[3], ServerErrors: c.classes[4], ByStatusClass: map[string]int64{}},
		Latency:  Latency{Count: c.count, Sum: roundToThousandths(c.sum), Max: roundToThousandths(c.max)},
		Concurrency: Concurrency{InFlight: g.Requests, MaxInFlight: g.MaxRequests,
			Streams: g.Streams, MaxStreams: g.MaxStreams},
		Admission:    Admission{Overload: g.Overloaded, Draining: g.Drained, RateLimitStatus: notImplemented},
		Operations:   Operations{Inspections: c.inspections, HumanDecisionsStatus: notImplemented},
		Dependencies: Dependencies{Store: StoreState{State: "not_configured"}},
		Telemetry: map[string]any{"trace_context": status.TraceContext, "path_labels": false, "query_labels": false,
			"request_id_labels": false, "authentication_labels": false, "payload_labels": false},
		Authority: map[string]any{"canonical_state_write": false, "git_push": false, "merge": false},
	}
	if g.StoreConfigured {
		d.Dependencies.Store.State = "configured_unprobed"
	}
	for i, n := range c.classes {
		d.Requests.Total += n
		d.Requests.ByStatusClass[string(rune('1'+i))+"xx"] = n
	}
	for i, bound := range bounds {
		d.Latency.Buckets = append(d.Latency.Buckets, Bucket{bound, c.buckets[i]})
	}
	return d
}

// roundToThousandths rounds to three decimals.
func roundToThousandths(ms float64) float64 { return math.Round(ms*1000) / 1000 }
