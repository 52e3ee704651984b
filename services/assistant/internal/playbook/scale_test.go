package playbook_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
)

// BenchmarkDiagnose is a cluster of 5,000 pods, most of them well.
func BenchmarkDiagnose(b *testing.B) {
	s := &playbook.Snapshot{Logs: map[playbook.Log]string{}, Unread: map[string]bool{}}
	for i := range 200 {
		copied := snapshot(b, "busy")
		if i%10 == 0 {
			copied = join(copied, snapshot(b, "a17_policy"), write(snapshot(b, "wrong_name"), noSuchHost), snapshot(b, "a11_absent_class"))
		}
		copied.Nodes, copied.StorageClasses, copied.IngressClasses, copied.Namespaces = nil, nil, nil, nil
		rename := func(namespace *string) {
			if *namespace != "kube-system" {
				*namespace += fmt.Sprintf("-%d", i)
			}
		}
		for _, list := range lists(copied) {
			for j := range list.Len() {
				if field := list.Index(j).FieldByName("Namespace"); field.IsValid() {
					rename(field.Addr().Interface().(*string))
				}
			}
		}
		for n := range 20 {
			pod := *copied.Pods[0].DeepCopy()
			pod.Name, pod.UID = fmt.Sprintf("%s-%d", pod.Name, n), ""
			copied.Pods = append(copied.Pods, pod)
		}
		copied.Taken = snapshot(b, "healthy").Taken
		s = join(copied, s)
	}
	for i := range 100 {
		node := corev1.Node{}
		node.Name = fmt.Sprintf("node-%d", i)
		s.Nodes = append(s.Nodes, node)
	}
	for b.Loop() {
		playbook.Answer(s, playbook.Diagnose(s, ""))
	}
	b.ReportMetric(float64(len(s.Pods)), "pods")
}
