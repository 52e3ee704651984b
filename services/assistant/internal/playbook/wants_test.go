package playbook_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// podOf returns a pod of an owner, with one container in a state.
func podOf(kind, owner, name string, phase corev1.PodPhase, status corev1.ContainerStatus) corev1.Pod {
	yes := true
	status.Name = "main"
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: &yes}}},
		Spec:       corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "default", Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{status}},
	}
}

var (
	crashing = corev1.ContainerStatus{
		RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}},
	}
	ended   = corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}}
	running = corev1.ContainerStatus{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
)

func TestWants(t *testing.T) {
	t.Parallel()
	s := &engine.Snapshot{}
	// A storm: 100 crashing pods of 50 replica sets, 30 waiting pods, 30 jobs, 60 callers.
	for i := range 100 {
		s.Pods = append(s.Pods, podOf("ReplicaSet", fmt.Sprintf("crash-%02d", i/2), fmt.Sprintf("crash-%02d-%d", i/2, i%2), corev1.PodRunning, crashing))
	}
	for i := range 30 {
		waits := podOf("ReplicaSet", fmt.Sprintf("init-%02d", i), fmt.Sprintf("init-%02d-a", i), corev1.PodPending, corev1.ContainerStatus{})
		waits.Spec.InitContainers = []corev1.Container{{Name: "wait"}}
		waits.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "wait", State: running.State}}
		s.Pods = append(s.Pods, waits)
		for try := range 3 {
			pod := podOf("Job", fmt.Sprintf("job-%02d", i), fmt.Sprintf("job-%02d-%d", i, try), corev1.PodFailed, ended)
			pod.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 2, 11, i, try, 0, time.UTC))
			s.Pods = append(s.Pods, pod)
		}
	}
	for i := range 60 {
		caller := podOf("ReplicaSet", fmt.Sprintf("own-%02d", i), fmt.Sprintf("own-%02d-a", i), corev1.PodRunning, running)
		caller.Spec.ServiceAccountName = "own"
		s.Pods = append(s.Pods, caller, podOf("ReplicaSet", fmt.Sprintf("web-%02d", i), fmt.Sprintf("web-%02d-a", i), corev1.PodRunning, running))
	}
	wants := s.Wants()
	if len(wants) != 40 {
		t.Errorf("%d logs, want 40", len(wants))
	}
	kinds := map[string]int{}
	for _, w := range wants {
		kinds[w.Pod[:3]]++
		if w.Previous != (w.Pod[:3] == "cra") {
			t.Errorf(`%+v is of the wrong run; want w.Previous == (w.Pod[:3] == "cra")`, w)
		}
	}
	if kinds["cra"] != 20 || kinds["ini"] != 10 || kinds["job"] != 5 || kinds["own"] != 5 || kinds["web"] != 0 {
		t.Errorf(`got %v; want kinds["cra"] == 20 && kinds["ini"] == 10 && kinds["job"] == 5 && kinds["own"] == 5 && kinds["web"] == 0`, kinds)
	}
	// The newest pod of the newest job comes first.
	if at := slices.IndexFunc(wants, func(w engine.Log) bool { return w.Pod[:3] == "job" }); wants[at].Pod != "job-29-2" {
		t.Errorf("the first job's log is of %s", wants[at].Pod)
	}
	for seed := range uint64(5) {
		if again := shuffleSnapshot(s, seed).Wants(); !slices.Equal(again, wants) {
			t.Errorf("another order wants other logs: %v", again)
		}
	}
}

// TestUnreadLogs has more crashing pods than logs are read of: those without a log are not reported again.
func TestUnreadLogs(t *testing.T) {
	t.Parallel()
	s := &engine.Snapshot{Logs: map[engine.Log]string{}}
	for i := range 5 {
		s.Pods = append(s.Pods, podOf("ReplicaSet", "api", fmt.Sprintf("api-%d", i), corev1.PodRunning, crashing))
	}
	writeLogs(s, "dial tcp 10.0.0.9:5432: connect: connection refused")
	if len(s.Logs) != 2 {
		t.Errorf("wants %v", s.Wants())
	}
	for seed := range uint64(5) {
		if found := playbook.Diagnose(shuffleSnapshot(s, seed), ""); len(found) != 1 || len(found[0].Pods) != 5 {
			t.Errorf("found %+v; want len(found) == 1 && len(found[0].Pods) == 5", found)
		}
	}
}
