//go:build e2e

package assistant_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/kube"
)

// join adds a node on which only the case's own pods may run.
func (c *corner) join(t *testing.T, suffix string) {
	t.Helper()
	err := c.Join(t.Context(), kube.Node{
		Name: c.ns + "-" + suffix, CPU: "8", Memory: "16Gi", Labels: map[string]string{"case": c.ns},
		Taints: []corev1.Taint{{Key: "case", Value: c.ns, Effect: corev1.TaintEffectNoSchedule}},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The taints of a new node are gone when it is ready, and the controllers have annotated it: a change proposed
	// before that is stale after it.
	c.wait(t, map[string]string{"nodes/NS-" + suffix + ` {.status.conditions[?(@.type=="Ready")].status} {.spec.taints[*].key} {.metadata.annotations.node\.alpha\.kubernetes\.io/ttl}`: "True case 0"})
}

// pinnedDeployment is a deployment that runs on the case's own nodes only.
func pinnedDeployment(name string, replicas int) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: {case: NS}
      tolerations: [{key: case, operator: Exists}]
      containers: [{name: %[1]s, image: "registry.test/%[1]s:1"}]
`, name, replicas)
}

const nodeTaints = " {.spec.taints[*].key} {.spec.taints[*].effect}"

func nodeChanges() []change {
	tiedReady := map[string]string{"deployments/tied {.status.readyReplicas}": "1"}
	return []change{
		{
			name: "cordon", nodes: 1, ask: "cordon NS-a", command: "kubectl cordon NS-a", risk: "medium",
			shows: []string{`(?m)^\+\s+unschedulable: true$`}, writes: []string{"PATCH nodes/NS-a"}, says: []string{`takes no new pods`}, holds: map[string]string{"nodes/NS-a {.spec.unschedulable}": "true"},
		},
		{
			name: "uncordon", nodes: 1,
			before: func(t *testing.T, c *corner) {
				c.edit(t, "nodes/NS-a", `{"spec":{"unschedulable":true}}`)
				c.wait(t, map[string]string{"nodes/NS-a {.spec.taints[*].key}": "case node.kubernetes.io/unschedulable"}) // the controller's own
			},
			ask: "kubectl uncordon NS-a", command: "kubectl uncordon NS-a", risk: "medium",
			writes: []string{"PATCH nodes/NS-a"}, says: []string{`takes new pods`}, holds: map[string]string{"nodes/NS-a {.spec.unschedulable}": ""},
		},
		{
			name: "taint, NoSchedule", objects: pinnedDeployment("tied", 1), nodes: 1, before: waitForObjects(tiedReady),
			ask: "kubectl taint node NS-a own=gpu:NoSchedule", command: "kubectl taint node NS-a own=gpu:NoSchedule", risk: "high",
			shows: []string{`(?m)^\+.*own$`}, writes: []string{"PATCH nodes/NS-a"}, says: []string{`own=gpu:NoSchedule`},
			holds: map[string]string{"nodes/NS-a" + nodeTaints: "case own NoSchedule NoSchedule", "deployments/tied {.status.readyReplicas}": "1"},
		},
		{
			name: "taint, NoExecute", objects: pinnedDeployment("tied", 1), nodes: 1, before: waitForObjects(tiedReady),
			ask: "kubectl taint nodes NS-a own=gpu:NoExecute", command: "kubectl taint node NS-a own=gpu:NoExecute", risk: "high!",
			shows: []string{`tied-`}, writes: []string{"PATCH nodes/NS-a"}, says: []string{`own=gpu:NoExecute`},
			holds: map[string]string{"nodes/NS-a" + nodeTaints: "case own NoSchedule NoExecute", "deployments/tied {.status.readyReplicas}": "", "pods {.items[*].spec.nodeName}": ""},
		},
		{
			name: "taint, removal", nodes: 1,
			before: func(t *testing.T, c *corner) {
				c.edit(t, "nodes/NS-a", c.fill(`{"spec":{"taints":[{"key":"case","value":"NS","effect":"NoSchedule"},{"key":"own","value":"gpu","effect":"PreferNoSchedule"}]}}`))
			},
			ask: "kubectl taint node NS-a own:PreferNoSchedule-", command: "kubectl taint node NS-a own:PreferNoSchedule-", risk: "high",
			shows: []string{`(?m)^-.*own$`}, writes: []string{"PATCH nodes/NS-a"}, says: []string{`case=NS:NoSchedule`}, holds: map[string]string{"nodes/NS-a" + nodeTaints: "case NoSchedule"},
		},
	}
}

// drain: a budget that allows one eviction at a time frees itself as new pods become ready, and the pods of a protected
// namespace are named before they are evicted.
func (w *world) drain(t *testing.T) {
	c := w.corner(t, "vdrain", pinnedDeployment("web", 2)+agent+`
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: most}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
`, 1)
	if err := w.Apply(t.Context(), "kube-system", c.fill(pinnedDeployment("vdrain-dns", 1))); err != nil {
		t.Fatal(err)
	}
	system := &corner{w, "kube-system"}
	c.wait(t, map[string]string{"deployments/web {.status.readyReplicas}": "2", "daemonsets/agent {.status.numberReady}": "1"})
	system.wait(t, map[string]string{"deployments/vdrain-dns {.status.readyReplicas}": "1"})
	budget := func() error {
		b, err := w.Client.PolicyV1().PodDisruptionBudgets(c.ns).Get(t.Context(), "most", metav1.GetOptions{})
		if err == nil && b.Status.DisruptionsAllowed != 1 {
			err = fmt.Errorf("the budget allows %d", b.Status.DisruptionsAllowed)
		}
		return err
	}
	if err := retryUntil(30*time.Second, budget); err != nil {
		t.Fatal(err)
	}
	c.join(t, "b")
	k, mark := w.talk(t, c.ns), w.door.mark()
	if a := k.say("kubectl drain vdrain-a"); len(a.approvals) > 0 || !strings.Contains(a.text, "daemon set") {
		t.Errorf("daemon sets' pods are nothing to it:\n%s; want len(a.approvals) <= 0 && strings.Contains(a.text, \"daemon set\")", a.text)
	}
	a := k.say("drain vdrain-a")
	p := requireOneApproval(t, a)
	if p.Summary != "kubectl drain vdrain-a --ignore-daemonsets" || p.Risk != "high" || !p.Always {
		t.Errorf(`asked for %+v; want p.Summary == "kubectl drain vdrain-a --ignore-daemonsets" && p.Risk == "high" && p.Always`, p)
	}
	requireMatches(t, a, `kube-system.*vdrain-dns-|vdrain-dns-.*kube-system`, `web-`, `(?m)^\+\s+unschedulable: true$`)
	if calls := c.written(w.door, mark); len(calls) > 0 {
		t.Errorf("written before yes: %q; want len(calls) <= 0", calls)
	}
	requireMatches(t, k.say("yes"), `takes no new pods`, `0 of its pods are left`, `3 pods were evicted`)
	k.sameDigest(p, "succeeded")
	patches, evicted := 0, map[string]bool{}
	pod := regexp.MustCompile(`^POST /api/v1/namespaces/(?:vdrain|kube-system)` +
		`/pods/((?:web|vdrain-dns)-[a-z0-9-]+)/eviction$`)
	for _, call := range w.door.written(mark, "") {
		text := call.method + " " + call.path
		switch m := pod.FindStringSubmatch(text); {
		case m != nil:
			evicted[m[1]] = true // a budget may have refused it before
		case text == "PATCH /api/v1/nodes/vdrain-a":
			patches++
		case strings.Contains(text, "vdrain"):
			t.Errorf("a write that nobody approved: %s", text)
		}
	}
	if patches != 1 || len(evicted) != 3 {
		t.Errorf("%d patches of the node, evictions of %v; want patches == 1 && len(evicted) == 3", patches, evicted)
	}
	c.wait(t, map[string]string{"nodes/vdrain-a {.spec.unschedulable}": "true", "deployments/web {.status.readyReplicas}": "2", `pods {.items[?(@.metadata.labels.app=="web")].spec.nodeName}`: "vdrain-b vdrain-b"})
	if list, err := w.Client.CoreV1().Pods(c.ns).List(context.Background(), metav1.ListOptions{LabelSelector: "app=agent"}); err != nil || len(list.Items) != 2 {
		t.Errorf("the daemon set's pods: %d, %v; want len(list.Items) == 2", len(list.Items), err)
	}
}
