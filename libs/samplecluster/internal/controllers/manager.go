// Package controllers does in the sample cluster the work of a real cluster's controllers, scheduler and kubelets.
//
// One pass processes everything, in a fixed order, and returns the time of the next pass. Passes are repeated until
// nothing changes, so the same cluster at the same time always ends in the same state. Waits that only cost the user
// time (pulling an image, the first probe, a crash loop whose cause has gone) are shorter than in a real cluster; all
// others are kept.
package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/admission"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// settleLimit limits the passes of one Settle: two controllers that undo each other must not hang the cluster.
const settleLimit = 200

// Manager owns what nodes remember about their pods.
type Manager struct {
	registry *program.Registry
	pods     map[types.UID]*podRun
	last     []taken // by step
}

// New returns a manager whose nodes run the images of a registry.
func New(registry *program.Registry) *Manager {
	return &Manager{registry: registry, pods: map[types.UID]*podRun{}, last: make([]taken, len(steps))}
}

// pass is one look at the cluster.
type pass struct {
	store.Tx
	*Manager
	now  time.Time
	next time.Time
}

// again schedules a pass at a later time.
func (p *pass) again(at time.Time) {
	if at.After(p.now) && (p.next.IsZero() || at.Before(p.next)) {
		p.next = at
	}
}

// Settle repeats passes until nothing changes and returns when to call it next; zero means only after a change.
func (m *Manager) Settle(tx store.Tx, now time.Time) time.Time {
	for range settleLimit {
		before := tx.Version()
		p := &pass{Tx: tx, Manager: m, now: now}
		p.run()
		if tx.Version() == before {
			return p.next
		}
	}
	return now.Add(time.Second)
}

// admits are the resources that can make a refused creation possible.
var admits = []schema.GroupResource{resource.Namespaces, resource.ServiceAccounts, resource.Quotas, resource.LimitRanges}

// steps are the parts of a pass in their order, each with its dependencies. A step is skipped while none of them has
// changed and its time has not come; one without dependencies always runs.
var steps = []struct {
	run   func(*pass)
	reads []schema.GroupResource
}{
	{(*pass).namespaces, nil},
	{(*pass).collectGarbage, nil},
	{(*pass).serviceAccounts, []schema.GroupResource{resource.Namespaces, resource.ServiceAccounts}},
	{(*pass).volumes, []schema.GroupResource{resource.Claims, resource.StorageClasses, resource.PersistentVolumes}},
	{(*pass).cronJobs, append([]schema.GroupResource{resource.CronJobs, resource.Jobs}, admits...)},
	{(*pass).jobs, append([]schema.GroupResource{resource.Jobs, resource.Pods}, admits...)},
	{(*pass).deployments, append([]schema.GroupResource{resource.Deployments, resource.ReplicaSets}, admits...)},
	{(*pass).replicaSets, append([]schema.GroupResource{resource.ReplicaSets, resource.Pods}, admits...)},
	{(*pass).statefulSets, append([]schema.GroupResource{resource.StatefulSets, resource.Pods, resource.Claims}, admits...)},
	{(*pass).daemonSets, append([]schema.GroupResource{resource.DaemonSets, resource.Pods, resource.Nodes}, admits...)},
	{(*pass).schedule, []schema.GroupResource{resource.Pods, resource.Nodes, resource.Claims}},
	{(*pass).nodes, []schema.GroupResource{resource.Nodes, resource.Pods}},
	{(*pass).kubelets, nil},
	{(*pass).endpoints, []schema.GroupResource{resource.Services, resource.Pods, resource.EndpointSlices, resource.Endpoints}},
	{(*pass).budgets, []schema.GroupResource{resource.DisruptionBudgets, resource.Pods}},
	{(*pass).autoscalers, []schema.GroupResource{resource.Autoscalers, resource.Deployments}},
	{(*pass).quotas, append([]schema.GroupResource{resource.Quotas, resource.Pods}, admission.Counted...)},
	{(*pass).expireEvents, []schema.GroupResource{resource.Events}},
}

// taken records the input of a step at its last run, and when it must run again.
type taken struct {
	version uint64
	next    time.Time
}

func (p *pass) run() {
	for i, step := range steps {
		last, version := &p.last[i], p.Changed(step.reads...)
		idle := step.reads != nil && version <= last.version && (last.next.IsZero() || last.next.After(p.now))
		if !idle {
			earliest := p.next
			p.next = time.Time{}
			step.run(p)
			*last = taken{version, p.next}
			p.next = earliest
		}
		p.again(last.next)
	}
}

// create puts a new object through admission, as a controller's request to the API server would.
func (p *pass) create(key schema.GroupResource, o resource.Object) error {
	if err := admission.Create(p.Tx, resource.Of(key), o, p.now); err != nil {
		return err
	}
	p.Put(key, o)
	return nil
}

// copyObject copies an object for a controller to alter and Put.
func copyObject[T resource.Object](o T) T { return o.DeepCopyObject().(T) }

// stamp is the time as objects keep it.
func (p *pass) stamp() metav1.Time { return metav1.NewTime(p.now.Truncate(time.Second)) }

func isController(owner, o resource.Object) bool {
	ref := metav1.GetControllerOf(o)
	return ref != nil && ref.UID == owner.GetUID()
}

func ownedBy(owner resource.Object, key schema.GroupResource) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, resource.Of(key).GroupVersionKind)}
}
