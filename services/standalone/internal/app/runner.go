package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord"
	"github.com/mlp-platform/platform/services/trainer"
)

// progressHub passes training progress to its listener; without one, progress is dropped.
type progressHub struct {
	mu sync.Mutex // guards fn
	fn func(model, stage string, fraction float64)
}

func (h *progressHub) listen(fn func(model, stage string, fraction float64)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fn = fn
}

func (h *progressHub) report(model, stage string, fraction float64) {
	h.mu.Lock()
	fn := h.fn
	h.mu.Unlock()
	if fn != nil {
		fn(model, stage, fraction)
	}
}

// runner runs a flow run of the stand-in orchestrator by the trainer, in this process.
type runner struct {
	trainer  *trainer.Trainer
	progress *progressHub
	tracing  trace.TracerProvider // nil: no spans
}

// dispatchDeployment is the deployment to which the control plane sends retrains.
var dispatchDeployment = orchestratord.Deployment{
	Flow: "training_flow", Name: "platform-dispatch",
	Description:     "Trains one model of the model repository and registers the version.",
	ParameterSchema: json.RawMessage(trainer.ParameterSchema),
}

// Run trains once; its error ends the flow run as failed.
func (r *runner) Run(ctx context.Context, run orchestratord.FlowRun, logs func(level int, msg string)) error {
	raw, err := json.Marshal(run.Parameters)
	if err != nil {
		return fmt.Errorf("read the parameters: %w", err)
	}
	var in trainer.RunParameters
	if err := json.Unmarshal(raw, &in); err != nil {
		return fmt.Errorf("read the parameters: %w", err)
	}
	const info = 20 // the orchestrator's level for progress
	last := ""
	res, err := r.trainer.Train(service.WithTracing(ctx, r.tracing), trainer.Request{
		Model: in.ModelName, Dataset: in.Dataset, Dummy: in.Dummy, Backend: in.Backend, Parameters: in.Parameters,
		FlowRunID: run.ID.String(), CommitSHA: in.CommitSHA, Tenant: in.Tenant, RequestedBy: in.RequestedBy, ApprovalID: in.ApprovalID, RequestID: in.RequestID, Traceparent: in.Traceparent,
	}, func(stage string, fraction float64, msg string) {
		r.progress.report(strings.ToUpper(in.ModelName), stage, trainer.Overall(stage, fraction))
		if stage != last || msg != "" {
			last = stage
			logs(info, strings.TrimSuffix(stage+": "+msg, ": "))
		}
	})
	if err != nil {
		return err
	}
	if res.Version == "" {
		return errors.New("the trainer registered no version")
	}
	logs(info, fmt.Sprintf("registered %s version %s", res.Model, res.Version))
	return nil
}
