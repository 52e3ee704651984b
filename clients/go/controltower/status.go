package controltower

import (
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Status lists the server's capabilities and limits.
type Status struct {
	document.Head
	Service         string            `json:"service"`
	Mode            string            `json:"mode"`
	MediaTypes      []string          `json:"media_types"`
	SourceContracts []string          `json:"source_contracts"`
	Schemas         map[string]string `json:"schemas"`      // URN by name
	Capabilities    map[string]bool   `json:"capabilities"` // whether it does this at all
	Operations      Operations        `json:"operations"`
	Endpoints       map[string]string `json:"endpoints"` // "METHOD path" by operation id
}

// Operations describes the server's operation.
type Operations struct {
	RequestIDHeader                 string `json:"request_id_header"`
	Liveness                        string `json:"liveness"`
	Readiness                       string `json:"readiness"`
	AccessLogEnv                    string `json:"access_log_env"`
	AccessLogsIncludeBodies         bool   `json:"access_logs_include_bodies"`
	AccessLogsIncludeAuthentication bool   `json:"access_logs_include_authentication"`
	TraceContext                    string `json:"trace_context"`
	Limits                          Limits `json:"limits"`
}

// Limits are those of the running server.
type Limits struct {
	RequestTimeoutSeconds float64 `json:"request_timeout_seconds"`
	MaxConcurrentRequests int64   `json:"max_concurrent_requests"`
	RetryAfterSeconds     int64   `json:"retry_after_seconds"`
	DrainTimeoutSeconds   float64 `json:"drain_timeout_seconds"`
	MaxRequestLineBytes   int64   `json:"max_request_line_bytes"`
	MaxHeaderLineBytes    int64   `json:"max_header_line_bytes"`
	MaxHeaderCount        int64   `json:"max_header_count"`
	MaxRequestBodyBytes   int64   `json:"max_request_body_bytes"`
	OverloadStatus        int64   `json:"overload_status"`
	ConnectionPolicy      string  `json:"connection_policy"`
	PerClientRateLimit    string  `json:"per_client_rate_limit"`
	MaxSSEClients         int64   `json:"max_sse_clients"`
	SSEHeartbeatSeconds   float64 `json:"sse_heartbeat_seconds"`
	SSEMaxStreamSeconds   float64 `json:"sse_max_stream_seconds"`
}

// Metrics are the counters of the running process.
type Metrics struct {
	SchemaVersion  string `json:"schema_version"`
	Kind           string `json:"kind"`
	Service        string `json:"service"`
	ServiceVersion string `json:"service_version"`
	Scope          string `json:"scope"`
	Requests       struct {
		Total             int64            `json:"total"`
		ClientErrorsTotal int64            `json:"client_errors_total"`
		ServerErrorsTotal int64            `json:"server_errors_total"`
		ByStatusClass     map[string]int64 `json:"by_status_class"`
	} `json:"requests"`
	LatencyMS struct {
		Count   int64   `json:"count"`
		Sum     float64 `json:"sum"`
		Max     float64 `json:"max"`
		Buckets []struct {
			LeMS  int64 `json:"le_ms"`
			Count int64 `json:"count"` // cumulative
		} `json:"buckets"`
	} `json:"latency_ms"`
	Concurrency struct {
		InFlightRequests      int64 `json:"in_flight_requests"`
		MaxConcurrentRequests int64 `json:"max_concurrent_requests"`
		EventStreamClients    int64 `json:"event_stream_clients"`
		MaxEventStreamClients int64 `json:"max_event_stream_clients"`
	} `json:"concurrency"`
	Admission struct {
		OverloadRejectionsTotal  int64  `json:"overload_rejections_total"`
		DrainingRejectionsTotal  int64  `json:"draining_rejections_total"`
		RateLimitRejectionsTotal int64  `json:"rate_limit_rejections_total"`
		RateLimitStatus          string `json:"rate_limit_status"`
	} `json:"admission"`
	Operations struct {
		RunEvidenceInspectionsTotal  int64  `json:"run_evidence_inspections_total"`
		HumanDecisionIngestionsTotal int64  `json:"human_decision_ingestions_total"`
		HumanDecisionIngestionStatus string `json:"human_decision_ingestion_status"`
	} `json:"operations"`
	Dependencies struct {
		ProductSpineStore struct {
			State                    string `json:"state"`
			RequiredForCoreReadiness bool   `json:"required_for_core_readiness"`
		} `json:"product_spine_store"`
	} `json:"dependencies"`
	Telemetry struct {
		TraceContext         string `json:"trace_context"`
		PathLabels           bool   `json:"path_labels"`
		QueryLabels          bool   `json:"query_labels"`
		RequestIDLabels      bool   `json:"request_id_labels"`
		AuthenticationLabels bool   `json:"authentication_labels"`
		PayloadLabels        bool   `json:"payload_labels"`
	} `json:"telemetry"`
	Authority spine.Authority `json:"authority"`
}
