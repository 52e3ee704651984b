package workload

import (
	"cmp"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

func jobRef(j *batchv1.Job) operation.Ref {
	return operation.Ref{Group: "batch", Version: "v1", Kind: "Job", Namespace: j.Namespace, Name: j.Name}
}

// jobCondition returns the condition of one of these types that is true, or nil.
func jobCondition(j *batchv1.Job, types ...batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		if c := &j.Status.Conditions[i]; slices.Contains(types, c.Type) && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// checkJobs explains JobFailed: by the newest pod, then by the limit that the job reached.
func checkJobs(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.Jobs {
		j := &x.Jobs[i]
		ended := jobCondition(j, batchv1.JobFailed, batchv1.JobFailureTarget)
		if ended == nil && j.Status.Failed == 0 {
			continue
		}
		pods := x.newest(jobRef(j))
		retried := ended == nil && j.Status.Succeeded == 0 && len(pods) > 0 && pods[0].Status.Phase == corev1.PodFailed
		indexes := ended == nil && engine.ValueOr(j.Status.FailedIndexes, "") != ""
		if j.DeletionTimestamp != nil || ended == nil && !retried && !indexes || jobCondition(j, batchv1.JobComplete, batchv1.JobSuccessCriteriaMet) != nil {
			continue
		}
		later, failedBefore := x.runsAround(j)
		if later {
			continue
		}
		f := engine.Finding{Class: engine.JobFailed, Object: jobRef(j), Because: []operation.Ref{jobRef(j)}}
		var failed *corev1.Pod
		if at := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed || firstFailure(pod) != nil }); at >= 0 {
			failed = pods[at]
			f.Pods = []string{failed.Name}
			f.Because = append(f.Because, x.policy.Grounds(failed)...)
		}
		explainJob(&f, x, failed, ended)
		explainJobBound(&f, j, ended)
		if failedBefore > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Before it, %s of the same CronJob failed.", engine.CountNoun(failedBefore, "run", "runs")))
		}
		offerRerun(&f, x, j)
		found = append(found, f)
	}
	return found
}

// newest returns the living pods of a workload, youngest first.
func (x *Index) newest(ref operation.Ref) []*corev1.Pod {
	return slices.SortedFunc(slices.Values(x.PodsOf(ref)), func(a, b *corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// runsAround reports whether a later run of the same CronJob ended, well or not, so that this one is past, and counts
// the earlier ones that failed.
func (x *Index) runsAround(j *batchv1.Job) (later bool, failed int) {
	owner := metav1.GetControllerOf(j)
	if owner == nil {
		return false, 0
	}
	for _, other := range x.Runs()[owner.UID] {
		if other.Name == j.Name {
			continue
		}
		switch bad := jobCondition(other, batchv1.JobFailed) != nil; {
		case j.CreationTimestamp.Before(&other.CreationTimestamp):
			later = later || bad || jobCondition(other, batchv1.JobComplete) != nil
		case bad:
			failed++
		}
	}
	return later, failed
}

// firstFailure returns the first container of a pod that failed, in starting order.
func firstFailure(pod *corev1.Pod) *engine.Container {
	for _, c := range engine.ListContainers(pod) {
		if end := c.LastEnd(); end != nil && end.ExitCode != 0 {
			return &c
		}
	}
	return nil
}

// explainJob explains why the newest failed pod ended.
func explainJob(f *engine.Finding, x *Index, failed *corev1.Pod, ended *batchv1.JobCondition) {
	late := ended != nil && ended.Reason == batchv1.JobReasonDeadlineExceeded
	if failed != nil {
		c := firstFailure(failed)
		switch {
		case c == nil || late && (c.LastEnd().ExitCode == 143 || c.LastEnd().ExitCode == 137 && !c.OutOfMemory()):
			// Ended from outside: by a node, or because of the deadline.
		case c.OutOfMemory():
			m := tooMuchMemory(x.WorkloadOf(failed), *c)
			f.Evidence, f.Cause, f.Text, f.Confidence = m.Evidence, m.Cause, m.Text, m.Confidence
			return
		default:
			m := x.explainCrash(failed, x.WorkloadOf(failed), *c)
			f.Evidence, f.Cause, f.Text, f.Confidence = m.Evidence, m.Cause, m.Text, m.Confidence
			return
		}
		if failed.Status.Reason != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Pod %s failed: %s %s.", engine.QuoteCode(failed.Name), engine.QuoteCode(failed.Status.Reason), engine.QuoteCode(failed.Status.Message)))
		}
	}
	switch {
	case ended == nil && failed == nil:
		f.Cause, f.Confidence = "Some indexes of the job have failed permanently; the others continue.", engine.High
		f.Text = "Read the log of a pod of a failed index; pods carry theirs in the annotation batch.kubernetes.io/job-completion-index."
	case ended != nil && ended.Reason == batchv1.JobReasonPodFailurePolicy:
		f.Cause, f.Confidence = "A pod failed in a way for which the job's podFailurePolicy ends the job at once, so nothing was tried again.", engine.High
		f.Text = "Look what the program means by this exit code, or which condition of the pod it was; a rule with the action Ignore or Count would let the job try again."
	case ended != nil && (ended.Reason == batchv1.JobReasonFailedIndexes || ended.Reason == batchv1.JobReasonMaxFailedIndexesExceeded):
		f.Cause, f.Confidence = "Some indexes of the job failed more often than backoffLimitPerIndex lets them.", engine.High
		f.Text = "Read the log of a pod of a failed index; pods carry theirs in the annotation batch.kubernetes.io/job-completion-index."
	case late:
		f.Cause, f.Confidence = "The job ran past its deadline and was stopped.", engine.High
		f.Text = "Find out what makes it slow, or choose a longer activeDeadlineSeconds."
	case failed != nil && failed.Status.Reason == "Evicted":
		f.Cause, f.Confidence = "The node evicted the job's pod.", engine.High
		f.Text = "Look at the node, and at what the pod uses beyond its requests."
	default:
		f.Cause, f.Confidence = "The job failed, and none of its pods is left to show why.", engine.Low
		f.Text = "Look for its log in your log store, or run it again and read the log immediately."
	}
}

// explainJobBound names the limit of the job that ended it.
func explainJobBound(f *engine.Finding, j *batchv1.Job, ended *batchv1.JobCondition) {
	failed := engine.CountNoun(int(j.Status.Failed), "pod", "pods")
	if indexes := engine.ValueOr(j.Status.FailedIndexes, ""); indexes != "" {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Failed are the indexes %s of %d; completed are %s.", engine.QuoteCode(indexes), engine.ValueOr(j.Spec.Completions, 0), engine.QuoteCode(cmp.Or(j.Status.CompletedIndexes, "none"))))
	}
	switch {
	case ended == nil && j.Spec.BackoffLimitPerIndex != nil:
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s of the job failed so far; each index is tried again %d times at most (backoffLimitPerIndex).", engine.UpperFirst(failed), *j.Spec.BackoffLimitPerIndex))
	case ended == nil:
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s of the job failed so far; it tries again until %d have (backoffLimit).", engine.UpperFirst(failed), engine.ValueOr(j.Spec.BackoffLimit, 6)+1))
	case ended.Reason == batchv1.JobReasonBackoffLimitExceeded:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The job gave up after %s failed: its backoffLimit is %d.", failed, engine.ValueOr(j.Spec.BackoffLimit, 6)))
	case ended.Reason == batchv1.JobReasonDeadlineExceeded && j.Spec.ActiveDeadlineSeconds != nil:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The job was stopped at its activeDeadlineSeconds of %d.", *j.Spec.ActiveDeadlineSeconds))
	default:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The job's condition says %s: %s.", engine.QuoteCode(ended.Reason), engine.QuoteCode(ended.Message)))
	}
}

// offerRerun explains how to rerun the job. Its pods are immutable, so a new job is needed; a CronJob that has been
// corrected since can create it.
func offerRerun(f *engine.Finding, x *Index, j *batchv1.Job) {
	owner := metav1.GetControllerOf(j)
	if owner == nil || owner.Kind != "CronJob" {
		f.Text += " Then delete the job and create it again: the pods of a job cannot be changed."
		return
	}
	f.Text += fmt.Sprintf(" Change the CronJob %s, whose next run takes it.", engine.QuoteCode(owner.Name))
	for i := range x.CronJobs {
		c := &x.CronJobs[i]
		if c.UID != owner.UID || engine.EqualValues(c.Spec.JobTemplate.Spec.Template.Spec, j.Spec.Template.Spec) {
			continue
		}
		o := engine.NewOperation(operation.RunJob, operation.Ref{Group: "batch", Kind: "CronJob", Namespace: c.Namespace, Name: c.Name})
		o.NewName = j.Name + "-again"
		if f.Fix = engine.ValidFix(o); f.Fix != nil {
			f.Text = fmt.Sprintf("The CronJob %s was changed since: run it once with what it has now.", engine.QuoteCode(c.Name))
		}
	}
}
