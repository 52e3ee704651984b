package printing

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
)

func ptr[T any](v T) *T { return &v }

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func timeAgo(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func TestCells(t *testing.T) {
	t.Parallel()
	named := metav1.ObjectMeta{Name: "a", Namespace: "n", CreationTimestamp: timeAgo(time.Hour)}
	containers := func(names ...string) (list []corev1.Container) {
		for _, n := range names {
			list = append(list, corev1.Container{Name: n})
		}
		return list
	}
	crashed := corev1.ContainerStatus{
		Name: "app", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: timeAgo(5 * time.Minute)}},
	}
	running := corev1.ContainerStatus{Name: "side", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	initFailed := corev1.ContainerStatus{Name: "wait", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}}
	initRuns := corev1.ContainerStatus{Name: "wait", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	initDone := corev1.ContainerStatus{Name: "wait", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	for _, c := range []struct {
		o    resource.Object
		want string
	}{
		{&corev1.Pod{ObjectMeta: named, Spec: corev1.PodSpec{Containers: containers("app", "side"), NodeName: "w"}, Status: corev1.PodStatus{Phase: "Running", PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{crashed, running}}}, `["a","1/2","CrashLoopBackOff","3 (5m ago)","60m","10.0.0.1","w"]`},
		{&corev1.Pod{ObjectMeta: named, Spec: corev1.PodSpec{Containers: containers("app"), InitContainers: containers("wait")}, Status: corev1.PodStatus{Phase: "Pending", InitContainerStatuses: []corev1.ContainerStatus{initFailed}}}, `["a","0/1","Init:Error","0","60m","\u003cnone\u003e","\u003cnone\u003e"]`},
		{&corev1.Pod{ObjectMeta: named, Spec: corev1.PodSpec{Containers: containers("app"), InitContainers: containers("wait", "next")}, Status: corev1.PodStatus{Phase: "Pending", InitContainerStatuses: []corev1.ContainerStatus{initDone, initRuns}}}, `["a","0/1","Init:1/2","0","60m","\u003cnone\u003e","\u003cnone\u003e"]`},
		{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", DeletionTimestamp: ptr(timeAgo(0))}, Status: corev1.PodStatus{Phase: "Running", Reason: "Evicted"}}, `["a","0/0","Terminating","0","\u003cunknown\u003e","\u003cnone\u003e","\u003cnone\u003e"]`},
		{&corev1.Node{ObjectMeta: named, Spec: corev1.NodeSpec{Unschedulable: true}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "False"}}}}, `["a","NotReady,SchedulingDisabled","60m","","\u003cnone\u003e"]`},
		{&corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Type: "LoadBalancer", ClusterIP: "10.1.1.1", Selector: map[string]string{"b": "2", "a": "1"}, Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP"}}}}, `["a","LoadBalancer","10.1.1.1","\u003cpending\u003e","80/TCP","60m","a=1,b=2"]`},
		{&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Replicas: ptr(int32(3))}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1, UpdatedReplicas: 2, AvailableReplicas: 1}}, `["a","1/3",2,1,"60m",""]`},
		{&batchv1.Job{ObjectMeta: named, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: "Failed", Status: "True"}}}}, `["a","Failed","0/1","60m",""]`},
		{&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 5, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web"}, Metrics: []autoscalingv2.MetricSpec{{Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: autoscalingv2.MetricTarget{AverageUtilization: ptr(int32(80))}}}}}}, `["a","Deployment/web","cpu: \u003cunknown\u003e/80%",1,5,0,"60m"]`},
	} {
		kind := kindOf(t, c.o)
		table := Table(kind, []resource.Object{c.o}, metav1.ListMeta{}, now)
		raw, err := json.Marshal(table.Rows[0].Cells)
		if err != nil || string(raw) != c.want {
			t.Errorf("%s: %s, want %s; %v", kind.Plural, raw, c.want, err)
		}
	}
}

func kindOf(t *testing.T, o resource.Object) resource.Kind {
	t.Helper()
	for _, k := range resource.All() {
		if p, ok := printers[k.GroupVersionKind.GroupKind()]; ok && p.cells(o, now) != nil {
			return k
		}
	}
	t.Fatalf("no printer for %T", o)
	return resource.Kind{}
}

// Every kind of the cluster, also without objects, can be shown under its
// columns.
func TestAllKinds(t *testing.T) {
	t.Parallel()
	for _, k := range resource.All() {
		table := Table(k, []resource.Object{k.New()}, metav1.ListMeta{Continue: "next"}, now)
		if len(table.Rows[0].Cells) != len(table.ColumnDefinitions) || table.Continue != "next" {
			t.Errorf(`%s: %d cells under %d columns; want len(table.Rows[0].Cells) == len(table.ColumnDefinitions) && table.Continue == "next"`, k.Plural, len(table.Rows[0].Cells), len(table.ColumnDefinitions))
		}
		if raw, err := json.Marshal(table); err != nil || !strings.Contains(string(raw), `"kind":"PartialObjectMetadata"`) {
			t.Errorf("%s: %v; want strings.Contains(string(raw), `\"kind\":\"PartialObjectMetadata\"`)", k.Plural, err)
		}
	}
}

func TestWanted(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json": true,
		"application/json;as=Table;v=v1;g=meta.k8s.io":                  true,
		"application/json": false,
		"application/json,application/json;as=Table;v=v1;g=meta.k8s.io":    false,
		"application/json;as=Table;v=v1beta1;g=meta.k8s.io":                false,
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io": false,
		"":    false,
		";;;": false,
	} {
		if Wanted(accept) != want {
			t.Errorf("%q: %v", accept, !want)
		}
	}
}
