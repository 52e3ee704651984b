package playbook_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// A Chooser finds the same pods as a scan of all pods, in the same order.
func TestChooser(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	some := func() map[string]string {
		set := map[string]string{}
		for range random.IntN(4) {
			set[fmt.Sprint("key-", random.IntN(4))] = fmt.Sprint("value-", random.IntN(3))
		}
		return set
	}
	var pods []*corev1.Pod
	chooser := engine.NewChooser(engine.PodLabels)
	for range 500 {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Labels = fmt.Sprint("team-", random.IntN(3)), some()
		pods = append(pods, pod)
		chooser.Add(pod.Namespace, pod)
	}
	for range 2000 {
		namespace, want := fmt.Sprint("team-", random.IntN(4)), some()
		var all []*corev1.Pod
		for _, pod := range pods {
			if pod.Namespace == namespace && labels.SelectorFromSet(want).Matches(labels.Set(pod.Labels)) {
				all = append(all, pod)
			}
		}
		if got := chooser.Choose(namespace, want); !slices.Equal(got, all) {
			t.Fatalf("%s %v: %d pods, want %d", namespace, want, len(got), len(all))
		}
	}
}

// Concurrent callers get one diagnosis, equal to the one that each would have got alone.
func TestFindings(t *testing.T) {
	t.Parallel()
	s := newCluster(clusterShape{Pods: 60, Namespaces: 3, Deployments: 20, Services: 20, Policies: 5, Events: 50, Broken: 50})
	for _, namespace := range []string{"", "team-1"} {
		want := playbook.Diagnose(s, namespace)
		if len(want) == 0 {
			t.Fatal("nothing is wrong, so the test shows nothing")
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				got := playbook.Findings(s, namespace)
				if engine.Answer(s, got) != engine.Answer(s, want) || !reflect.DeepEqual(got, playbook.Findings(s, namespace)) {
					t.Errorf("namespace %q: another diagnosis; want engine.Answer(s, got) == engine.Answer(s, want) && reflect.DeepEqual(got, playbook.Findings(s, namespace))", namespace)
				}
			})
		}
		all.Wait()
	}
}
