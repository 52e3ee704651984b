package network

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Policies cannot distinguish the replicas of a workload: any number of them costs no more than one on each side. It
// counts allocations of the whole process and so runs in parallel with no other test.
func TestRouteOfManyReplicasIsJudgedOnce(t *testing.T) { //nolint:paralleltest // see above
	const replicas = 300
	pods := func(app string) (all []corev1.Pod) {
		for i := range replicas {
			all = append(all, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(app, i), Labels: map[string]string{"app": app}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}}},
			})
		}
		return all
	}
	snap := &engine.Snapshot{Pods: append(pods("web"), pods("db")...)}
	snap.NetworkPolicies = []networkingv1.NetworkPolicy{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "closed"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}}
	x := New(engine.NewIndex(snap))
	var from, to RouteEnd
	for i := range replicas {
		from.Pods, to.Pods = append(from.Pods, &snap.Pods[i]), append(to.Pods, &snap.Pods[replicas+i])
	}
	if j := x.JudgeRoute(from, to, 0); len(j.Barriers) != 1 || j.Barriers[0].Policy.Name != "closed" || !j.Policies || len(j.Open) != 0 {
		t.Errorf("got %+v; want the one barrier", j)
	}
	if got := testing.AllocsPerRun(3, func() { x.JudgeRoute(from, to, 0) }); got > 200 {
		t.Errorf("%.0f allocations for %d callers of %d pods of one kind; want at most 200", got, replicas, replicas)
	}
}
