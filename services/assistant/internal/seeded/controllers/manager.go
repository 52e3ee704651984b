// Package controllers carries out in the seeded cluster what controllers, scheduler and kubelets carry out in a real one.
//
// One pass looks at everything, in a fixed order, and says when it wants to look again. Passes are repeated until nothing changes,
// so the same cluster at the same time always ends in the same state. Times that nobody wants to wait for (pulling an image,
// the first probe, a crash loop whose cause has gone) are shorter than in a real cluster; all others are kept.
package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/seeded/admission"
	"github.com/mlp-platform/platform/services/assistant/internal/seeded/program"
	"github.com/mlp-platform/platform/services/assistant/internal/seeded/resource"
	"github.com/mlp-platform/platform/services/assistant/internal/seeded/store"
)

// settleLimit bounds the passes of one Settle: two controllers that undo each other must not hang the cluster.
const settleLimit = 200

// Manager owns what nodes remember about their pods.
type Manager struct {
	registry *program.Registry
	pods     map[types.UID]*podRun
	leased   time.Time
}

// New returns a manager whose nodes run the images of a registry.
func New(registry *program.Registry) *Manager {
	return &Manager{registry: registry, pods: map[types.UID]*podRun{}}
}

// pass is one look at the cluster.
type pass struct {
	store.Tx
	*Manager
	now  time.Time
	next time.Time
}

// again asks for a pass at a later time.
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

func (p *pass) run() {
	p.namespaces()
	p.collectGarbage()
	p.serviceAccounts()
	p.volumes()
	p.cronJobs()
	p.jobs()
	p.deployments()
	p.replicaSets()
	p.statefulSets()
	p.daemonSets()
	p.schedule()
	p.nodes()
	p.kubelets()
	p.endpoints()
	p.budgets()
	p.autoscalers()
	p.quotas()
	p.expireEvents()
}

// create puts a new object through admission, as a controller's request to the API server would.
func (p *pass) create(key schema.GroupResource, o resource.Object) error {
	if err := admission.Create(p.Tx, resource.Of(key), o, p.now); err != nil {
		return err
	}
	p.Put(key, o)
	return nil
}

// change copies an object for a controller to alter and Put.
func change[T resource.Object](o T) T { return o.DeepCopyObject().(T) }

// stamp is the time as objects keep it.
func (p *pass) stamp() metav1.Time { return metav1.NewTime(p.now.Truncate(time.Second)) }

func controls(owner, o resource.Object) bool {
	ref := metav1.GetControllerOf(o)
	return ref != nil && ref.UID == owner.GetUID()
}

func ownedBy(owner resource.Object, key schema.GroupResource) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, resource.Of(key).GroupVersionKind)}
}
