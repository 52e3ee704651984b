// Package status builds the document that lists the server's capabilities and limits.
package status

import (
	"time"

	"github.com/mlp-platform/platform/clients/go/controltower/schemas"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/negotiate"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

// Limits that no setting changes.
const (
	MaxLine        = 65536   // bytes of a request line or a header line
	MaxHeaderCount = 99      // header fields
	MaxBody        = 2 << 20 // bytes of a request's body
)

// AccessLogVariable switches the access log on.
const AccessLogVariable = "SVC_HTTP_ACCESS_LOG"

// TraceContext names the server's handling of a caller's traceparent.
const TraceContext = "w3c-traceparent-v00-pass-through"

// Settings are the limits that this process was started with.
type Settings struct {
	RequestTimeout        time.Duration
	MaxConcurrentRequests int
	MaxStreams            int
	DrainTimeout          time.Duration
	Heartbeat             time.Duration
	MaxStream             time.Duration
}

// Limits are the limits as the document shows them.
type Limits struct {
	RequestTimeoutSeconds float64 `json:"request_timeout_seconds"`
	MaxConcurrentRequests int     `json:"max_concurrent_requests"`
	RetryAfterSeconds     int     `json:"retry_after_seconds"`
	DrainTimeoutSeconds   float64 `json:"drain_timeout_seconds"`
	MaxRequestLineBytes   int     `json:"max_request_line_bytes"`
	MaxHeaderLineBytes    int     `json:"max_header_line_bytes"`
	MaxHeaderCount        int     `json:"max_header_count"`
	MaxRequestBodyBytes   int     `json:"max_request_body_bytes"`
	OverloadStatus        int     `json:"overload_status"`
	ConnectionPolicy      string  `json:"connection_policy"`
	PerClientRateLimit    string  `json:"per_client_rate_limit"`
	MaxSSEClients         int     `json:"max_sse_clients"`
	SSEHeartbeatSeconds   float64 `json:"sse_heartbeat_seconds"`
	SSEMaxStreamSeconds   float64 `json:"sse_max_stream_seconds"`
}

// Limits returns the fourteen limits.
func (s Settings) Limits() Limits {
	overloaded, _ := catalogue.Lookup(catalogue.Overloaded)
	return Limits{
		RequestTimeoutSeconds: s.RequestTimeout.Seconds(),
		MaxConcurrentRequests: s.MaxConcurrentRequests,
		RetryAfterSeconds:     catalogue.RetryAfterSeconds,
		DrainTimeoutSeconds:   s.DrainTimeout.Seconds(),
		MaxRequestLineBytes:   MaxLine,
		MaxHeaderLineBytes:    MaxLine,
		MaxHeaderCount:        MaxHeaderCount,
		MaxRequestBodyBytes:   MaxBody,
		OverloadStatus:        overloaded.Status,
		ConnectionPolicy:      "close_after_response",
		PerClientRateLimit:    "not_implemented",
		MaxSSEClients:         s.MaxStreams,
		SSEHeartbeatSeconds:   s.Heartbeat.Seconds(),
		SSEMaxStreamSeconds:   s.MaxStream.Seconds(),
	}
}

// Document is the status document.
type Document struct {
	document.Head
	Service         string            `json:"service"`
	Mode            string            `json:"mode"`
	MediaTypes      []string          `json:"media_types"`
	SourceContracts []string          `json:"source_contracts"`
	Schemas         map[string]string `json:"schemas"`
	Capabilities    map[string]bool   `json:"capabilities"`
	Operations      Operations        `json:"operations"`
	Endpoints       map[string]string `json:"endpoints"`
}

// Operations is the operator's view of a server.
type Operations struct {
	RequestIDHeader                string `json:"request_id_header"`
	Liveness                       string `json:"liveness"`
	Readiness                      string `json:"readiness"`
	AccessLogEnv                   string `json:"access_log_env"`
	AccessLogsIncludeBodies        bool   `json:"access_logs_include_bodies"`
	AccessLogsIncludeAuthorization bool   `json:"access_logs_include_authentication"`
	TraceContext                   string `json:"trace_context"`
	Limits                         Limits `json:"limits"`
}

// capabilities: what the server does, and what it will never do over HTTP.
var capabilities = map[string]bool{
	"run_evidence_inspection": true, "semantic_timeline": true, "provenance_chain": true, "product_spine_reads": true, "event_stream": true,
	"human_decision_recording": false, "worker_execution": false, "canonical_state_write": false,
	"git_push": false, "merge": false, "automatic_candidate_selection": false,
}

// New returns the document.
func New(s Settings) Document {
	endpoints := map[string]string{}
	for _, o := range route.Table() {
		endpoints[o.ID] = o.Method + " " + o.Path
	}
	return Document{
		Head: document.Head{APIVersion: document.APIVersion, SchemaVersion: spine.SchemaVersion,
			Kind: "svc-control-tower-status", OK: true},
		Service:         document.ServiceName,
		Mode:            document.ModeLocalReading,
		MediaTypes:      []string{negotiate.JSON, negotiate.Vendor},
		SourceContracts: []string{report.Kind + "/" + report.SchemaVersion},
		Schemas:         schemas.IDs(),
		Capabilities:    capabilities,
		Operations: Operations{
			RequestIDHeader: "X-Request-ID",
			Liveness:        endpoints[route.Health],
			Readiness:       endpoints[route.Readiness],
			AccessLogEnv:    AccessLogVariable,
			TraceContext:    TraceContext,
			Limits:          s.Limits(),
		},
		Endpoints: endpoints,
	}
}
