// Package job keeps the facility's batch jobs as their schedulers report them.
//
// Jobs belong to no tenant: every tenant reads them, and whoever may manage
// reports them. A job is known by scheduler, cluster and the scheduler's id.
//
//	SUBMITTED, PENDING   it waits
//	RUNNING              it runs
//	UNKNOWN              the scheduler cannot tell, or nobody has asked it yet
//	COMPLETED, FAILED, CANCELLED, TIMEOUT   it has ended, and stays so
//
// Until it has ended a job may move to any state, also back: schedulers requeue.
package job

import (
	"slices"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// unknown is the state before the first report.
const unknown = "UNKNOWN"

func isWaiting(state string) bool { return state == "SUBMITTED" || state == "PENDING" }

func isRunning(state string) bool { return state == "RUNNING" }

func hasEnded(state string) bool {
	return slices.Contains([]string{"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"}, state)
}

// report is a checked request: nil is what it leaves out.
type report struct {
	scheduler, id           string
	cluster, model, dataset *string
	state                   string
	partition               *string
	nodes, gpus, cpus       *int32
	submit, start, end      *time.Time
	exitCode                *int32
	flowRun, trackerRun     *string
}

// apply is the job after the report. What has ended takes no other state, and
// nothing else that comes with one.
func (r report) apply(job store.Job, now time.Time) store.Job {
	if hasEnded(job.State) && r.state != job.State {
		return job
	}
	job.State = r.state
	setIfGiven(&job.ModelID, r.model)
	setIfGiven(&job.Nodes, r.nodes)
	setIfGiven(&job.Gpus, r.gpus)
	setIfGiven(&job.Cpus, r.cpus)
	setIfGiven(&job.SubmitAt, r.submit)
	replaceIfGiven(&job.Dataset, r.dataset)
	replaceIfGiven(&job.Partition, r.partition)
	replaceIfGiven(&job.ExitCode, r.exitCode)
	replaceIfGiven(&job.FlowRunID, r.flowRun)
	replaceIfGiven(&job.TrackerRunID, r.trackerRun)
	if isWaiting(job.State) {
		job.StartAt = nil // requeued
	}
	if !hasEnded(job.State) {
		job.EndAt = nil
	}
	replaceIfGiven(&job.StartAt, r.start)
	replaceIfGiven(&job.EndAt, r.end)
	if job.StartAt == nil && isRunning(job.State) {
		job.StartAt = laterOf(now, job.SubmitAt)
	}
	if job.EndAt == nil && hasEnded(job.State) {
		job.EndAt = laterOf(now, job.SubmitAt)
		if job.StartAt != nil {
			job.EndAt = laterOf(now, *job.StartAt)
		}
	}
	return job
}

// laterOf is now, unless the clock of who reported is ahead.
func laterOf(now, reported time.Time) *time.Time {
	if reported.After(now) {
		return &reported
	}
	return &now
}

func setIfGiven[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func replaceIfGiven[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

// sameRecord says whether two records of a job tell the same.
func sameRecord(a, b store.Job) bool {
	return a.ModelID == b.ModelID && equalPointers(a.Dataset, b.Dataset) && a.State == b.State && equalPointers(a.Partition, b.Partition) &&
		a.Nodes == b.Nodes && a.Gpus == b.Gpus && a.Cpus == b.Cpus && a.SubmitAt.Equal(b.SubmitAt) && equalTime(a.StartAt, b.StartAt) &&
		equalTime(a.EndAt, b.EndAt) && equalPointers(a.ExitCode, b.ExitCode) && equalPointers(a.FlowRunID, b.FlowRunID) && equalPointers(a.TrackerRunID, b.TrackerRunID)
}

func equalPointers[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func equalTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// toJob is the job at an instant: who waits or runs does so until then.
func toJob(j store.Job, now time.Time) api.Job {
	return api.Job{
		Id: j.JobID, Scheduler: api.Scheduler(j.Scheduler), Cluster: j.Cluster, Model: j.ModelID, Dataset: j.Dataset, State: api.JobState(j.State),
		Partition: j.Partition, Resources: api.JobResources{Nodes: j.Nodes, Gpus: j.Gpus, Cpus: j.Cpus},
		Timing: api.JobTiming{
			Submit: j.SubmitAt.UTC(), Start: wire.UTC(j.StartAt), End: wire.UTC(j.EndAt),
			QueueSeconds: queueSeconds(j, now), RunSeconds: runSeconds(j, now),
		},
		ExitCode: j.ExitCode, FlowRunId: j.FlowRunID, TrackerRunId: j.TrackerRunID, UpdatedAt: j.UpdatedAt.UTC(), UpdatedBy: j.UpdatedBy,
	}
}

func queueSeconds(j store.Job, now time.Time) *int64 {
	switch {
	case j.StartAt != nil:
		return wholeSeconds(j.SubmitAt, *j.StartAt)
	case isWaiting(j.State):
		return wholeSeconds(j.SubmitAt, now)
	case j.EndAt != nil: // ended without having run
		return wholeSeconds(j.SubmitAt, *j.EndAt)
	}
	return nil
}

func runSeconds(j store.Job, now time.Time) *int64 {
	switch {
	case j.StartAt == nil:
		return nil
	case j.EndAt != nil:
		return wholeSeconds(*j.StartAt, *j.EndAt)
	case isRunning(j.State):
		return wholeSeconds(*j.StartAt, now)
	}
	return nil
}

// wholeSeconds are whole ones, and none where clocks disagree.
func wholeSeconds(from, to time.Time) *int64 {
	n := max(0, int64(to.Sub(from)/time.Second))
	return &n
}
