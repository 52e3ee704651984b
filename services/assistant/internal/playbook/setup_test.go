package playbook_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
)

// snapshot reads the objects of testdata/file.yaml as a cluster would hold them.
func snapshot(t testing.TB, file string) *playbook.Snapshot {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := &playbook.Snapshot{
		Taken: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Logs: map[playbook.Log]string{}, Unread: map[string]bool{},
	}
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v in %s", file, err, doc)
		}
		switch o := o.(type) {
		case *corev1.Node:
			s.Nodes = append(s.Nodes, *o)
		case *corev1.Pod:
			s.Pods = append(s.Pods, *o)
		case *appsv1.Deployment:
			s.Deployments = append(s.Deployments, *o)
		case *appsv1.ReplicaSet:
			s.ReplicaSets = append(s.ReplicaSets, *o)
		case *corev1.Service:
			s.Services = append(s.Services, *o)
		case *discoveryv1.EndpointSlice:
			s.EndpointSlices = append(s.EndpointSlices, *o)
		case *corev1.ConfigMap:
			s.ConfigMaps = append(s.ConfigMaps, *o)
		case *corev1.Secret:
			s.Secrets = append(s.Secrets, playbook.SecretKeys{Namespace: o.Namespace, Name: o.Name, Keys: slices.Collect(maps.Keys(o.Data))})
		case *corev1.Event:
			s.Events = append(s.Events, *o)
		default:
			t.Fatalf("%s: no place for %T", file, o)
		}
	}
	return s
}

// join puts the objects of several clusters in one.
func join(all ...*playbook.Snapshot) *playbook.Snapshot {
	s := &playbook.Snapshot{Taken: all[0].Taken, Logs: map[playbook.Log]string{}, Unread: map[string]bool{}}
	for _, o := range all {
		s.Nodes = append(s.Nodes, o.Nodes...)
		s.Pods = append(s.Pods, o.Pods...)
		s.Deployments = append(s.Deployments, o.Deployments...)
		s.ReplicaSets = append(s.ReplicaSets, o.ReplicaSets...)
		s.Services = append(s.Services, o.Services...)
		s.EndpointSlices = append(s.EndpointSlices, o.EndpointSlices...)
		s.Events = append(s.Events, o.Events...)
		maps.Copy(s.Logs, o.Logs)
	}
	return s
}

// write gives every log that the snapshot wants the same text.
func write(s *playbook.Snapshot, log string) *playbook.Snapshot {
	for _, want := range s.Wants() {
		s.Logs[want] = log
	}
	return s
}
