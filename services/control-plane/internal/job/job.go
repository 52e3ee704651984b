// Package job stores the facility's batch jobs as reported by their schedulers.
//
// Jobs belong to no tenant: every tenant may read them, and the scope manage may report
// them. A job is identified by scheduler, cluster and the scheduler's id.
//
//	SUBMITTED, PENDING   it waits
//	RUNNING              it runs
//	UNKNOWN              the scheduler does not know, or was not queried yet
//	COMPLETED, FAILED, CANCELLED, TIMEOUT   it has ended; final
//
// Until it has ended, a job may change to any state, even backwards: schedulers requeue.
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

// report is a validated request; omitted members are nil.
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

// apply returns the job after the report. An ended job ignores reports with a different
// state.
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

// laterOf returns now, or reported if the reporter's clock is ahead.
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

// sameRecord reports whether two job records are equal.
func sameRecord(a, b store.Job) bool {
	return a.ModelID == b.ModelID && equalPointers(a.Dataset, b.Dataset) && a.State == b.State && equalPointers(a.Partition, b.Partition) &&
		a.Nodes == b.Nodes && a.Gpus == b.Gpus && a.Cpus == b.Cpus && a.SubmitAt.Equal(b.SubmitAt) && equalTime(a.StartAt, b.StartAt) &&
		equalTime(a.EndAt, b.EndAt) && equalPointers(a.ExitCode, b.ExitCode) && equalPointers(a.FlowRunID, b.FlowRunID) && equalPointers(a.TrackerRunID, b.TrackerRunID)
}

func equalPointers[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func equalTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// toJob returns the job at an instant; waiting and running times count up to now.
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

// wholeSeconds returns the whole seconds between two times, 0 if clocks disagree.
func wholeSeconds(from, to time.Time) *int64 {
	n := max(0, int64(to.Sub(from)/time.Second))
	return &n
}
