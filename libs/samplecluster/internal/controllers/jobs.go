package controllers

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

func jobDone(j *batchv1.Job) (batchv1.JobConditionType, bool) {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type, true
		}
	}
	return "", false
}

func (p *pass) jobs() {
	for _, old := range store.List[*batchv1.Job](p.Tx, resource.Jobs, "") {
		if _, done := jobDone(old); done || old.DeletionTimestamp != nil {
			continue
		}
		j := copyObject(old)
		var active, failed, succeeded int32
		var live []*corev1.Pod
		newest := time.Time{}
		for _, pod := range p.podsOf(j, resource.Pods) {
			switch pod.Status.Phase {
			case corev1.PodSucceeded:
				succeeded++
			case corev1.PodFailed:
				failed++
				for _, c := range pod.Status.ContainerStatuses {
					if t := c.State.Terminated; t != nil && t.FinishedAt.After(newest) {
						newest = t.FinishedAt.Time
					}
				}
			default:
				active++
				live = append(live, pod)
			}
		}
		if !*j.Spec.Suspend && j.Status.StartTime == nil {
			at := p.stamp()
			j.Status.StartTime = &at
		}
		stop := func() {
			for _, pod := range live {
				p.stop(pod)
			}
			active = 0
		}
		switch {
		case *j.Spec.Suspend:
			stop()
		case succeeded >= *j.Spec.Completions:
			at := p.stamp()
			j.Status.CompletionTime = &at
			p.endJob(j, batchv1.JobComplete, "CompletionsReached", "Reached expected number of succeeded pods")
			p.note(j, "job-controller", corev1.EventTypeNormal, "Completed", "Job completed")
		case failed > *j.Spec.BackoffLimit:
			stop()
			p.endJob(j, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
			p.note(j, "job-controller", corev1.EventTypeWarning, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
		case j.Spec.ActiveDeadlineSeconds != nil && !j.Status.StartTime.Add(time.Duration(*j.Spec.ActiveDeadlineSeconds)*time.Second).After(p.now):
			stop()
			p.endJob(j, batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
			p.note(j, "job-controller", corev1.EventTypeWarning, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
		default:
			if j.Spec.ActiveDeadlineSeconds != nil {
				p.again(j.Status.StartTime.Add(time.Duration(*j.Spec.ActiveDeadlineSeconds) * time.Second))
			}
			// Failed pods are followed after 10 s, 20 s, 40 s, …, at most six minutes.
			wait := newest.Add(min(10*time.Second<<max(min(failed-1, 8), 0), 6*time.Minute))
			if failed > 0 && wait.After(p.now) {
				p.again(wait)
				break
			}
			for active < min(*j.Spec.Parallelism, *j.Spec.Completions-succeeded) {
				pod := p.podFrom(j, resource.Jobs, &j.Spec.Template, "")
				pod.GenerateName = j.Name + "-"
				if err := p.create(resource.Pods, pod); err != nil {
					p.noteRarely(j, "job-controller", "FailedCreate", "Error creating: "+creationRefusal(err, pod))
					break
				}
				p.note(j, "job-controller", corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: "+pod.Name)
				active++
			}
		}
		j.Status.Active, j.Status.Failed, j.Status.Succeeded = active, failed, succeeded
		p.Put(resource.Jobs, j)
	}
}

func (p *pass) endJob(j *batchv1.Job, kind batchv1.JobConditionType, reason, message string) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: p.stamp(), LastTransitionTime: p.stamp()})
}

// maxMissed limits how many missed runs of a cron job are considered.
const maxMissed = 100

func (p *pass) cronJobs() {
	for _, old := range store.List[*batchv1.CronJob](p.Tx, resource.CronJobs, "") {
		if old.DeletionTimestamp != nil {
			continue
		}
		c := copyObject(old)
		schedule, err := cron.ParseStandard(c.Spec.Schedule)
		if err != nil {
			p.noteRarely(c, "cronjob-controller", "UnparseableSchedule", "unparseable schedule: "+c.Spec.Schedule)
			continue
		}
		zone := time.UTC
		if c.Spec.TimeZone != nil {
			if z, err := time.LoadLocation(*c.Spec.TimeZone); err == nil {
				zone = z
			} else {
				p.noteRarely(c, "cronjob-controller", "UnknownTimeZone", fmt.Sprintf("invalid timeZone: %q: %v", *c.Spec.TimeZone, err))
				continue
			}
		}
		jobs := p.cronChildren(c)
		if !*c.Spec.Suspend {
			last := c.CreationTimestamp.Time
			if c.Status.LastScheduleTime != nil {
				last = c.Status.LastScheduleTime.Time
			}
			due := time.Time{}
			next := schedule.Next(last.In(zone))
			for n := 0; !next.After(p.now) && n < maxMissed; n++ {
				due, next = next, schedule.Next(next)
			}
			if next.Before(p.now) { // long suspended: the runs in between are gone for good
				next = schedule.Next(p.now.In(zone))
			}
			p.again(next)
			p.startRun(c, jobs, due)
		}
		p.Put(resource.CronJobs, c)
	}
}

// cronChildren lists the cron job's jobs, notes which are active and drops the oldest finished ones.
func (p *pass) cronChildren(c *batchv1.CronJob) []*batchv1.Job {
	var jobs []*batchv1.Job
	c.Status.Active = nil
	ended := map[batchv1.JobConditionType][]*batchv1.Job{}
	for _, j := range store.List[*batchv1.Job](p.Tx, resource.Jobs, c.Namespace) {
		if !isController(c, j) {
			continue
		}
		how, done := jobDone(j)
		if !done {
			jobs = append(jobs, j)
			c.Status.Active = append(c.Status.Active, corev1.ObjectReference{Kind: "Job", APIVersion: "batch/v1", Namespace: j.Namespace, Name: j.Name, UID: j.UID, ResourceVersion: j.ResourceVersion})
			continue
		}
		ended[how] = append(ended[how], j)
		if t := j.Status.CompletionTime; t != nil && (c.Status.LastSuccessfulTime == nil || t.After(c.Status.LastSuccessfulTime.Time)) {
			c.Status.LastSuccessfulTime = t
		}
	}
	for how, keep := range map[batchv1.JobConditionType]int32{batchv1.JobComplete: *c.Spec.SuccessfulJobsHistoryLimit, batchv1.JobFailed: *c.Spec.FailedJobsHistoryLimit} {
		list := ended[how]
		slices.SortFunc(list, func(a, b *batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		for len(list) > int(keep) {
			p.Remove(resource.Jobs, list[0].Namespace, list[0].Name)
			list = list[1:]
		}
	}
	return jobs
}

func (p *pass) startRun(c *batchv1.CronJob, active []*batchv1.Job, due time.Time) {
	if due.IsZero() || c.Spec.StartingDeadlineSeconds != nil && due.Add(time.Duration(*c.Spec.StartingDeadlineSeconds)*time.Second).Before(p.now) {
		return
	}
	if len(active) > 0 {
		switch c.Spec.ConcurrencyPolicy {
		case batchv1.ForbidConcurrent:
			return
		case batchv1.ReplaceConcurrent:
			for _, j := range active {
				p.Remove(resource.Jobs, j.Namespace, j.Name)
			}
		}
	}
	j := resource.Of(resource.Jobs).New().(*batchv1.Job)
	j.Name, j.Namespace = c.Name+"-"+strconv.FormatInt(due.Unix()/60, 10), c.Namespace
	j.Labels, j.Annotations = c.Spec.JobTemplate.Labels, c.Spec.JobTemplate.Annotations
	j.OwnerReferences = ownedBy(c, resource.CronJobs)
	j.Spec = *c.Spec.JobTemplate.Spec.DeepCopy()
	if err := p.create(resource.Jobs, j); err != nil {
		p.noteRarely(c, "cronjob-controller", "FailedCreate", "Error creating job: "+err.Error())
		return
	}
	at := metav1.NewTime(due.UTC())
	c.Status.LastScheduleTime = &at
	c.Status.Active = append(c.Status.Active, corev1.ObjectReference{Kind: "Job", APIVersion: "batch/v1", Namespace: j.Namespace, Name: j.Name, UID: j.UID})
	p.note(c, "cronjob-controller", corev1.EventTypeNormal, "SuccessfulCreate", "Created job "+j.Name)
}
