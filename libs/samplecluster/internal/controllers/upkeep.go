package controllers

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/admission"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// namespaces empties the ones that are being deleted and removes them when nothing is left.
func (p *pass) namespaces() {
	for _, old := range store.List[*corev1.Namespace](p.Tx, resource.Namespaces, "") {
		if old.DeletionTimestamp == nil {
			continue
		}
		left, held := 0, map[string]int{}
		for _, kind := range resource.All() {
			if !kind.Namespaced {
				continue
			}
			for _, o := range p.List(kind.GroupResource(), old.Name) {
				p.discard(kind, o)
				if rest, ok := p.Get(kind.GroupResource(), old.Name, o.GetName()); ok {
					left++
					for _, f := range rest.GetFinalizers() {
						held[f]++
					}
				}
			}
		}
		ns := copyObject(old)
		if left == 0 {
			ns.Spec.Finalizers = nil
			if len(ns.Finalizers) == 0 {
				p.Remove(resource.Namespaces, "", ns.Name)
				continue
			}
		}
		p.namespaceCondition(ns, corev1.NamespaceContentRemaining, left > 0, "SomeResourcesRemain", "ContentRemoved", fmt.Sprintf("Some resources are remaining: %d resource instances", left), "All content successfully removed")
		var names []string
		for f, n := range held {
			names = append(names, fmt.Sprintf("%s in %d resource instances", f, n))
		}
		slices.Sort(names)
		p.namespaceCondition(ns, corev1.NamespaceFinalizersRemaining, len(held) > 0, "SomeFinalizersRemain", "ContentHasNoFinalizers", fmt.Sprintf("Some content in the namespace has finalizers remaining: %v", names), "All content-preserving finalizers finished")
		p.Put(resource.Namespaces, ns)
	}
}

func (p *pass) namespaceCondition(ns *corev1.Namespace, kind corev1.NamespaceConditionType, holds bool, yes, no, why, fine string) {
	c := corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionFalse, Reason: no, Message: fine, LastTransitionTime: p.stamp()}
	if holds {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, yes, why
	}
	i := slices.IndexFunc(ns.Status.Conditions, func(old corev1.NamespaceCondition) bool { return old.Type == kind })
	if i < 0 {
		ns.Status.Conditions = append(ns.Status.Conditions, c)
		return
	}
	if ns.Status.Conditions[i].Status == c.Status {
		c.LastTransitionTime = ns.Status.Conditions[i].LastTransitionTime
	}
	ns.Status.Conditions[i] = c
}

// discard deletes an object as a controller's request would: pods end first, finalizers are waited for.
func (p *pass) discard(kind resource.Kind, o resource.Object) {
	if pod, ok := o.(*corev1.Pod); ok {
		p.stop(pod)
		return
	}
	if len(o.GetFinalizers()) == 0 {
		p.Remove(kind.GroupResource(), o.GetNamespace(), o.GetName())
		return
	}
	if o.GetDeletionTimestamp() == nil {
		going := copyObject(o)
		at := p.stamp()
		going.SetDeletionTimestamp(&at)
		p.Put(kind.GroupResource(), going)
	}
}

// collectGarbage deletes what has lost its owner, and ends deletions that wait for dependents.
func (p *pass) collectGarbage() {
	alive, leaving := map[types.UID]bool{}, map[types.UID]bool{}
	for _, kind := range resource.All() {
		for _, o := range p.List(kind.GroupResource(), "") {
			alive[o.GetUID()] = true
			if o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
				leaving[o.GetUID()] = true
			}
		}
	}
	dependents := map[types.UID]bool{}
	for _, kind := range resource.All() {
		for _, o := range p.List(kind.GroupResource(), "") {
			refs := o.GetOwnerReferences()
			if len(refs) == 0 || slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return alive[r.UID] && !leaving[r.UID] }) {
				continue
			}
			p.discard(kind, o)
			if _, still := p.Get(kind.GroupResource(), o.GetNamespace(), o.GetName()); still {
				for _, ref := range refs {
					dependents[ref.UID] = true
				}
			}
		}
	}
	for _, kind := range resource.All() {
		for _, o := range p.List(kind.GroupResource(), "") {
			if !leaving[o.GetUID()] || dependents[o.GetUID()] {
				continue
			}
			freed := copyObject(o)
			freed.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == metav1.FinalizerDeleteDependents }))
			if len(freed.GetFinalizers()) == 0 {
				p.Remove(kind.GroupResource(), o.GetNamespace(), o.GetName())
			} else {
				p.Put(kind.GroupResource(), freed)
			}
		}
	}
}

// serviceAccounts gives every namespace its default account.
func (p *pass) serviceAccounts() {
	for _, ns := range store.List[*corev1.Namespace](p.Tx, resource.Namespaces, "") {
		if _, ok := p.Get(resource.ServiceAccounts, ns.Name, "default"); ok || ns.DeletionTimestamp != nil {
			continue
		}
		account := resource.Of(resource.ServiceAccounts).New()
		account.SetName("default")
		account.SetNamespace(ns.Name)
		_ = p.create(resource.ServiceAccounts, account) // refused only if the namespace has gone
	}
}

// volumes binds claims whose class exists to newly made volumes.
func (p *pass) volumes() {
	for _, old := range store.List[*corev1.PersistentVolumeClaim](p.Tx, resource.Claims, "") {
		if old.Status.Phase == corev1.ClaimBound || old.DeletionTimestamp != nil {
			continue
		}
		if old.Spec.StorageClassName == nil || *old.Spec.StorageClassName == "" {
			p.noteRarely(old, "persistentvolume-controller", "FailedBinding", "no persistent volumes available for this claim and no storage class is set")
			continue
		}
		class, ok := store.Get[*storagev1.StorageClass](p.Tx, resource.StorageClasses, "", *old.Spec.StorageClassName)
		if !ok {
			p.noteRarely(old, "persistentvolume-controller", "ProvisioningFailed", fmt.Sprintf("storageclass.storage.k8s.io %q not found", *old.Spec.StorageClassName))
			continue
		}
		pv := resource.Of(resource.PersistentVolumes).New().(*corev1.PersistentVolume)
		pv.Name = "pvc-" + string(old.UID)
		pv.Spec.Capacity = old.Spec.Resources.Requests.DeepCopy()
		pv.Spec.AccessModes = old.Spec.AccessModes
		pv.Spec.StorageClassName = class.Name
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		pv.Spec.VolumeMode = old.Spec.VolumeMode
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: old.Namespace, Name: old.Name, UID: old.UID}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: pv.Name}
		if p.create(resource.PersistentVolumes, pv) != nil {
			continue
		}
		pv.Status.Phase = corev1.VolumeBound
		p.Put(resource.PersistentVolumes, pv)
		claim := copyObject(old)
		claim.Spec.VolumeName = pv.Name
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: pv.Spec.Capacity}
		p.Put(resource.Claims, claim)
		p.note(claim, "persistentvolume-controller", corev1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume "+pv.Name)
	}
	for _, pv := range store.List[*corev1.PersistentVolume](p.Tx, resource.PersistentVolumes, "") {
		ref := pv.Spec.ClaimRef
		if ref == nil || pv.Status.Phase != corev1.VolumeBound {
			continue
		}
		if claim, ok := p.Get(resource.Claims, ref.Namespace, ref.Name); ok && claim.GetUID() == ref.UID {
			continue
		}
		if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			p.discard(resource.Of(resource.PersistentVolumes), pv)
			continue
		}
		released := copyObject(pv)
		released.Status.Phase = corev1.VolumeReleased
		p.Put(resource.PersistentVolumes, released)
	}
}

func (p *pass) quotas() {
	for _, old := range store.List[*corev1.ResourceQuota](p.Tx, resource.Quotas, "") {
		q := copyObject(old)
		used := admission.Usage(p.Tx, q.Namespace)
		q.Status.Hard = q.Spec.Hard.DeepCopy()
		q.Status.Used = corev1.ResourceList{}
		for name := range q.Spec.Hard {
			q.Status.Used[name] = used[name]
		}
		p.Put(resource.Quotas, q)
	}
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// lostFor is how long pods stay on a node that has gone, by default.
const lostFor = 5 * time.Minute

// nodes keeps the taints that follow from a node's state, and evicts the pods that do not tolerate them.
func (p *pass) nodes() {
	for _, old := range store.List[*corev1.Node](p.Tx, resource.Nodes, "") {
		node := copyObject(old)
		up := nodeReady(node)
		p.taint(node, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, node.Spec.Unschedulable)
		p.taint(node, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}, !up)
		p.taint(node, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}, !up)
		p.Put(resource.Nodes, node)
		for _, pod := range store.List[*corev1.Pod](p.Tx, resource.Pods, "") {
			if pod.Spec.NodeName != node.Name || isPodFinished(pod) {
				continue
			}
			if !up && isPodReady(pod) {
				lost := copyObject(pod)
				p.podCondition(lost, corev1.PodReady, corev1.ConditionFalse, "NodeNotReady", "Node is not ready")
				p.Put(resource.Pods, lost)
				p.note(pod, "node-controller", corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
				pod = lost
			}
			p.expel(pod, node)
		}
	}
}

func (p *pass) taint(node *corev1.Node, t corev1.Taint, wanted bool) {
	i := slices.IndexFunc(node.Spec.Taints, func(have corev1.Taint) bool { return have.Key == t.Key && have.Effect == t.Effect })
	switch {
	case wanted && i < 0:
		at := p.stamp()
		t.TimeAdded = &at
		node.Spec.Taints = append(node.Spec.Taints, t)
	case !wanted && i >= 0:
		node.Spec.Taints = slices.Delete(node.Spec.Taints, i, i+1)
	}
}

// expel ends a pod that a NoExecute taint of its node drives away.
func (p *pass) expel(pod *corev1.Pod, node *corev1.Node) {
	if pod.DeletionTimestamp != nil {
		return
	}
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if t.Effect != corev1.TaintEffectNoExecute || toleratesTaint(pod, t) {
			continue
		}
		if t.Key == corev1.TaintNodeUnreachable && t.TimeAdded != nil {
			if due := t.TimeAdded.Add(lostFor); due.After(p.now) {
				p.again(due)
				continue
			}
		}
		p.note(pod, "taint-eviction-controller", corev1.EventTypeNormal, "TaintManagerEviction", fmt.Sprintf("Marking for deletion Pod %s/%s", pod.Namespace, pod.Name))
		p.stop(pod)
		return
	}
}
