package playbook_test

import (
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// FuzzForeignText inserts a text wherever controllers, kubelets, programs and people write theirs. For any text, the
// answer is the same in any order of the snapshot, each of its lines is printable and bounded, and code in it is
// closed.
func FuzzForeignText(f *testing.F) {
	for _, text := range []string{
		"", "api:80", "http://user:pw@api.crm.svc:80/x?y", "nats://queue:4222,queu:99999",
		noSuchHost, "getaddrinfo EAI_AGAIN api.shop", "UnknownHostException: ..", "lookup . on x: no such host",
		`pods "x" is forbidden: exceeded quota: team-a, requested: pods=1,cpu=x, used: , limited: pods=2`,
		`pods "x" is forbidden: failed quota: team-a: must specify limits.cpu for: worker`,
		"maximum memory usage per Container is 1Gi, but limit is 2Gi",
		"Some content in the namespace has finalizers remaining: a in 1 resource instances, ` in 2, external-attacher/x in ",
		"The node was low on resource: memory. Threshold quantity: 1", "Multi-Attach error `[x](http://y)`\u2028",
	} {
		f.Add(text)
	}
	first := joinSnapshots(readSnapshot(f, "a12_quota"), readSnapshot(f, "limit_range"), readSnapshot(f, "a17_policy"), readSnapshot(f, "wrong_name"), readSnapshot(f, "a18_namespace"), readSnapshot(f, "a19_node_not_ready"), readSnapshot(f, "a20_no_requests"))
	f.Fuzz(func(t *testing.T, text string) {
		s := cloneSnapshot(first)
		for i := range s.ReplicaSets {
			for j := range s.ReplicaSets[i].Status.Conditions {
				s.ReplicaSets[i].Status.Conditions[j].Message = text
			}
		}
		for i := range s.Namespaces {
			for j := range s.Namespaces[i].Status.Conditions {
				s.Namespaces[i].Status.Conditions[j].Message = text
			}
		}
		for i := range s.Nodes {
			for j := range s.Nodes[i].Status.Conditions {
				s.Nodes[i].Status.Conditions[j].Message = text
			}
		}
		for i := range s.Autoscalers[0].Status.Conditions {
			s.Autoscalers[0].Status.Conditions[i].Message = text
		}
		for i := range s.Pods {
			for j := range s.Pods[i].Spec.Containers[0].Env {
				s.Pods[i].Spec.Containers[0].Env[j].Value = text
			}
		}
		gone := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: text, StartTime: s.Nodes[0].Status.Conditions[0].LastTransitionTime.DeepCopy()}}
		gone.Namespace, gone.Name, gone.Spec.NodeName = "shop", "gone", "node-2"
		s.Pods = append(s.Pods, gone)
		for i := range s.ConfigMaps {
			s.ConfigMaps[i].Finalizers = []string{text}
		}
		writeLogs(s, text)

		answer := engine.Answer(s, playbook.Diagnose(s, ""))
		if again := engine.Answer(s, playbook.Diagnose(shuffleSnapshot(s, 1), "")); again != answer {
			t.Errorf("another order gives\n%s\nand not\n%s; want again == %v", again, answer, answer)
		}
		for line := range strings.SplitSeq(answer, "\n") {
			command := strings.HasPrefix(line, "    ")
			if len(line) > 10_000 || !command && strings.Count(line, "`")%2 != 0 || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q is no line for an answer; want len(line) <= 10_000 && (command || strings.Count(line, \"`\") %% 2 == 0) && !strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) })", line)
			}
		}
	})
}
