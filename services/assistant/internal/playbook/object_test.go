package playbook_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

const noSuchHost = "dial tcp: lookup queu on 10.96.0.10:53: no such host\n"

// TestObjectAnswers covers faults that no single container shows.
func TestObjectAnswers(t *testing.T) {
	t.Parallel()
	checkAnswers(t, []answerCase{
		{"a11_absent_class", "", engine.ClaimUnbound, "", []string{"storage class `fast-ssd` does not exist", "classes that exist are `slow`, `standard`", "warehouse-0", "20Gi"}, []string{"node"}},
		{"a12_quota", "", engine.QuotaExceeded, operation.Scale, []string{"quota `team-a`", "`pods` used 2 of 2", "no scheduler has seen them"}, []string{"pending", "node"}},
		{"limit_range", "", engine.LimitRangeViolated, operation.SetResources, []string{"maximum memory per Container is 1Gi", "limit 2Gi", "`sizes`"}, []string{"quota", "scheduled"}},
		{"a16_ingress_port", "", engine.IngressBackend, operation.Patch, []string{"port `8081` of service `storefront`", "`80 (http)`"}, []string{"restart", "certificate"}},
		{"a17_policy", "", engine.PolicyBlocks, operation.Patch, []string{"`api-callers`", "`role=frontend`", "endpoints exist, 1 ready pod", "`role=backend`", "A consequence"}, []string{"selector"}},
		{"wrong_name", noSuchHost, engine.NameResolution, "", []string{"no service `queu` in namespace `crm`", "nearest that exists is `queue`", "QUEUE_ADDR"}, []string{"policy"}},
		{"a18_namespace", "", engine.StuckTerminating, "", []string{"`backups.example/archive`", "owner", "deployment `backups-operator` in namespace `tools` (scaled to 0)", "2 hours ago", "as the last step"}, []string{"What helps: Take", "kubectl"}},
		{"a19_node_not_ready", "", engine.NodeTrouble, operation.Cordon, []string{"Node `node-1`", "Unknown since 2026-01-02T11:21:00Z (39 minutes ago)", "`shop/edge-abcde`", "last renewed its lease"}, []string{"container `edge`", "service `edge` in namespace"}},
		{"a20_no_requests", "", engine.AutoscalerIdle, "", []string{"no cpu request has container `web`", "miss the cpu request"}, []string{"maxim", "metrics-server"}},
		{"a21_budget", "", engine.BudgetDeadlock, "", []string{"deadlock: this PDB", "minAvailable `2`", "healthy 2 of 2", "node `node-1`, which is cordoned"}, []string{"delete"}},
	})
}

// TestBusy covers a busy cluster in which nothing is wrong.
func TestBusy(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "busy")
	for _, namespace := range []string{"", "shop"} {
		if found := playbook.Diagnose(s, namespace); len(found) != 0 {
			t.Errorf("found in %q:\n%s; want len(found) == 0", namespace, engine.Answer(s, found))
		}
	}
}

// TestFolding covers which findings are reported under which cause.
func TestFolding(t *testing.T) {
	t.Parallel()
	titles := func(found []engine.Finding) []string {
		var all []string
		for _, f := range found {
			all = append(all, f.Class.String()+" "+f.Object.String())
			for _, c := range f.Consequences {
				all = append(all, "- "+c.Class.String()+" "+c.Object.String())
			}
		}
		return all
	}
	ready := func(s *engine.Snapshot, pod string, is corev1.ConditionStatus) {
		for i := range s.Pods {
			if s.Pods[i].Name == pod {
				s.Pods[i].Status.ContainerStatuses[0].Ready = is == corev1.ConditionTrue
				s.Pods[i].Status.Conditions[0].Status = is
			}
		}
	}
	for _, test := range []struct {
		name string
		make func(t *testing.T) *engine.Snapshot
		want []string
	}{
		{"a node of late rank stands before what it does, and after nothing", func(t *testing.T) *engine.Snapshot {
			return joinSnapshots(readSnapshot(t, "a19_node_not_ready"), readSnapshot(t, "a16_ingress_port"))
		}, []string{
			"node node/node-1", "- readiness probe daemonset.apps/edge in shop", "- service without endpoints service/edge in shop",
			"- service without endpoints service/orders in shop", "- stuck terminating pod/orders-0 in shop",
			"ingress ingress.networking.k8s.io/front in store",
		}},
		{"a pod on a node that is well keeps its own finding", func(t *testing.T) *engine.Snapshot {
			s := readSnapshot(t, "a19_node_not_ready")
			other := *s.Pods[1].DeepCopy()
			other.Name, other.UID, other.Spec.NodeName = "edge-fghij", "p-edge-2", "node-2"
			s.Pods = append(s.Pods, other)
			return s
		}, []string{
			"readiness probe daemonset.apps/edge in shop", "- service without endpoints service/edge in shop",
			"node node/node-1", "- service without endpoints service/orders in shop", "- stuck terminating pod/orders-0 in shop",
		}},
		{"a pod that waits for a node which is away", func(t *testing.T) *engine.Snapshot {
			s := joinSnapshots(readSnapshot(t, "a9_asks_too_much"), readSnapshot(t, "a19_node_not_ready"))
			s.Nodes = slices.DeleteFunc(s.Nodes, func(n corev1.Node) bool {
				return n.Name == "node-1" && n.UID == "" || n.Name == "node-2" && n.UID != ""
			})
			for i := range s.Nodes {
				if s.Nodes[i].Name == "node-1" {
					s.Nodes[i].Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("64Gi")
				}
			}
			s.Pods = slices.DeleteFunc(s.Pods, func(p corev1.Pod) bool { return p.Namespace == "shop" })
			s.Services, s.DaemonSets, s.StatefulSets = nil, nil, nil
			return s
		}, []string{"node node/node-1", "- pending: resources deployment.apps/transcoder in media"}},
		{"name server, its pods, and who asks it", func(t *testing.T) *engine.Snapshot {
			s := readSnapshot(t, "wrong_name")
			s.EndpointSlices[0].Endpoints = nil
			ready(s, "coredns-abcde", corev1.ConditionFalse)
			return writeLogs(s, "lookup queue on 10.96.0.10:53: server misbehaving")
		}, []string{
			"readiness probe pod/coredns-abcde in kube-system",
			"- crash loop deployment.apps/mailer in crm", "- name resolution service/kube-dns in kube-system",
		}},
		{"an ingress follows from its service, and that from a policy", func(t *testing.T) *engine.Snapshot {
			s := readSnapshot(t, "a17_policy")
			s.Ingresses = readSnapshot(t, "a16_ingress_port").Ingresses
			in := &s.Ingresses[0]
			in.Namespace = "crm"
			in.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "app"
			in.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = 80
			app := *s.Services[0].DeepCopy()
			app.Name, app.UID, app.Spec.Selector = "app", "svc-app", map[string]string{"app": "app"}
			s.Services = append(s.Services, app)
			return s
		}, []string{
			"network policy networkpolicy.networking.k8s.io/api-callers in crm",
			"- readiness probe deployment.apps/app in crm", "- service without endpoints service/app in crm", "- ingress ingress.networking.k8s.io/front in crm",
		}},
		{"a budget guards pods that are not well", func(t *testing.T) *engine.Snapshot {
			s := readSnapshot(t, "a21_budget")
			ready(s, "ledger-0", corev1.ConditionFalse)
			s.Pods[0].Spec.Containers[0].ReadinessProbe = &corev1.Probe{}
			s.Budgets[0].Status.CurrentHealthy = 1
			return s
		}, []string{"readiness probe statefulset.apps/ledger in pay", "- disruption budget poddisruptionbudget.policy/ledger in pay"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := test.make(t)
			if got := titles(playbook.Diagnose(s, "")); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for seed := range uint64(5) {
				if got := titles(playbook.Diagnose(shuffleSnapshot(s, seed), "")); !slices.Equal(got, test.want) {
					t.Errorf("in another order: got %q, want %q", got, test.want)
				}
			}
		})
	}
}

// TestElsewhere covers problems of objects outside the namespace in question.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "a19_node_not_ready")
	if found := playbook.Diagnose(s, "shop"); len(found) != 1 || found[0].Class != engine.NodeTrouble || len(found[0].Consequences) != 4 {
		t.Errorf("got %+v, want the node", found)
	}
	if found := playbook.Diagnose(s, "crm"); len(found) != 0 {
		t.Errorf("got %+v, want none: no pod of the namespace is on the node", found)
	}
	s = readSnapshot(t, "wrong_name") // as read for one namespace: services of all, pods of one
	s.EndpointSlices[0].Endpoints = nil
	s.Pods = slices.DeleteFunc(s.Pods, func(p corev1.Pod) bool { return p.Namespace == "kube-system" })
	writeLogs(s, "lookup queue on 10.96.0.10:53: server misbehaving")
	if found := playbook.Diagnose(s, "crm"); len(found) != 1 || found[0].Class != engine.NameResolution || len(found[0].Consequences) != 1 {
		t.Errorf("got %+v, want the name server", found)
	}
	s = readSnapshot(t, "a18_namespace")
	if found := playbook.Diagnose(s, "retired"); len(found) != 1 || found[0].Class != engine.StuckTerminating {
		t.Errorf("got %+v, want the namespace", found)
	}
}
