package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Effect lists what a finding explains regardless of rank: findings of these classes about an object whose pods are all
// among Pods. Nil Pods matches any pods.
type Effect struct {
	Of      operation.Ref
	Classes []Class
	Pods    []string
	// Unproved excludes findings that have their own proof.
	Unproved bool
}

func (e Effect) covers(f *Finding) bool {
	class := f.Class
	if f.As != 0 {
		class = f.As
	}
	if e.Of != f.Object || !slices.Contains(e.Classes, class) || e.Unproved && f.Confidence == High {
		return false
	}
	return e.Pods == nil || !slices.ContainsFunc(f.Pods, func(pod string) bool { return !slices.Contains(e.Pods, pod) })
}

// explanation is an effect, with the index of its finding.
type explanation struct {
	Effect
	by int
}

// Fold puts ordered findings under those that explain them; existing consequences stay.
func Fold(found []Finding) []Finding { return foldFindings(found) }

// foldFindings puts each finding that follows from others under the first of these, and a whole family under its root.
// A root takes the place of the first of its family, so that a low-ranked cause is listed before its effects.
func foldFindings(found []Finding) []Finding {
	parents := findCauses(found)
	place := map[int]int{} // root → place in kept
	var kept []Finding
	var families [][]int
	for i := range found {
		root := i
		for parents[root] >= 0 {
			root = parents[root]
		}
		if root == i && found[i].Follower {
			continue
		}
		at, ok := place[root]
		if !ok {
			at = len(kept)
			place[root] = at
			kept, families = append(kept, found[root]), append(families, nil)
		}
		if i != root {
			families[at] = append(families[at], i)
		}
	}
	for at, family := range families {
		for _, i := range family {
			kept[at].Consequences = append(kept[at].Consequences, found[i])
		}
	}
	return kept
}

// findCauses finds for each finding the first other one that it follows from, or -1. No finding
// ends up under itself.
func findCauses(found []Finding) []int {
	about := map[operation.Ref][]int{}
	explaining := map[operation.Ref][]explanation{}
	for i := range found {
		about[found[i].Object] = append(about[found[i].Object], i)
		for _, e := range found[i].Effects {
			explaining[e.Of] = append(explaining[e.Of], explanation{e, i})
		}
	}
	parents := make([]int, len(found))
	for i := range found {
		parents[i] = -1
	}
	for i := range found {
		f := &found[i]
		var candidates []int
		for _, r := range f.Because {
			candidates = append(candidates, about[r]...)
		}
		for _, e := range explaining[f.Object] {
			if e.covers(f) {
				candidates = append(candidates, e.by)
			}
		}
		slices.Sort(candidates)
		for _, j := range candidates {
			if !found[j].Follower && !isUnder(parents, j, i) {
				parents[i] = j
				break
			}
		}
	}
	return parents
}

// isUnder reports whether finding i is finding j or above it.
func isUnder(parents []int, j, i int) bool {
	for ; j >= 0; j = parents[j] {
		if j == i {
			return true
		}
	}
	return false
}

// RootsOf returns the objects whose problem may also be the pod's: its owners, its claims, and its node if that is not
// ready.
func (x *Index) RootsOf(pod *corev1.Pod) []operation.Ref {
	refs := []operation.Ref{x.WorkloadOf(pod).Ref}
	for _, claim := range ClaimsOf(pod) {
		refs = append(refs, ClaimRef(pod.Namespace, claim))
	}
	if node := x.NodeOf(pod); node != nil && !NodeReady(node) {
		refs = append(refs, NodeRef(node.Name))
	}
	return refs
}

func NodeRef(node string) operation.Ref {
	return operation.Ref{Version: "v1", Kind: "Node", Name: node}
}

func ClaimRef(namespace, claim string) operation.Ref {
	return operation.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claim}
}

// ClaimsOf returns the distinct names of the claims that a pod mounts, including those of its ephemeral volumes.
func ClaimsOf(pod *corev1.Pod) []string {
	var claims []string
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		claim := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			claim = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			claim = pod.Name + "-" + v.Name
		}
		if claim != "" && !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	return claims
}

// NodeOf returns the node of a pod, or nil.
func (x *Index) NodeOf(pod *corev1.Pod) *corev1.Node { return x.nodeByName[pod.Spec.NodeName] }

// NodeReady reports whether a node's kubelet reports it as ready.
func NodeReady(node *corev1.Node) bool {
	c := NodeCondition(node, corev1.NodeReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// IsControlPlane reports whether a node runs the cluster's own programs, by the labels that installers give it.
func IsControlPlane(node *corev1.Node) bool {
	for _, key := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, ok := node.Labels[key]; ok {
			return true
		}
	}
	role := node.Labels["kubernetes.io/role"]
	return role == "master" || role == "control-plane"
}

func NodeCondition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// Since describes how long ago a time was; empty for the zero time.
func (x *Index) Since(t metav1.Time) string {
	if t.IsZero() || x.Taken.IsZero() || x.Taken.Before(t.Time) {
		return ""
	}
	return formatDuration(x.Taken.Sub(t.Time))
}

// MountedSecrets names the Secrets that pods mount, each once.
func MountedSecrets(spec *corev1.PodSpec) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.Secret != nil {
			add(v.Secret.SecretName)
		}
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				if source.Secret != nil {
					add(source.Secret.Name)
				}
			}
		}
	}
	return names
}
