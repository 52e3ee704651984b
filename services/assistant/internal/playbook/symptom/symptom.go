package symptom

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Symptom is one visible sign that an object is not healthy.
type Symptom struct {
	Object operation.Ref // without a group and version
	// Owner is the workload at the top of a pod's owners, else the object.
	Owner     operation.Ref
	Container string // empty: of the object as a whole
	Text      string // a sentence, foreign text in backticks
	// ended means that a container ended, which a finding about readiness does not explain.
	ended bool
	// telling means that its text has a cause which a stuck rollout does not explain.
	telling bool
	// Survived means that a container failed once, over an hour ago, and has run since. It is reported only for an object
	// that the user asked about.
	Survived bool
}

const (
	freshRestart = time.Hour        // an older single restart has been survived
	freshEvent   = 10 * time.Minute // repeated warnings; older ones of a healthy object are past
	endingGrace  = time.Minute      // past the pod's own grace period
)

// List returns the symptoms of a namespace, or with an empty one of the whole cluster,
// ordered by object.
func List(s *engine.Snapshot, namespace string) []Symptom {
	l := &lister{Snapshot: s, namespace: namespace, owners: map[operation.Ref]operation.Ref{}, unhealthy: map[operation.Ref]bool{}}
	l.readOwners()
	l.pods()
	l.workloads()
	l.jobs()
	l.services()
	l.gateways()
	l.certificates()
	l.applications()
	l.claims()
	l.autoscalers()
	l.terminating()
	l.nodes()
	l.events()
	l.found = append(l.found, l.survived...)
	slices.SortStableFunc(l.found, func(a, b Symptom) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return l.found
}

type lister struct {
	*engine.Snapshot
	namespace string
	owners    map[operation.Ref]operation.Ref // of replica sets and jobs
	unhealthy map[operation.Ref]bool          // objects with a symptom so far
	found     []Symptom
	survived  []Symptom // of objects that are healthy now
}

func ref(kind string, o metav1.Object) operation.Ref {
	return operation.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (l *lister) in(o metav1.Object) bool {
	return o.GetName() != "" && (l.namespace == "" || o.GetNamespace() == l.namespace)
}

func (l *lister) add(s Symptom) {
	if s.Owner == (operation.Ref{}) {
		s.Owner = s.Object
	}
	l.unhealthy[s.Object] = true
	l.found = append(l.found, s)
}

func (l *lister) readOwners() {
	put := func(kind string, o metav1.Object) {
		if up := metav1.GetControllerOf(o); up != nil {
			l.owners[ref(kind, o)] = operation.Ref{Kind: up.Kind, Namespace: o.GetNamespace(), Name: up.Name}
		}
	}
	for i := range l.ReplicaSets {
		put("ReplicaSet", &l.ReplicaSets[i])
	}
	for i := range l.Jobs {
		put("Job", &l.Jobs[i])
	}
}

// top follows the owners of an object to the last one.
func (l *lister) top(r operation.Ref) operation.Ref {
	if up, ok := l.owners[r]; ok {
		return up
	}
	return r
}

func (l *lister) ownerOf(pod *corev1.Pod) operation.Ref {
	if up := metav1.GetControllerOf(pod); up != nil {
		return l.top(operation.Ref{Kind: up.Kind, Namespace: pod.Namespace, Name: up.Name})
	}
	return ref("Pod", pod)
}

// since returns how long ago a time was; an unknown time counts as long ago.
func (l *lister) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 1 << 62
	}
	return l.Taken.Sub(t)
}
