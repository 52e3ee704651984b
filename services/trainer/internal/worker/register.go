package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/orchestrator/scheduled"
)

// Names and descriptions that the worker registers.
const (
	// Pool is where the runs wait; its type is process.
	Pool             = "platform"
	dispatchFlow     = "training_flow"
	dispatchName     = "platform-dispatch"
	nightlyName      = "platform-nightly"
	nightlyCron      = "0 2 * * *"
	nightlyZone      = "UTC"
	poolType         = "process"
	poolDescription  = "Trainings of the platform's models; trainer worker carries them out."
	dispatchSentence = "Trains one model of the model repository and registers the version."
)

// deployment is one that this worker offers.
type deployment struct {
	flow string
	in   orchestrator.CreateDeployment
	// limit is the maximum of concurrent runs; 0: no limit.
	limit int
	// sent is the last registered form.
	sent string
}

// wanted returns the deployments that the model repository requires.
func (w *Worker) wanted() ([]deployment, error) {
	repo, err := w.openRepo()
	if err != nil {
		return nil, err
	}
	all := []deployment{
		{flow: dispatchFlow, in: orchestrator.CreateDeployment{
			Name: dispatchName, Description: dispatchSentence, ParameterSchema: json.RawMessage(ParameterSchema),
		}},
		// Its schedule is off: the models' own deployments train them by their own schedules.
		{flow: scheduled.Flow, limit: 1, in: orchestrator.CreateDeployment{
			Name: nightlyName, Description: "Trains every enabled model, one after the other. Its schedule is off: each model has a separate one.",
			ParameterSchema: json.RawMessage(scheduled.ParameterSchema), Schedules: scheduled.CronSchedule(nightlyCron, nightlyZone, false),
		}},
	}
	for _, name := range repo.Names() {
		m, ok := repo.Model(name)
		if !ok {
			continue
		}
		all = append(all, deployment{flow: scheduled.Flow, limit: m.Schedule.ConcurrencyLimit, in: scheduled.Deployment(m)})
	}
	for i := range all {
		d := &all[i]
		d.in.WorkPoolName, d.in.EnforceParameterSchema, d.in.Tags = Pool, true, []string{scheduled.PlatformTag}
		if d.limit > 0 {
			d.in.ConcurrencyLimit = &d.limit
		}
	}
	return all, nil
}

// registerFirst registers everything, and waits for an orchestrator that is away.
func (w *Worker) registerFirst(ctx context.Context) error {
	for {
		err := w.register(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, orchestrator.ErrUnreachable) && !isTemporary(err) {
			return err
		}
		w.log.WarnContext(ctx, "the orchestrator does not answer; the worker waits for it", slog.Any("err", err))
		if !pause(ctx, w.cfg.Poll) {
			return nil
		}
	}
}

func isTemporary(err error) bool {
	var refused *orchestrator.Error
	return errors.As(err, &refused) && refused.Temporary()
}

// register creates or updates the pool, the flows and the deployments. It does not resend unchanged ones, since the
// orchestrator would plan the scheduled runs again.
func (w *Worker) register(ctx context.Context) error {
	if _, err := w.client.ReadWorkPool(ctx, Pool); errors.Is(err, orchestrator.ErrNotFound) {
		_, err := w.client.CreateWorkPool(ctx, Pool, poolType, poolDescription)
		var refused *orchestrator.Error
		if err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusConflict) { // another worker was faster
			return fmt.Errorf("create the work pool %s: %w", Pool, err)
		}
	} else if err != nil {
		return fmt.Errorf("read the work pool %s: %w", Pool, err)
	}
	all, err := w.wanted()
	if err != nil {
		return err
	}
	flows := map[string]orchestrator.Flow{}
	for _, d := range all {
		if _, ok := flows[d.flow]; ok {
			continue
		}
		if flows[d.flow], err = w.client.CreateFlow(ctx, d.flow); err != nil {
			return fmt.Errorf("register the flow %s: %w", d.flow, err)
		}
	}
	for _, d := range all {
		d.in.FlowID = flows[d.flow].ID
		if err := w.registerOne(ctx, d); err != nil {
			return fmt.Errorf("register %s/%s: %w", d.flow, d.in.Name, err)
		}
	}
	return w.retire(ctx, all)
}

// retiredTag marks a deployment whose model left the repository; the deployment is updated when the model returns.
const retiredTag = "retired"

// retire switches off the schedules of models that are no longer in the repository: no worker would carry out their
// runs, and they would hold up others. The deployment stays, for its runs are its history.
func (w *Worker) retire(ctx context.Context, wanted []deployment) error {
	there, err := w.client.Deployments(ctx, scheduled.Flow)
	if err != nil {
		return fmt.Errorf("list the deployments of %s: %w", scheduled.Flow, err)
	}
	for _, d := range there {
		ours := d.WorkPoolName != nil && *d.WorkPoolName == Pool && slices.Contains(d.Tags, scheduled.PlatformTag) && !slices.Contains(d.Tags, retiredTag)
		if !ours || !strings.HasPrefix(d.Name, "platform-") || !strings.HasSuffix(d.Name, "-nightly") ||
			slices.ContainsFunc(wanted, func(x deployment) bool { return x.flow == scheduled.Flow && x.in.Name == d.Name }) {
			continue
		}
		in := orchestrator.CreateDeployment{
			FlowID: d.FlowID, Name: d.Name, Description: "The model repository does not have this model any more. Its schedule is off.",
			Paused: d.Paused, Parameters: d.Parameters, ParameterSchema: d.ParameterSchema, EnforceParameterSchema: d.EnforceParameterSchema,
			WorkPoolName: Pool, Tags: []string{scheduled.PlatformTag, retiredTag},
		}
		for _, s := range d.Schedules {
			in.Schedules = append(in.Schedules, orchestrator.CreateSchedule{Schedule: s.Schedule})
		}
		if _, err := w.client.CreateDeployment(ctx, in); err != nil {
			return fmt.Errorf("retire %s/%s: %w", scheduled.Flow, d.Name, err)
		}
		w.log.InfoContext(ctx, "switched off the schedule of a model that is gone", slog.String("deployment", d.Name))
		w.mu.Lock()
		delete(w.deployments, d.ID)
		w.mu.Unlock()
	}
	return nil
}

func (w *Worker) registerOne(ctx context.Context, d deployment) error {
	now, err := w.client.ReadDeploymentByName(ctx, d.flow, d.in.Name)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		return err
	}
	found := err == nil
	// A deployment that an operator has paused, or deployed without its schedule, stays so.
	d.in.Paused = found && now.Paused
	if found && scheduled.IsUnscheduled(now) {
		scheduled.Unschedule(&d.in)
	}
	text, err := json.Marshal(d.in)
	if err != nil {
		return err
	}
	d.sent = string(text)
	if found {
		w.mu.Lock()
		known, ok := w.deployments[now.ID]
		w.mu.Unlock()
		if ok && known.sent == d.sent && !slices.Contains(now.Tags, retiredTag) {
			return nil
		}
	}
	made, err := w.client.CreateDeployment(ctx, d.in)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.deployments[made.ID] = d
	w.mu.Unlock()
	return nil
}
