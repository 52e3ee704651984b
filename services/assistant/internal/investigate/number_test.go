package investigate_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// TestNumbers asks the seeded cluster for numbers: each answer begins with one.
func TestNumbers(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, row := range []struct{ scope, query, first string }{
		{"shop", "how many pods are there?", "There are 12 pods in namespace `shop`."},
		{"shop", "how many pods are not running?", "2 of 12 pods in namespace `shop`: not running."},
		{"shop", "how many pods are in CrashLoopBackOff?", "1 of 12 pods in namespace `shop`: crash looping."},
		{"shop", "how many api pods are there?", "There are 3 pods of `api` in namespace `shop`."},
		{"shop", "how many pods have label app=cart?", "2 of 12 pods in namespace `shop`: label `app=cart`."},
		{"shop", "which pods use image registry.example/shop/api?", "3 of 12 pods in namespace `shop`: an image with `registry.example/shop/api`."},
		{"shop", "which pods were restarted more than 1000 times?", "0 of 12 pods in namespace `shop`: restarted at least 1001 times."},
		{"shop", "how many deployments are not ready?", "0 of 6 deployments in namespace `shop`: not ready."},
		{"", "how many nodes are ready?", "4 of 4 nodes in the cluster: ready."},
		{"", "how many nodes use image nginx?", "There are 4 nodes in the cluster. Not applied, since it says nothing of this kind: image `nginx`."},
		{"", "how many pods per namespace?", "There are "},
		{"", "how many persistent volume claims are bound?", ""},
		{"shop", "how many pods are not pending?", "That is not something I can answer."},
		{"shop", "how many pods use more than 1Gi of memory?", "That is not something I can answer."},
	} {
		a := askOnce(t, b, row.scope, row.query)
		if !strings.HasPrefix(a.text, row.first) || len(a.write) > 0 {
			t.Errorf("%q must begin %q:\n%s", row.query, row.first, a.text)
		}
	}
}

// TestUsageRanking: the first sentence names the top of the requested order.
func TestUsageRanking(t *testing.T) {
	t.Parallel()
	s := readFixture(t, "", "healthy")
	s.Usage = map[engine.Log]corev1.ResourceList{}
	var pods []corev1.Pod
	for i, used := range []struct{ name, cpu, memory string }{{"a", "900m", "10Mi"}, {"b", "100m", "700Mi"}, {"c", "5m", "90Mi"}} {
		pod := *s.Pods[0].DeepCopy()
		pod.Name, pod.OwnerReferences, pod.Spec.NodeName = used.name, nil, []string{"node-1", "node-2", "node-2"}[i]
		pods = append(pods, pod)
		s.Usage[engine.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: pod.Spec.Containers[0].Name}] = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(used.cpu), corev1.ResourceMemory: resource.MustParse(used.memory),
		}
	}
	s.Pods = pods
	for _, row := range []struct{ query, first string }{
		{"which pod uses the most CPU?", "Pod `a` in namespace `media` uses the most CPU: 900m"},
		{"which pod uses the most memory?", "Pod `b` in namespace `media` uses the most memory: 700Mi"},
		{"which pod uses the least cpu?", "Pod `c` in namespace `media` uses the least CPU: 5m"},
		{"which node uses the most memory?", "Node `node-2` uses the most memory: 790Mi"},
	} {
		if a := askOnce(t, toolsOn(s), "", row.query); !strings.HasPrefix(a.text, row.first) {
			t.Errorf("%q must begin %q:\n%s", row.query, row.first, a.text)
		}
	}
}

// TestWhatIsNotRead: the assistant names what it cannot access and what it does not run, and tells the time.
func TestWhatIsNotRead(t *testing.T) {
	t.Parallel()
	s := readFixture(t, unsetLog, "a1_empty_variable", "a15_selector")
	s.Deployments[0].Annotations = map[string]string{"example.com/runbook": "Page the owner, then `roll back`."}
	s.Namespaces = append(s.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	s.Services = append(s.Services, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "orders.abc.rds.amazonaws.com"}})
	for _, row := range []struct {
		query     string
		must, not []string
	}{
		{"what time is it?", []string{"2026-01-02 12:00:00 UTC"}, nil},
		{"is our rds instance up?", []string{"no access to `rds`", "`orders-db` in namespace `shop` leads outside"}, []string{"healthy"}},
		{"what does keda do?", []string{"cannot read the objects of `keda`"}, nil},
		{"how do I port-forward to catalog in shop?", []string{"kubectl port-forward service/catalog", "-n shop", "your own account"}, nil},
		{"open a shell in deployment api", []string{"kubectl exec -it deployment/api -n shop", "-- sh"}, nil},
		{"kubectl exec -it api -- sh", []string{"refused", "your own shell", "    kubectl exec -it api -- sh"}, nil},
		{"kubectl create token admin", []string{"refused"}, []string{"your own shell"}},
	} {
		checkAnswer(t, row.query, askOnce(t, toolsOn(s), "", row.query), row.must, row.not)
	}
}
