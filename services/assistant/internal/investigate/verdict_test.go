package investigate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

const allClear = "Nothing was found wrong"

// TestVerdicts: nothing is called healthy that is not, or that was not examined.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	ended := func(s *engine.Snapshot, code int32, ago time.Duration) {
		st := &s.Pods[0].Status.ContainerStatuses[0]
		st.RestartCount, st.LastTerminationState.Terminated = 1, &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(s.Taken.Add(-ago))}
	}
	for _, row := range []struct {
		name, file, query string
		change            func(*engine.Snapshot)
		must, not         []string
	}{
		{"healthy", "healthy", "what is wrong?", nil, []string{"No object shows a fault in the cluster.", "Not looked at:", "The logs of the pods"}, []string{allClear}},
		{"healthy, asked for health", "healthy", "is everything ok?", nil, []string{"No object shows a fault in the cluster.", "Not looked at:", "The logs of the pods"}, []string{allClear}},
		{"slow, of a namespace with a finding", "a1_empty_variable", "why is everything slow in shop?", func(s *engine.Snapshot) { s.Usage = map[engine.Log]corev1.ResourceList{} }, []string{"DATABASE_URL", "has a CPU limit"}, nil},
		{"logs of pods that were not read", "healthy", "show the logs of gallery", func(s *engine.Snapshot) { s.Pods, s.Unread["pods"] = nil, true }, []string{"could not be read"}, []string{"There are no pods"}},
		{"a period longer than logs can be limited to", "healthy", "what is wrong with gallery in the last 2 days?", nil, []string{"logs can be limited to a day at most"}, []string{"from the last 2 days"}},
		{"crash without a cause", "healthy", "what is wrong?", func(s *engine.Snapshot) { ended(s, 139, 10*time.Minute) },
			[]string{"No known cause was found, but not everything is healthy", "exit code 139 (signal SIGSEGV)"}, []string{allClear}},
		{"crash that was survived", "healthy", "what is wrong?", func(s *engine.Snapshot) { ended(s, 139, 48*time.Hour) }, []string{"No object shows a fault"}, []string{"exit code 139"}},
		{"many restarts, the last hours ago", "healthy", "what is wrong?", func(s *engine.Snapshot) {
			ended(s, 139, 5*time.Hour)
			s.Pods[0].Status.ContainerStatuses[0].RestartCount = 40
		}, []string{"was restarted 40 times, last 5h0m0s ago"}, []string{allClear}},
		{"one restart hours ago, asked about", "healthy", "why does gallery restart?", func(s *engine.Snapshot) { ended(s, 139, 5*time.Hour) }, []string{"was restarted 1 time, last 5h0m0s ago"}, []string{allClear}},
		{"one restart hours ago, not asked about", "healthy", "what is wrong?", func(s *engine.Snapshot) { ended(s, 139, 5*time.Hour) }, []string{"No object shows a fault"}, []string{"exit code 139"}},
		{"object of a kind that was not read", "healthy", "what is wrong with networkpolicy guard-2?", func(s *engine.Snapshot) { s.Unread["networkpolicies"] = true }, []string{"whether there is `guard-2`", "is not known"}, []string{"There is no networkpolicy"}},
		{"kinds unread", "healthy", "what is wrong?", func(s *engine.Snapshot) { s.Unread["networkpolicies"] = true }, []string{"Not looked at:", "networkpolicies", "kubectl get networkpolicies -A"}, []string{allClear}},
		{"repeated warning", "healthy", "is everything ok?", func(s *engine.Snapshot) {
			s.Events = append(s.Events, corev1.Event{
				Type: corev1.EventTypeWarning, Reason: "DNSConfigForming", Message: "too many", Count: 9, LastTimestamp: metav1.NewTime(s.Taken.Add(-time.Minute)),
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.Pods[0].Namespace, Name: s.Pods[0].Name},
			})
		}, []string{"`DNSConfigForming` 9 times: `too many`"}, []string{allClear}},
		{"kind without a playbook", "healthy", "what is wrong with configmap app?", func(s *engine.Snapshot) {
			s.ConfigMaps = append(s.ConfigMaps, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Pods[0].Namespace, Name: "app"}})
		}, []string{"ConfigMap are not judged by any playbook"}, []string{allClear + " with"}},
		{"webhook, asked of the workload", "webhook_away", "why does web not start?", nil, []string{"admission webhook `pods.policy.example.com` cannot be called"}, []string{allClear}},
		{"webhook, asked by its own name", "webhook_away", "what is wrong with pods.policy.example.com?", nil, []string{"cannot be called"}, []string{allClear, "There is no"}},
		{"webhook, asked by its configuration", "webhook_away", "what is wrong with webhook policy?", nil, []string{"cannot be called"}, []string{allClear, "There is no"}},
		{"name that only a finding says", "a11_absent_class", "what is wrong with fast-ssd?", nil, []string{"A finding mentions it.", "storage class `fast-ssd` does not exist"}, []string{allClear}},
		{"paused rollout", "rollout_paused", "which version of web is running?", func(s *engine.Snapshot) {
			set := &s.ReplicaSets[0]
			yes := true
			s.Pods = append(s.Pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: "web-1-abcde", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: set.Name, Controller: &yes}}},
				Spec:       set.Spec.Template.Spec,
				Status:     corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Ready: true}}},
			})
		}, []string{"not run exactly the wanted image", "shop/web:2.3.1` in "}, nil},
		{"second container", "a1_empty_variable", "why does api crash?", func(s *engine.Snapshot) {
			spec, st := &s.Pods[0].Spec, &s.Pods[0].Status
			spec.Containers = append(spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1"})
			st.ContainerStatuses = append(st.ContainerStatuses, corev1.ContainerStatus{Name: "proxy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerError"}}})
		}, []string{"DATABASE_URL", "Not explained by this", "Container `proxy`", "CreateContainerError"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := readFixture(t, unsetLog, row.file)
			if row.file == "healthy" {
				s.Deployments[0].Status.ReadyReplicas = *s.Deployments[0].Spec.Replicas
			}
			if row.change != nil {
				row.change(s)
			}
			checkAnswer(t, row.query, askOnce(t, toolsOn(s), "", row.query), row.must, row.not)
		})
	}
}

// TestEveryNameCanBeAskedAbout: a question can use the name that a finding gives its object.
func TestEveryNameCanBeAskedAbout(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	s, err := b.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range playbook.Findings(s, "") {
		query := "what is wrong with " + strings.ToLower(f.Object.Kind) + " " + f.Object.Name + "?"
		a := askOnce(t, b, f.Object.Namespace, query)
		if !strings.Contains(a.text, f.Cause) {
			t.Errorf("%q must say %q:\n%s", query, f.Cause, a.text)
		}
	}
}

// A stuck rollout is no cause: the findings about its pods and its replica set are shown beside it.
func TestStuckRolloutHidesNoCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *engine.Snapshot)
		want   string
	}{
		"creation refused": {func(s *engine.Snapshot) {
			d := &s.Deployments[0]
			d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
				Reason: "FailedCreate", Message: `pods "web" is forbidden: violates PodSecurity "restricted:latest": privileged`})
		}, `violates PodSecurity "restricted:latest"`},
		"scheduling gate": {func(s *engine.Snapshot) {
			set := s.ReplicaSets[slices.IndexFunc(s.ReplicaSets, func(r appsv1.ReplicaSet) bool { return r.Name == "web-2" })]
			controller := true
			s.Pods = append(s.Pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: "web-2-abcde", UID: "p-web-2", Labels: set.Spec.Template.Labels,
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: &controller}}},
				Spec:   corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/capacity"}}, Containers: set.Spec.Template.Spec.Containers},
				Status: corev1.PodStatus{Phase: corev1.PodPending},
			})
		}, "waits for its scheduling gate `example.com/capacity`"},
	} {
		s := readFixture(t, "", "rollout_stuck")
		c.change(s)
		d := s.Deployments[0]
		checkAnswer(t, name, askOnce(t, toolsOn(s), d.Namespace, "why does "+d.Name+" not roll out?"), []string{"have not become ready", "Not explained by this", c.want}, nil)
	}
}

// An autoscaler at its minimum does what it is configured to do.
func TestAutoscalerAtItsMinimumIsNoFault(t *testing.T) {
	t.Parallel()
	s := gallery(t)
	minimum := int32(2)
	s.Autoscalers = append(s.Autoscalers, autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "gallery"},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &minimum, MaxReplicas: 9, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "gallery", APIVersion: "apps/v1"}},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 2, DesiredReplicas: 2, Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
			{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: "ReadyForNewScale"},
			{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound"},
			{Type: autoscalingv2.ScalingLimited, Status: corev1.ConditionTrue, Reason: "TooFewReplicas", Message: "the desired replica count is less than the minimum replica count"},
		}},
	})
	checkAnswer(t, "does not scale", askOnce(t, toolsOn(s), "media", "gallery does not scale up - is the autoscaler broken?"), []string{"works as configured", "its minimum of 2"}, []string{"thing is wrong", "things are wrong"})
	checkAnswer(t, "broken", askOnce(t, toolsOn(s), "media", "is gallery broken?"), nil, []string{"thing is wrong", "things are wrong"})
}
