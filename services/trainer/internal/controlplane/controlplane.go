// Package controlplane reports new versions, and the jobs that made them, to the control plane.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
)

// timeout of one call: the control plane reads the tracker before it answers.
const timeout = 15 * time.Second

// ErrUnavailable means that the control plane gave no answer, or one that asks to retry later.
var ErrUnavailable = errors.New("control plane unavailable")

// ErrUnknownModel means that no definition of the model has reached the control plane.
var ErrUnknownModel = errors.New("the control plane does not know the model")

// Client calls one control plane.
type Client struct{ api *api.Client }

// New returns a client of the control plane at url, such as http://localhost:18002.
func New(url string, token service.Secret) (*Client, error) {
	c, err := api.NewClient(strings.TrimRight(url, "/"), api.WithHTTPClient(service.HTTPClient(timeout)), api.WithRequestEditorFn(wire.Bearer(token.Reveal())))
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	return &Client{c}, nil
}

// Ladder is the control plane's verdict on a version.
type Ladder struct {
	Rungs       []modelrepo.Verdict `json:"rungs"`
	AliasesSet  []string            `json:"aliases_set"`
	PromotionID string              `json:"promotion_id"`
}

// KnowsModel returns [ErrUnknownModel] if the control plane would refuse every version of the model.
func (c *Client) KnowsModel(ctx context.Context, model string) error {
	_, err := wire.Decode[api.ModelMeta](c.api.GetModelMeta(ctx, model))
	var refusal *problem.Error
	if errors.As(err, &refusal) && refusal.Kind.Code == "model_not_found" {
		return fmt.Errorf("%w: %s", ErrUnknownModel, refusal.Detail)
	}
	return explain(ctx, err, "the question whether it knows "+model)
}

// Version asks the control plane to apply the ladder to a version.
func (c *Client) Version(ctx context.Context, model, version, flowRunID string) (Ladder, error) {
	report := api.VersionReport{Model: model, Version: version}
	if flowRunID != "" {
		report.FlowRunId = &flowRunID
	}
	out, err := wire.Decode[Ladder](c.api.ReportVersion(ctx, report))
	return out, explain(ctx, err, fmt.Sprintf("version %s of %s", version, model))
}

// Job reports the state of a batch job.
func (c *Client) Job(ctx context.Context, j Job) error {
	in := api.JobInput{
		Model: &j.Model, Dataset: &j.Dataset, State: api.JobState(j.State), FlowRunId: optional(j.FlowRunID), TrackerRunId: optional(j.RunID),
		Resources: &api.JobResourcesInput{Nodes: pointer(j.Resources.Nodes), Gpus: pointer(j.Resources.GPUs), Cpus: pointer(j.Resources.CPUs)},
	}
	_, err := wire.Decode[api.Job](c.api.PutJob(ctx, api.Scheduler(j.Scheduler), j.ID, in))
	return explain(ctx, err, "job "+j.ID)
}

// Job is a batch job's state, and its purpose.
type Job struct {
	Scheduler, ID, State string
	Model, Dataset       string
	Resources            modelrepo.Resources
	FlowRunID, RunID     string
}

// Cost is the resources that a batch job used for a version.
type Cost struct {
	Scheduler, JobID      string
	Model, Version, RunID string
	GPUHours, CPUHours    float64
}

// Cost records a job's resources; recording them again changes nothing.
func (c *Client) Cost(ctx context.Context, used Cost) error {
	in := api.CostInput{
		Model: used.Model, Version: used.Version, RunId: optional(used.RunID), Scheduler: api.Scheduler(used.Scheduler), JobId: used.JobID,
		GpuHours: &used.GPUHours, CpuHours: &used.CPUHours,
	}
	_, err := wire.Decode[api.CostRecorded](c.api.RecordCost(ctx, in))
	return explain(ctx, err, "the cost of job "+used.JobID)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func pointer(n int) *int32 {
	v := int32(n)
	return &v
}

// explain distinguishes refusals from missing answers.
func explain(ctx context.Context, err error, what string) error {
	var refusal *problem.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.Is(err, wire.ErrUnreadable):
		return fmt.Errorf("control plane: %w", err)
	case !errors.As(err, &refusal):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	err = fmt.Errorf("control plane refused %s: %w", what, refusal)
	if status := refusal.Status(); status >= 500 || status == http.StatusTooManyRequests {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
