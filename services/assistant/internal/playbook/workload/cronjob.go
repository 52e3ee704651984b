package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// startGrace is the delay after which a run counts as missed.
const startGrace = 2 * time.Minute

// checkCronJobs explains CronJobIdle: why no run has started.
func checkCronJobs(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.CronJobs {
		c := &x.CronJobs[i]
		f := engine.Finding{Class: engine.CronJobIdle, Confidence: engine.High}
		f.Object = operation.Ref{Group: "batch", Version: "v1", Kind: "CronJob", Namespace: c.Namespace, Name: c.Name}
		if c.DeletionTimestamp == nil && explainIdle(&f, x, c) {
			found = append(found, f)
		}
	}
	return found
}

func explainIdle(f *engine.Finding, x *Index, c *batchv1.CronJob) bool {
	f.Evidence = []string{fmt.Sprintf("Its schedule is %s; it has never run.", engine.QuoteCode(c.Spec.Schedule))}
	if last := c.Status.LastScheduleTime; last != nil {
		f.Evidence = []string{fmt.Sprintf("Its schedule is %s; it ran last at %s.", engine.QuoteCode(c.Spec.Schedule), last.UTC().Format(time.RFC3339))}
	}
	if engine.ValueOr(c.Spec.Suspend, false) {
		f.Evidence = append(f.Evidence, "Its member suspend is true.")
		f.Cause = "It is suspended, so no run starts."
		f.Text = "If it is meant to run, resume it; runs that were missed do not come back."
		f.Fix = engine.ValidFix(engine.NewOperation(operation.Resume, f.Object))
		return true
	}
	newest := x.EventOf(c.UID, func(e *corev1.Event) bool {
		switch e.Reason {
		case "SuccessfulCreate", "FailedCreate", "UnknownTimeZone", "UnparseableSchedule", "UnParseableCronJobSchedule", "InvalidSchedule", "MissSchedule":
			return true
		}
		return false
	})
	said := ""
	if newest != nil && newest.Reason != "SuccessfulCreate" {
		said = newest.Reason
	}
	schedule, err := cron.ParseStandard(c.Spec.Schedule)
	switch {
	case err != nil || said == "UnparseableSchedule" || said == "UnParseableCronJobSchedule" || said == "InvalidSchedule":
		f.Cause = fmt.Sprintf("Its schedule %s cannot be read, so no run starts.", engine.QuoteCode(c.Spec.Schedule))
		f.Text = "Say when it is to run: minute, hour, day of the month, month, day of the week."
	case said == "UnknownTimeZone":
		f.Cause = fmt.Sprintf("The cluster does not know its time zone %s, so no run starts.", engine.QuoteCode(engine.ValueOr(c.Spec.TimeZone, "")))
		f.Text = "Choose a valid time zone, such as Europe/Berlin or Etc/UTC."
	case schedule.Next(x.Taken).IsZero():
		f.Cause = fmt.Sprintf("Its schedule %s names no day that ever comes.", engine.QuoteCode(c.Spec.Schedule))
		f.Text = "Say when it is to run."
	case said == "FailedCreate":
		f.Evidence = append(f.Evidence, "The controller says "+engine.QuoteCode(newest.Message)+".")
		f.Cause = "Its time came, and the API server refused the job."
		f.Text = "Repair what the message names; the controller tries again at the next time."
	default:
		return explainMissedRuns(f, x, c, schedule, said)
	}
	if newest != nil && said != "" && said != "FailedCreate" {
		f.Evidence = append(f.Evidence, "The controller says "+engine.QuoteCode(newest.Message)+".")
	}
	return true
}

// explainMissedRuns explains runs that should have started and did not.
func explainMissedRuns(f *engine.Finding, x *Index, c *batchv1.CronJob, schedule cron.Schedule, said string) bool {
	zone := time.UTC
	if c.Spec.TimeZone != nil {
		loaded, err := time.LoadLocation(*c.Spec.TimeZone)
		if err != nil {
			return false // a time zone that the cluster accepts but that is unknown here
		}
		zone = loaded
	}
	base := c.CreationTimestamp.Time
	if last := c.Status.LastScheduleTime; last != nil {
		base = last.Time
	}
	due := schedule.Next(base.In(zone))
	if c.Spec.TimeZone == nil {
		// The controller's time zone is unknown: only the second missed time in a row is certain.
		due = schedule.Next(due)
	}
	if base.IsZero() || due.IsZero() || x.Taken.Before(due.Add(startGrace)) {
		return false
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("A run was due at %s and did not start.", due.UTC().Format(time.RFC3339)))
	deadline := c.Spec.StartingDeadlineSeconds
	switch {
	case c.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(c.Status.Active) > 0:
		var active []string
		for _, r := range c.Status.Active {
			active = append(active, r.Name)
			f.Because = append(f.Because, operation.Ref{Group: "batch", Version: "v1", Kind: "Job", Namespace: c.Namespace, Name: r.Name})
		}
		slices.Sort(active)
		f.Evidence = append(f.Evidence, "Running still: "+engine.QuoteCodes(active)+".")
		f.Cause = "An earlier run has not ended, and concurrencyPolicy Forbid lets no other start beside it."
		f.Text = "Find out why that run does not end; an activeDeadlineSeconds on the job would stop such a run."
	case deadline != nil && *deadline < 10:
		f.Cause = fmt.Sprintf("Its startingDeadlineSeconds of %d is shorter than the ten seconds between two looks of the controller, so that runs are missed.", *deadline)
		f.Text = "Choose a longer startingDeadlineSeconds, or leave it out."
	case said == "MissSchedule":
		f.Cause, f.Confidence = fmt.Sprintf("The controller came too late for its startingDeadlineSeconds of %d.", engine.ValueOr(deadline, 0)), engine.Medium
		f.Text = "Look whether the controller manager was away; a longer startingDeadlineSeconds lets it catch up."
	default:
		f.Cause, f.Confidence = "Nothing in the CronJob keeps it from running: the CronJob controller does not start it.", engine.Low
		f.Text = "Look whether the controller manager runs, and whether its clock is right."
	}
	return true
}
