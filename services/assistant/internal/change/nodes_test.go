package change_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

func TestCordonAndTaint(t *testing.T) {
	inWorld(t, func(w *world) {
		_, seen := w.verified("kubectl cordon worker-1 worker-2")
		w.want("cordon", seen, "node/worker-1 takes no new pods", "node/worker-2 takes no new pods")
		_, seen = w.verified("kubectl uncordon worker-1")
		w.want("uncordon", seen, "node/worker-1 takes new pods and has no taints.")

		_, seen = w.verified("kubectl taint node worker-1 team=a:NoSchedule")
		w.want("taint", seen, "its taints are team=a:NoSchedule")
		w.refused("request an overwrite to replace it", "kubectl taint node worker-1 team=b:NoSchedule")
		_, seen = w.verified("kubectl taint node worker-1 team=b:NoSchedule --overwrite")
		w.want("taint", seen, "its taints are team=b:NoSchedule")
		_, seen = w.verified("kubectl taint node worker-1 team-")
		w.want("taint", seen, "has no taints")
		w.refused("has no taint", "kubectl taint node worker-1 team-")

		p := w.propose("kubectl taint node worker-3 gone=yes:NoExecute")
		if p.Verdict.Answer != guard.AlwaysAsk || len(p.Operations[0].Affected) == 0 {
			t.Errorf("verdict %+v, affected %v; want p.Verdict.Answer == guard.AlwaysAsk && len(p.Operations[0].Affected) != 0", p.Verdict, p.Operations[0].Affected)
		}
		for _, ref := range p.Operations[0].Affected {
			if strings.HasPrefix(ref.Name, "kube-proxy") {
				t.Errorf(`%s tolerates everything; want !strings.HasPrefix(ref.Name, "kube-proxy")`, ref)
			}
		}
	})
}

func TestDrain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.refused("belong to daemon sets: ask to ignore these", "kubectl drain worker-1")
		p := w.propose("kubectl drain worker-1 --ignore-daemonsets")
		if p.Verdict.Answer != guard.AlwaysAsk || len(p.Operations[0].Affected) == 0 {
			t.Errorf("verdict %+v, affected %v; want p.Verdict.Answer == guard.AlwaysAsk && len(p.Operations[0].Affected) != 0", p.Verdict, p.Operations[0].Affected)
		}
		w.want("diff", p.Diff, "+  unschedulable: true")
		told, seen := w.verified("kubectl drain worker-1 --ignore-daemonsets")
		w.want("result", told, "node/worker-1 was cordoned and", "pods were evicted.")
		w.want("verification", seen, "node/worker-1 takes no new pods", "0 of its pods are left to evict")
		left, err := w.hand.CoreV1().Pods("").List(w.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=worker-1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range left.Items {
			if pod.Namespace != "kube-system" {
				t.Errorf(`%s/%s is still there; want pod.Namespace == "kube-system"`, pod.Namespace, pod.Name)
			}
		}
	})
}

// A budget that blocks all evictions is reported in advance, and ends the drain with a report of its progress.
func TestDrainAgainstBudget(t *testing.T) {
	inWorld(t, func(w *world) {
		pods, err := w.hand.CoreV1().Pods("shop").List(w.ctx, metav1.ListOptions{LabelSelector: "app=cart"})
		if err != nil {
			t.Fatal(err)
		}
		node := pods.Items[0].Spec.NodeName
		w.edit("pdb", "shop", "cart", `{"spec":{"minAvailable":2}}`)
		p := w.propose("kubectl drain " + node + " --ignore-daemonsets")
		w.want("note", strings.Join(p.Verdict.Notes, " "), "The disruption budget shop/cart lets no pod go now; it holds cart-")
		w.refused("Cannot evict pod as it would violate the pod's disruption budget. The disruption budget cart needs 2 healthy pods", "kubectl evict pod/"+pods.Items[0].Name)

		_, err = w.Execute(w.ctx, w.approved(p))
		if err == nil {
			t.Fatal("the drain went through")
		}
		w.want("result", err.Error(), "node/"+node+" was cordoned and", "These are still there: shop/cart-", "violate the pod's disruption budget", "The node stays cordoned.")
	})
}

// Pods of a protected namespace that the approver did not see stay.
func TestDrainLeavesTheUnseen(t *testing.T) {
	inWorld(t, func(w *world) {
		dns, err := w.hand.CoreV1().Pods("kube-system").List(w.ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
		if err != nil || len(dns.Items) == 0 {
			t.Fatalf("%v, %v; want len(dns.Items) != 0", dns, err)
		}
		node := dns.Items[0].Spec.NodeName
		a := w.approved(w.propose("kubectl drain " + node + " --ignore-daemonsets"))
		seen := len(a.Observed[0].Affected)
		for i, ref := range a.Observed[0].Affected {
			if ref.Namespace == "kube-system" {
				a.Observed[0].Affected = append(a.Observed[0].Affected[:i:i], a.Observed[0].Affected[i+1:]...)
				break
			}
		}
		if len(a.Observed[0].Affected) == seen {
			t.Fatalf("no pod of kube-system is named: %v; want len(a.Observed[0].Affected) != seen", a.Observed[0].Affected)
		}
		_, err = w.Execute(w.ctx, a)
		if err == nil || !strings.Contains(err.Error(), "came after the approval and is in a protected namespace") {
			t.Errorf(`%v; want an error && strings.Contains(err.Error(), "came after the approval and is in a protected namespace")`, err)
		}
	})
}
