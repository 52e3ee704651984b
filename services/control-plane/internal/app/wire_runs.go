package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/autoretrain"
	"github.com/mlp-platform/platform/services/control-plane/internal/command"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/freshness"
	"github.com/mlp-platform/platform/services/control-plane/internal/metrics"
	"github.com/mlp-platform/platform/services/control-plane/internal/promotion"
	"github.com/mlp-platform/platform/services/control-plane/internal/retrain"
	"github.com/mlp-platform/platform/services/control-plane/internal/run"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// breakerName is the same in all replicas.
const breakerName = "orchestrator"

// connectDispatch builds the dispatch of training runs to the orchestrator.
func (p *parts) connectDispatch() (err error) {
	if p.target, err = dispatch.NewTarget(p.orchestrator, p.cfg.Deployment, p.log); err != nil {
		return err
	}
	p.admission = dispatch.NewAdmission(p.cfg.AdmissionMax, p.cfg.AdmissionPerTenant)
	p.breaker = coord.NewBreaker(p.coordinator, breakerName, p.cfg.BreakerFailMax, time.Duration(p.cfg.BreakerResetSeconds)*time.Second)
	p.commands, err = command.New(command.Parts{
		Store: p.store, Sender: dispatch.NewSender(p.orchestrator, p.target, p.breaker, time.Duration(p.cfg.CommandLeaseSeconds)*time.Second, p.metrics.BreakerOpened, p.log), Log: p.log, Now: time.Now,
		Lease: time.Duration(p.cfg.CommandLeaseSeconds) * time.Second, Owner: uuid.New(), Observe: observeDispatch(p.metrics),
		Settlers: map[string]command.Settler{
			command.Retrain:  autoretrain.NewSettler(retrain.Settler{}, time.Now),
			command.Approval: approval.NewSettler(time.Now),
		},
	})
	return err
}

// connectRuns builds the start and the follower of training runs.
func (p *parts) connectRuns() error {
	book, err := run.NewBook(run.BookParts{
		Store: p.store, TrackerRun: p.findTrackerRun, Head: p.registry.Head, Count: p.metrics.Run, Now: time.Now,
	})
	if err != nil {
		return err
	}
	if p.follower, err = run.NewFollower(run.FollowerParts{Book: book, Orchestrator: p.orchestrator, Log: p.log}); err != nil {
		return err
	}
	if p.runs, err = run.NewAPI(run.APIParts{Book: book, Orchestrator: p.orchestrator}); err != nil {
		return err
	}
	p.freshness = freshness.API{Store: p.store, Registry: p.registry}
	p.retrain, err = retrain.New(retrain.Parts{
		Store: p.store, Commands: p.commands, Registry: p.registry, Admission: p.admission, Locks: p.locks, Now: time.Now,
	})
	return err
}

// observeDispatch returns a function that counts the outcome of each dispatch.
func observeDispatch(m *metrics.Metrics) func(store.Command, error, time.Duration) {
	return func(c store.Command, err error, took time.Duration) {
		outcome := "ok"
		if err != nil {
			outcome = problem.From(err).Kind.Code
		}
		m.Dispatch(c.ModelID, c.DatasetName, outcome, took)
		if c.Kind == command.Approval {
			action := approval.Approved
			if err != nil {
				action = "dispatch_failed"
			}
			m.Approval(action, c.ModelID, 1)
		}
	}
}

// findTrackerRun finds the tracker run of a flow run, in the trainer's experiment for the model and data set; empty
// without one.
func (p *parts) findTrackerRun(ctx context.Context, model, dataset, flowRunID string) (string, error) {
	experiment, err := p.tracker.GetExperimentByName(ctx, strings.ToLower(model+"_"+dataset))
	if errors.Is(err, tracker.ErrNotFound) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	found, _, err := p.tracker.SearchRuns(ctx, tracker.RunQuery{
		ExperimentIDs: []string{experiment.ID}, Filter: "tags." + promotion.TagFlowRun + " = " + tracker.Quote(flowRunID),
		OrderBy: []string{"attributes.start_time DESC"}, PageSize: 1,
	})
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].ID, nil
}
