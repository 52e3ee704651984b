package symptom

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

func (l *lister) pods() {
	for i := range l.Pods {
		pod := &l.Pods[i]
		if !l.in(pod) {
			continue
		}
		s := Symptom{Object: ref("Pod", pod), Owner: l.ownerOf(pod)}
		name := "Pod " + engine.QuoteCode(pod.Name)
		switch {
		case pod.DeletionTimestamp != nil:
			if l.since(pod.DeletionTimestamp.Time) > endingGrace { // the timestamp is the end of its grace period
				s.Text = name + " should be gone and is still there."
				l.add(s)
			}
			continue
		case pod.Status.Phase == corev1.PodSucceeded:
			continue
		case pod.Status.Phase == corev1.PodFailed && s.Owner.Kind == "CronJob":
			continue // the Job reports whether this was its last attempt
		case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
			s.Text = fmt.Sprintf("%s failed: %s.", name, engine.QuoteCode(pod.Status.Reason+" "+pod.Status.Message))
			l.add(s)
			continue
		}
		before := len(l.found)
		for _, c := range engine.ListContainers(pod) {
			l.container(s, pod, c)
		}
		if len(l.found) > before {
			continue
		}
		switch {
		case pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName == "":
			s.Text, s.telling = name+" is on no node yet.", true
		case pod.Status.Phase == corev1.PodPending:
			s.Text, s.telling = name+" has not started yet.", true
		case pod.Status.Phase != corev1.PodRunning:
			s.Text = fmt.Sprintf("%s is %s.", name, engine.QuoteCode(string(pod.Status.Phase)))
		case !engine.PodReady(pod) && hasCondition(pod, corev1.PodReady):
			s.Text = name + " runs and is not ready."
		default:
			continue
		}
		l.add(s)
	}
}

func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return true
		}
	}
	return false
}

// ordinaryWaits are the reasons of a container that is merely waiting its turn.
var ordinaryWaits = map[string]bool{"": true, "PodInitializing": true, "ContainerCreating": true}

func (l *lister) container(s Symptom, pod *corev1.Pod, c engine.Container) {
	s.Container = c.Spec.Name
	name := fmt.Sprintf("Container %s of pod %s", engine.QuoteCode(c.Spec.Name), engine.QuoteCode(pod.Name))
	end := c.LastEnd()
	switch {
	case !ordinaryWaits[c.Waiting()]:
		s.Text = fmt.Sprintf("%s waits: %s.", name, engine.QuoteCode(c.Waiting()))
	case c.Status.State.Terminated != nil && c.Status.State.Terminated.ExitCode != 0:
		s.Text = fmt.Sprintf("%s ended with %s.", name, engine.ExitText(end.ExitCode))
		s.ended = true
	case l.restarted(c) && (c.Status.RestartCount >= 2 || l.since(end.FinishedAt.Time) < freshRestart):
		s.Text, s.ended = l.restartText(name, c), true
	case c.Init && c.Status.State.Running != nil && (c.Spec.RestartPolicy == nil || *c.Spec.RestartPolicy != corev1.ContainerRestartPolicyAlways):
		s.Text = fmt.Sprintf("Init container %s of pod %s still runs, so the others wait.", engine.QuoteCode(c.Spec.Name), engine.QuoteCode(pod.Name))
	case !c.Init && c.Status.State.Running != nil && !c.Status.Ready:
		s.Text = name + " runs and is not ready."
	default:
		if l.restarted(c) {
			s.Text, s.ended, s.Survived = l.restartText(name, c), true, true
			l.survived = append(l.survived, s) // the object counts as healthy
		}
		return
	}
	l.add(s)
}

// restarted reports whether a container is running again after a recent failure.
func (l *lister) restarted(c engine.Container) bool {
	end := c.LastEnd()
	return c.Status.State.Running != nil && c.Status.RestartCount > 0 && end != nil && end.ExitCode != 0 && l.since(end.FinishedAt.Time) < engine.Recent
}

func (l *lister) restartText(name string, c engine.Container) string {
	end := c.LastEnd()
	return fmt.Sprintf("%s was restarted %s, last %s ago after %s.", name, engine.CountNoun(int(c.Status.RestartCount), "time", "times"),
		l.since(end.FinishedAt.Time).Truncate(time.Second), engine.ExitText(end.ExitCode))
}
