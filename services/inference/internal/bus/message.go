package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
)

// MaxMessage is the largest request in bytes.
const MaxMessage = 1 << 20

// maxVectors is the most rows of one bus.vector request.
const maxVectors = 1024

// inferRequest is a message of bus.infer.<uuid>; with model_name it is one of bus.jobs.
type inferRequest struct {
	ModelName    *string         `json:"model_name"`
	JobID        json.RawMessage `json:"job_id"`
	UserID       json.RawMessage `json:"user_id"`
	NumNodes     *int            `json:"num_nodes"`
	NumCPUs      *int            `json:"num_cpus"`
	Partition    *string         `json:"partition"`
	WalltimeSecs *float64        `json:"walltime_secs"`
	Timestamp    *string         `json:"timestamp"`
	Embedding    []float64       `json:"embedding"`
	Features     json.RawMessage `json:"features"`
	Alias        *string         `json:"alias"`
}

// Reply answers bus.infer.<uuid> and is published on bus.results; every member is always there.
type Reply struct {
	JobID        json.RawMessage `json:"job_id"`
	ModelName    *string         `json:"model_name"`
	ModelVersion *string         `json:"model_version"`
	Alias        *string         `json:"alias"`
	Prediction   any             `json:"prediction"`
	RunID        *string         `json:"run_id"`
	Timestamp    time.Time       `json:"timestamp"`
	Error        *Fault          `json:"error"`
}

// vectorRequest is a message of bus.vector.<uuid>: rows of the model's columns in their trained order.
type vectorRequest struct {
	Values [][]float64 `json:"values"`
}

// vectorReply answers bus.vector.<uuid>; results are in the order of the rows, null with an error.
type vectorReply struct {
	Results []any  `json:"results"`
	Error   *Fault `json:"error"`
}

// retrainRequest is a message of bus.retrain.
type retrainRequest struct {
	ModelName   string  `json:"model_name"`
	DatasetName string  `json:"dataset_name"`
	BackendName *string `json:"backend_name,omitempty"`
	IsDummy     *bool   `json:"is_dummy,omitempty"`
}

// retrainReply answers bus.retrain.
type retrainReply struct {
	FlowRunID *string `json:"flow_run_id"`
	StatusURL *string `json:"status_url"`
	Error     *Fault  `json:"error"`
}

// Fault is why a request was not answered: the code and status of the problem document that HTTP would have given.
type Fault struct {
	Code   string `json:"code"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// faultOf describes an error to the caller. Causes stay in the log: they may name internal addresses.
func faultOf(err error) *Fault {
	var p *problem.Error
	if !errors.As(err, &p) {
		p = problem.Internal.New("The bridge failed; its log has the reason under the request's id.").WithCause(err)
	}
	detail := p.Detail
	if detail == "" {
		detail = p.Kind.Title + "."
	}
	for _, f := range p.Errors {
		if strings.Contains(detail, f.Msg) {
			continue // the sentence already contains a single fault
		}
		detail += fmt.Sprintf(" %s: %s.", strings.Join(f.Loc, "."), f.Msg)
	}
	return &Fault{Code: p.Kind.Code, Status: p.Kind.Status, Detail: detail}
}

// parse decodes a message strictly.
func parse(data []byte, into any) error {
	if len(data) > MaxMessage {
		return problem.BodyTooLarge.Errorf("The message has %d bytes; at most %d are taken.", len(data), MaxMessage)
	}
	return service.ParseJSON(data, into, true)
}

// check reports every fault of a job.
func (r *inferRequest) check() error {
	var faults []problem.Field
	fault := func(name, msg string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	if !isIdentity(r.JobID) {
		fault("job_id", identityRule)
	}
	if !isIdentity(r.UserID) {
		fault("user_id", identityRule)
	}
	if r.NumNodes == nil || *r.NumNodes < 1 {
		fault("num_nodes", "expected a whole number, at least 1")
	}
	if r.NumCPUs != nil && *r.NumCPUs < 1 {
		fault("num_cpus", "expected a whole number, at least 1")
	}
	if r.WalltimeSecs != nil && (*r.WalltimeSecs < 0 || math.IsInf(*r.WalltimeSecs, 0)) {
		fault("walltime_secs", "expected seconds, at least 0")
	}
	if r.Timestamp != nil {
		if _, err := time.Parse(time.RFC3339Nano, *r.Timestamp); err != nil {
			fault("timestamp", "expected a time such as 2026-01-02T03:04:05Z")
		}
	}
	switch given := hasValue(r.Features); {
	case given && r.Embedding != nil:
		fault("features", "give features or embedding, not both")
	case !given && r.Embedding == nil:
		fault("features", "give features or embedding: what the model is asked about")
	}
	if faults != nil {
		return &problem.Error{Kind: problem.Validation, Detail: "The message is not a valid request.", Errors: faults}
	}
	return nil
}

func hasValue(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// maxIdentity is the longest id, in bytes of JSON.
const maxIdentity = 256

const identityRule = "expected a string or a number of at most 256 bytes without control characters"

// isIdentity accepts a string or a number, as forges and schedulers write ids. Ids are repeated in replies and headers.
func isIdentity(raw json.RawMessage) bool {
	if !hasValue(raw) || len(raw) > maxIdentity {
		return false
	}
	if raw[0] == '"' {
		return !strings.ContainsFunc(identityText(raw), unicode.IsControl)
	}
	return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
}

// identityText is an id as text, without quotes.
func identityText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// jobID is the id of a message that may not be valid otherwise, so that its sender finds the answer; null if it has none.
func jobID(data []byte) json.RawMessage {
	var head struct {
		JobID json.RawMessage `json:"job_id"`
	}
	if len(data) <= MaxMessage && json.Unmarshal(data, &head) == nil && isIdentity(head.JobID) {
		return head.JobID
	}
	return json.RawMessage("null")
}
