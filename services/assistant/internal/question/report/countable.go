package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// countable lists the objects of a kind in a view; known is false for a kind that snapshots do not contain.
func (v View) countable(kind string) (all []countable, known bool) {
	switch kind {
	case "pod":
		owner := v.Owners()
		for _, pod := range v.pods() {
			all = append(all, countable{meta: pod, pod: pod, owner: owner(pod), state: State(pod), states: statesOfPod(pod)})
		}
		return all, true
	case "deployment", "statefulset", "daemonset":
		for i := range v.Deployments {
			d := &v.Deployments[i]
			all = addReplicas(all, kind == "deployment" && v.in(d), d, replicasOrOne(d.Spec.Replicas), d.Status.ReadyReplicas)
		}
		for i := range v.StatefulSets {
			d := &v.StatefulSets[i]
			all = addReplicas(all, kind == "statefulset" && v.in(d), d, replicasOrOne(d.Spec.Replicas), d.Status.ReadyReplicas)
		}
		for i := range v.DaemonSets {
			d := &v.DaemonSets[i]
			all = addReplicas(all, kind == "daemonset" && v.in(d), d, d.Status.DesiredNumberScheduled, d.Status.NumberReady)
		}
	case "node":
		for i := range v.Nodes {
			all = append(all, countNode(&v.Nodes[i]))
		}
	case "job":
		for i := range v.Jobs {
			if v.in(&v.Jobs[i]) {
				all = append(all, countJob(&v.Jobs[i]))
			}
		}
	case "cronjob":
		for i := range v.CronJobs {
			c := &v.CronJobs[i]
			o := countable{meta: c, state: "scheduled"}
			if c.Spec.Suspend != nil && *c.Spec.Suspend {
				o.state, o.states = "suspended", []question.PodState{question.IsSuspended}
			}
			if v.in(c) {
				all = append(all, o)
			}
		}
	case "persistentvolumeclaim":
		for i := range v.Claims {
			if c := &v.Claims[i]; v.in(c) {
				all = append(all, countClaim(c))
			}
		}
	default:
		if all, known = v.countablePlain(kind); !known {
			return nil, false
		}
	}
	slices.SortFunc(all, func(a, b countable) int {
		return cmp.Or(cmp.Compare(a.meta.GetNamespace(), b.meta.GetNamespace()), cmp.Compare(a.meta.GetName(), b.meta.GetName()))
	})
	return all, true
}

// countablePlain lists objects of kinds without states.
func (v View) countablePlain(kind string) (all []countable, known bool) {
	add := func(o metav1.Object) {
		if o.GetName() != "" && (o.GetNamespace() == "" || v.in(o)) {
			all = append(all, countable{meta: o})
		}
	}
	switch kind {
	case "service":
		for i := range v.Services {
			add(&v.Services[i])
		}
	case "ingress":
		for i := range v.Ingresses {
			add(&v.Ingresses[i])
		}
	case "gateway":
		for i := range v.Gateways {
			add(&v.Gateways[i])
		}
	case "httproute", "grpcroute", "tlsroute", "route":
		for i := range v.Routes {
			if kind == "route" || strings.EqualFold(v.Routes[i].Kind, kind) {
				add(&v.Routes[i])
			}
		}
	case "issuer", "clusterissuer":
		for i := range v.Issuers {
			if strings.EqualFold(v.Issuers[i].Kind, kind) {
				add(&v.Issuers[i])
			}
		}
	case "certificaterequest":
		for i := range v.CertificateRequests {
			add(&v.CertificateRequests[i])
		}
	case "configmap":
		for i := range v.ConfigMaps {
			add(&v.ConfigMaps[i])
		}
	case "networkpolicy":
		for i := range v.NetworkPolicies {
			add(&v.NetworkPolicies[i])
		}
	case "replicaset":
		for i := range v.ReplicaSets {
			add(&v.ReplicaSets[i])
		}
	case "serviceaccount":
		for i := range v.ServiceAccounts {
			add(&v.ServiceAccounts[i])
		}
	case "persistentvolume":
		for i := range v.Volumes {
			add(&v.Volumes[i])
		}
	case "storageclass":
		for i := range v.StorageClasses {
			add(&v.StorageClasses[i])
		}
	case "horizontalpodautoscaler":
		for i := range v.Autoscalers {
			add(&v.Autoscalers[i])
		}
	case "poddisruptionbudget":
		for i := range v.Budgets {
			add(&v.Budgets[i])
		}
	case "namespace":
		for i := range v.Namespaces {
			n := &v.Namespaces[i]
			if slices.Contains(v.Except.Namespaces, n.Name) {
				continue
			}
			o := countable{meta: n, state: string(n.Status.Phase)}
			if n.DeletionTimestamp != nil {
				o.states = []question.PodState{question.IsLeaving}
			}
			all = append(all, o)
		}
	default:
		return nil, false
	}
	return all, true
}

func addReplicas(all []countable, in bool, o metav1.Object, wanted, ready int32) []countable {
	if !in {
		return all
	}
	c := countable{meta: o, state: fmt.Sprintf("%d of %d ready", ready, wanted), states: []question.PodState{question.IsReady}}
	if ready < wanted {
		c.states = []question.PodState{question.NotReady}
	}
	return append(all, c)
}

func countNode(n *corev1.Node) countable {
	o := countable{meta: n, state: "ready", states: []question.PodState{question.IsReady}}
	if !nodeReady(n) {
		o.state, o.states = "not ready", []question.PodState{question.NotReady}
	}
	if n.Spec.Unschedulable {
		o.state += ", cordoned"
		o.states = append(o.states, question.Cordoned)
	}
	return o
}

func countJob(j *batchv1.Job) countable {
	o := countable{meta: j, state: "running", states: []question.PodState{question.IsRunning}}
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobFailed:
			o.state, o.states = "failed", []question.PodState{question.HasFailed}
		case batchv1.JobComplete:
			o.state, o.states = "completed", []question.PodState{question.IsCompleted}
		case batchv1.JobSuspended:
			o.state, o.states = "suspended", []question.PodState{question.IsSuspended}
		}
	}
	return o
}

func countClaim(c *corev1.PersistentVolumeClaim) countable {
	o := countable{meta: c, state: string(c.Status.Phase), states: []question.PodState{question.IsUnbound}}
	switch c.Status.Phase {
	case corev1.ClaimBound:
		o.states = []question.PodState{question.IsBound}
	case corev1.ClaimPending:
		o.states = append(o.states, question.IsPending)
	}
	return o
}
