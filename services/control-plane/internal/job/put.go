package job

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// maxCount limits the nodes, GPUs and CPUs of one job.
const maxCount = 10_000_000

// putJob inserts or updates the job and publishes the change.
func putJob(ctx context.Context, tx store.Tx, r report, p auth.Principal, now time.Time) (store.Job, error) {
	old, known, err := lockJob(ctx, tx, r)
	if err != nil {
		return old, err
	}
	if !known {
		if r.model == nil {
			return old, fault.Invalid("must be given in the first report of a job", "body", "model")
		}
		blank := store.Job{
			ID: uuid.Must(uuid.NewV7()), Scheduler: r.scheduler, Cluster: r.scheduler, JobID: r.id, State: unknown,
			SubmitAt: earliestSubmit(now, r.start, r.end), UpdatedAt: now, UpdatedBy: p.Name,
		}
		setIfGiven(&blank.Cluster, r.cluster)
		first := r.apply(blank, now)
		if err := checkTimeOrder(first); err != nil {
			return old, err
		}
		row, err := tx.InsertJob(ctx, store.InsertJobParams(first))
		if err == nil {
			return row, emitChange(ctx, tx, p, "job.recorded", blank, row, map[string]any{"new": toJob(row, now)})
		}
		if !store.None(err) {
			return row, err
		}
		// A concurrent report has inserted it.
		r.cluster = &blank.Cluster
		if old, _, err = lockJob(ctx, tx, r); err != nil {
			return old, err
		}
	}
	next := r.apply(old, now)
	if sameRecord(old, next) {
		return old, nil
	}
	if err := checkTimeOrder(next); err != nil {
		return old, err
	}
	row, err := tx.UpdateJob(ctx, store.UpdateJobParams{
		ID: old.ID, ModelID: next.ModelID, Dataset: next.Dataset, State: next.State, Partition: next.Partition, Nodes: next.Nodes,
		Gpus: next.Gpus, Cpus: next.Cpus, SubmitAt: next.SubmitAt, StartAt: next.StartAt, EndAt: next.EndAt, ExitCode: next.ExitCode,
		FlowRunID: next.FlowRunID, TrackerRunID: next.TrackerRunID, UpdatedAt: now, UpdatedBy: p.Name,
	})
	if err != nil {
		return old, err
	}
	return row, emitChange(ctx, tx, p, "job.updated", old, row, map[string]any{"old": toJob(old, now), "new": toJob(row, now)})
}

// lockJob finds and locks the job of the report.
func lockJob(ctx context.Context, tx store.Tx, r report) (job store.Job, known bool, err error) {
	rows, err := tx.LockJobs(ctx, store.LockJobsParams{Scheduler: r.scheduler, JobID: r.id, Cluster: r.cluster})
	switch {
	case err != nil:
		return store.Job{}, false, err
	case len(rows) == 0:
		return store.Job{}, false, nil
	case len(rows) > 1:
		return store.Job{}, false, fault.JobAmbiguous.New(fmt.Sprintf("Several clusters have a job %s; name one, such as cluster %q.", r.id, rows[0].Cluster))
	}
	return rows[0], true, nil
}

// emitChange writes the audit fact, and the event if the state changed. Like the job
// they belong to no tenant.
func emitChange(ctx context.Context, tx store.Tx, p auth.Principal, action string, old, row store.Job, details map[string]any) error {
	target := strings.Join([]string{"job:" + row.Scheduler, row.Cluster, row.JobID}, "/")
	if err := tx.Emit(ctx, event.Shared(p.Tenant, p.Name, action, target, event.OK, details)); err != nil || old.State == row.State {
		return err
	}
	return tx.Emit(ctx, event.Of(event.PlatformTenant, p.Name, "job", "state_changed", row.JobID, event.JobState{
		JobID: row.JobID, Scheduler: row.Scheduler, Model: row.ModelID, State: row.State, Previous: old.State,
	}))
}

// earliestSubmit returns the latest time at which the job can have been submitted.
func earliestSubmit(now time.Time, known ...*time.Time) time.Time {
	for _, t := range known {
		if t != nil && t.Before(now) {
			now = *t
		}
	}
	return now
}

// checkTimeOrder returns 422 if the job would end before it started.
func checkTimeOrder(j store.Job) error {
	switch {
	case j.StartAt != nil && j.StartAt.Before(j.SubmitAt):
		return fault.Invalid("must not be before submit, "+j.SubmitAt.UTC().Format(time.RFC3339Nano), "body", "timing", "start")
	case j.EndAt != nil && j.EndAt.Before(j.SubmitAt):
		return fault.Invalid("must not be before submit, "+j.SubmitAt.UTC().Format(time.RFC3339Nano), "body", "timing", "end")
	case j.EndAt != nil && j.StartAt != nil && j.EndAt.Before(*j.StartAt):
		return fault.Invalid("must not be before start, "+j.StartAt.UTC().Format(time.RFC3339Nano), "body", "timing", "end")
	}
	return nil
}

// parseReport validates a request.
func parseReport(scheduler, id string, b api.JobInput) (report, error) {
	var faults []problem.Field
	bad := func(msg string, loc ...string) { faults = append(faults, problem.Field{Loc: loc, Msg: msg}) }
	if !api.Scheduler(scheduler).Valid() {
		bad("must be slurm, flux or mock", "path", "scheduler")
	}
	if !wire.Label(id) {
		bad(wire.LabelRule, "path", "id")
	}
	if b.Id != nil && *b.Id != id {
		bad("is not the id of the path", "body", "id")
	}
	if b.Scheduler != nil && *b.Scheduler != scheduler {
		bad("is not the scheduler of the path", "body", "scheduler")
	}
	if !b.State.Valid() {
		bad("must be SUBMITTED, PENDING, RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT or UNKNOWN", "body", "state")
	}
	r := report{
		scheduler: scheduler, id: id, cluster: b.Cluster, dataset: b.Dataset, state: string(b.State), partition: b.Partition,
		exitCode: b.ExitCode, flowRun: b.FlowRunId, trackerRun: b.TrackerRunId,
	}
	if b.Model != nil {
		model := registry.ID(*b.Model)
		r.model = &model
		if !registry.ValidName(*b.Model) {
			bad(registry.NameRule, "body", "model")
		}
	}
	for _, f := range []struct {
		name string
		v    *string
	}{{"cluster", b.Cluster}, {"dataset", b.Dataset}, {"partition", b.Partition}, {"flowRunId", b.FlowRunId}, {"trackerRunId", b.TrackerRunId}} {
		if f.v != nil && !wire.Label(*f.v) {
			bad(wire.LabelRule, "body", f.name)
		}
	}
	if in := b.Resources; in != nil {
		r.nodes, r.gpus, r.cpus = in.Nodes, in.Gpus, in.Cpus
		for _, f := range []struct {
			name string
			v    *int32
		}{{"nodes", in.Nodes}, {"gpus", in.Gpus}, {"cpus", in.Cpus}} {
			if f.v != nil && (*f.v < 0 || *f.v > maxCount) {
				bad(fmt.Sprintf("must be 0 to %d", maxCount), "body", "resources", f.name)
			}
		}
	}
	if in := b.Timing; in != nil {
		for _, f := range []struct {
			name string
			v    *time.Time
			into **time.Time
		}{{"submit", in.Submit, &r.submit}, {"start", in.Start, &r.start}, {"end", in.End, &r.end}} {
			if f.v == nil {
				continue
			}
			t := f.v.UTC().Truncate(time.Microsecond)
			*f.into = &t
			if t.Unix() < 0 || t.Unix() > math.MaxUint32 { // unset by the scheduler, or invalid
				bad("must be a time between 1970 and 2106", "body", "timing", f.name)
			}
		}
	}
	if isWaiting(r.state) && r.start != nil {
		bad("must not be given while the job waits", "body", "timing", "start")
	}
	if !hasEnded(r.state) && r.end != nil {
		bad("must not be given before the job has ended", "body", "timing", "end")
	}
	return r, fault.InvalidAll(faults)
}
