// Package trainer runs the training flow: extract the rows a model declares, submit the fit to a scheduler, wait,
// fetch and check the model, evaluate it on rows it never saw, log the run and register the version in the tracker,
// and let the control plane apply the ladder.
//
// It is a library: mlp, the orchestrator's runner and standalone call Train; cmd/trainer is a thin main that calls it.
package trainer

import (
	"context"
	"log/slog"

	"github.com/mlp-platform/platform/services/trainer/internal/app"
	"github.com/mlp-platform/platform/services/trainer/internal/training"
	"github.com/mlp-platform/platform/services/trainer/internal/worker"
)

// Config holds all settings of a trainer.
type Config = app.Config

// Trainer trains models. It is safe for concurrent use.
type Trainer = training.Trainer

// The input and output of a training.
type (
	Request  = training.Request
	Result   = training.Result
	Report   = training.Report
	Chart    = training.Chart
	Progress = training.Progress
)

// Data names the rows of one model, Row is one of them as a request for a prediction.
type (
	Data = training.Data
	Row  = training.Row
)

// ErrRequest means that the request itself cannot be served; trying again changes nothing.
var ErrRequest = training.ErrRequest

// ErrUnknownModel means that no definition of the model has reached the control plane; nothing was recorded.
var ErrUnknownModel = training.ErrUnknownModel

// LoadConfig reads environ (os.Environ); the error lists every fault.
func LoadConfig(environ []string) (Config, error) { return app.LoadConfig(environ) }

// New checks the configuration and returns a trainer.
func New(cfg Config, log *slog.Logger) (*Trainer, error) { return app.New(cfg, log) }

// Worker carries out the flow runs of an orchestrator, each in a separate process.
type Worker = app.Worker

// ParameterSchema is that of the deployment which retrains are dispatched to; RunParameters holds its parameters.
const ParameterSchema = worker.ParameterSchema

// RunParameters are the parameters of a flow run.
type RunParameters = worker.Parameters

// NewWorker checks the configuration and returns a worker. command is the program of one training with its first
// arguments, such as ["/usr/bin/trainer", "train"]; environ is its environment.
func NewWorker(cfg Config, command, environ []string, log *slog.Logger) (*Worker, error) {
	return app.NewWorker(cfg, command, environ, log)
}

// RunJob does the learning part of a training on a node of a cluster; dir is the folder that the submitter made.
func RunJob(ctx context.Context, dir string, log *slog.Logger) error {
	return training.RunJob(ctx, dir, log)
}

// Overall is how far a training is as a whole, from 0 to 1, at a fraction of a stage.
func Overall(stage string, fraction float64) float64 { return training.Overall(stage, fraction) }
