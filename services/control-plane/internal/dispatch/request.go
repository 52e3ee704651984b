package dispatch

import (
	"maps"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
)

// Request is one training run to start. It is stored with its command, so that
// another process can send it again.
type Request struct {
	Model      string         `json:"model"` // upper-case id
	Dataset    string         `json:"dataset"`
	Dummy      bool           `json:"dummy,omitempty"`
	Backend    string         `json:"backend,omitempty"` // empty: the trainer's default
	Parameters map[string]any `json:"parameters,omitempty"`
	CommitSHA  string         `json:"commit_sha,omitempty"`
	Tenant     string         `json:"tenant"`
	RequestID  string         `json:"request_id,omitempty"`
	// Traceparent is the trace context of the decision, which the run continues.
	Traceparent string     `json:"traceparent,omitempty"`
	RequestedBy string     `json:"requested_by"`
	ApprovalID  *uuid.UUID `json:"approval_id,omitempty"`
	// Requesters are all who count as having requested the run, including those who pushed its commit; PersonUnknown
	// means that one of these is not known.
	Requesters    []string `json:"requesters,omitempty"`
	PersonUnknown bool     `json:"person_unknown,omitempty"`
	// Reason is the decider's reason, for the ledger.
	Reason string `json:"reason,omitempty"`
	// Origin is the cause of the run: api, or the origin of its approval.
	Origin string `json:"origin"`
}

// required lists the parameters that a deployment must accept to train.
var required = []string{"model_name", "dataset_cls_name", "is_dummy", "backend_name"}

// Reserved reports whether a caller's parameter would override one of the platform's.
func Reserved(name string) bool {
	switch name {
	case "model_name", "dataset_name", "dataset_cls_name", "is_dummy", "backend_name", "commit_sha", "tenant", "request_id", "traceparent",
		"requested_by", "approval_id", "parameters":
		return true
	}
	return false
}

// flowParameters builds the parameters of the run. Beyond the required ones only those
// declared in the deployment's schema are sent, since an orchestrator may refuse others.
// The caller's parameters are sent as one object if the deployment accepts that,
// otherwise one by one.
func (r Request) flowParameters(d orchestrator.Deployment) map[string]any {
	p := map[string]any{"model_name": r.Model, "dataset_cls_name": r.Dataset, "is_dummy": r.Dummy}
	if r.Backend != "" {
		p["backend_name"] = r.Backend
	}
	declared := map[string]string{
		"commit_sha": r.CommitSHA, "tenant": r.Tenant, "request_id": r.RequestID, "traceparent": r.Traceparent, "requested_by": r.RequestedBy,
	}
	if r.ApprovalID != nil {
		declared["approval_id"] = r.ApprovalID.String()
	}
	for name, value := range declared {
		if value != "" && d.DeclaresParameter(name) {
			p[name] = value
		}
	}
	switch {
	case len(r.Parameters) == 0:
	case d.DeclaresParameter("parameters"):
		p["parameters"] = r.Parameters
	default:
		own := maps.Clone(r.Parameters)
		maps.Copy(own, p)
		p = own
	}
	return p
}
