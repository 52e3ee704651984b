package worker

import (
	"encoding/json"
	"fmt"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/orchestrator"
)

// ParameterSchema is that of the deployment which retrains are dispatched to. It names the fields of [Parameters].
const ParameterSchema = `{
	"type": "object", "title": "Parameters", "required": ["model_name", "dataset_cls_name"],
	"properties": {
		"model_name": {"type": "string", "title": "model_name"},
		"dataset_cls_name": {"type": "string", "title": "dataset_cls_name"},
		"is_dummy": {"type": "boolean", "default": false, "title": "is_dummy"},
		"backend_name": {"type": ["string", "null"], "default": null, "title": "backend_name"},
		"commit_sha": {"type": ["string", "null"], "default": null, "title": "commit_sha"},
		"tenant": {"type": ["string", "null"], "default": null, "title": "tenant"},
		"request_id": {"type": ["string", "null"], "default": null, "title": "request_id"},
		"traceparent": {"type": ["string", "null"], "default": null, "title": "traceparent"},
		"requested_by": {"type": ["string", "null"], "default": null, "title": "requested_by"},
		"approval_id": {"type": ["string", "null"], "default": null, "title": "approval_id"},
		"parameters": {"type": ["object", "null"], "default": null, "title": "parameters"}
	}
}`

// Parameters of a flow run.
type Parameters struct {
	ModelName   string         `json:"model_name"`
	Dataset     string         `json:"dataset_cls_name"`
	Dummy       bool           `json:"is_dummy"`
	Backend     string         `json:"backend_name"`
	CommitSHA   string         `json:"commit_sha"`
	Tenant      string         `json:"tenant"`
	RequestID   string         `json:"request_id"`
	Traceparent string         `json:"traceparent"`
	RequestedBy string         `json:"requested_by"`
	ApprovalID  string         `json:"approval_id"`
	Parameters  map[string]any `json:"parameters"`
}

func readParameters(run orchestrator.FlowRun) (p Parameters, err error) {
	raw, err := json.Marshal(run.Parameters)
	if err != nil {
		return p, fmt.Errorf("read the parameters: %w", err)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("read the parameters: %w", err)
	}
	return p, nil
}

// requestedBySchedule is the requester of scheduled runs.
const requestedBySchedule = "schedule"

// commands are the arguments of the trainings that a run consists of, in order. A run that names no model trains
// each enabled one; only scheduled runs may do so, by the schemas above.
func commands(run orchestrator.FlowRun, repo *modelrepo.Repo) ([][]string, error) {
	p, err := readParameters(run)
	if err != nil {
		return nil, err
	}
	models := []string{p.ModelName}
	if p.ModelName == "" {
		models = nil
		for _, name := range repo.Names() {
			if m, ok := repo.Model(name); ok && m.Enabled {
				models = append(models, name)
			}
		}
		if len(models) == 0 {
			return nil, fmt.Errorf("the model repository has no enabled model")
		}
	}
	if p.RequestedBy == "" && run.AutoScheduled {
		p.RequestedBy = requestedBySchedule
	}
	all := make([][]string, 0, len(models))
	for _, model := range models {
		// One argument each, so that no value can be parsed as an option.
		args := []string{"--model=" + model, "--flow-run=" + run.ID.String()}
		for name, value := range map[string]string{
			"dataset": p.Dataset, "backend": p.Backend, "commit": p.CommitSHA, "tenant": p.Tenant,
			"request-id": p.RequestID, "requested-by": p.RequestedBy, "approval": p.ApprovalID,
		} {
			if value != "" {
				args = append(args, "--"+name+"="+value)
			}
		}
		if p.Dummy {
			args = append(args, "--dummy")
		}
		if len(p.Parameters) > 0 {
			text, err := json.Marshal(p.Parameters)
			if err != nil {
				return nil, fmt.Errorf("read the parameters: %w", err)
			}
			args = append(args, "--parameters="+string(text))
		}
		all = append(all, args)
	}
	return all, nil
}
