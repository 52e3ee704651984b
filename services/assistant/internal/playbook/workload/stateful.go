package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// startTime is how long a pod may take to become ready before others count as blocked by it.
const startTime = 2 * time.Minute

// checkStatefulSets explains StatefulSetStuck: the governing service, and the pod that all later ones
// wait for.
func checkStatefulSets(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.StatefulSets {
		s := &x.StatefulSets[i]
		if s.DeletionTimestamp != nil {
			continue
		}
		ref := operation.Ref{Group: "apps", Version: "v1", Kind: "StatefulSet", Namespace: s.Namespace, Name: s.Name}
		if f := (engine.Finding{Class: engine.StatefulSetStuck, Object: ref}); !x.Unread["services"] && explainGoverning(&f, x, s) {
			found = append(found, f)
		}
		if f := (engine.Finding{Class: engine.StatefulSetStuck, Object: ref, Because: []operation.Ref{ref}}); !x.Unread["pods"] && explainOrdinal(&f, x, s) {
			found = append(found, f)
		}
	}
	return found
}

// explainGoverning explains a governing service that does not exist, or that gives the pods no names.
func explainGoverning(f *engine.Finding, x *Index, s *appsv1.StatefulSet) bool {
	wanted := s.Spec.ServiceName
	if wanted == "" || engine.ValueOr(s.Spec.Replicas, 1) == 0 {
		return false
	}
	service := x.ServiceByName[engine.Name{Namespace: s.Namespace, Name: wanted}]
	f.Evidence = []string{fmt.Sprintf("Its serviceName is %s.", engine.QuoteCode(wanted))}
	if service != nil {
		if service.Spec.ClusterIP == corev1.ClusterIPNone || service.Spec.Type == corev1.ServiceTypeExternalName {
			return false
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("The service exists and has the address %s, so it is not headless.", engine.QuoteCode(service.Spec.ClusterIP)))
		f.Cause, f.Confidence = fmt.Sprintf("The governing service %s is not headless, so the pods have no DNS names of their own.", engine.QuoteCode(wanted)), engine.Medium
		f.Text = "If the pods look each other up by name, create a headless service (clusterIP None) and a StatefulSet that names it: neither member can be changed."
		return true
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no service has this name.", engine.QuoteCode(s.Namespace)))
	f.Cause, f.Confidence = fmt.Sprintf("The governing service %s does not exist, so the pods have no DNS names and cannot find each other.", engine.QuoteCode(wanted)), engine.High
	f.Text = "Create a headless service of this name."
	if fix := headlessService(s); fix != nil {
		f.Fix = fix
		f.Text = "Create the headless service; selector and ports are those of the StatefulSet."
	}
	return true
}

// headlessService builds the governing service from the fields of the StatefulSet.
func headlessService(s *appsv1.StatefulSet) *operation.Operation {
	if s.Spec.Selector == nil || len(s.Spec.Selector.MatchLabels) == 0 || len(s.Spec.Selector.MatchExpressions) > 0 {
		return nil
	}
	selector := engine.Members{}
	for key, value := range s.Spec.Selector.MatchLabels {
		selector[key] = value
	}
	spec := engine.Members{"clusterIP": corev1.ClusterIPNone, "selector": selector}
	ports := []any{}
	seen := map[string]bool{}
	for i := range s.Spec.Template.Spec.Containers {
		for _, p := range s.Spec.Template.Spec.Containers[i].Ports {
			n := p.Name
			if n == "" {
				n = "port-" + strconv.Itoa(int(p.ContainerPort))
			}
			if seen[n] {
				continue
			}
			seen[n] = true
			port := engine.Members{"name": n, "port": p.ContainerPort}
			if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
				port["protocol"] = string(p.Protocol)
			}
			ports = append(ports, port)
		}
	}
	if len(ports) > 0 {
		spec["ports"] = ports
	}
	return engine.NewCreate(engine.Members{"apiVersion": "v1", "kind": "Service", "metadata": engine.Members{"name": s.Spec.ServiceName, "namespace": s.Namespace}, "spec": spec}, s.Namespace)
}

// explainOrdinal explains which unready pod the later ones wait for.
func explainOrdinal(f *engine.Finding, x *Index, s *appsv1.StatefulSet) bool {
	if s.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return false
	}
	start := 0
	if s.Spec.Ordinals != nil {
		start = int(s.Spec.Ordinals.Start)
	}
	want := int(engine.ValueOr(s.Spec.Replicas, 1))
	pods := map[int]*corev1.Pod{}
	for _, pod := range x.PodsOf(f.Object) {
		if n, err := strconv.Atoi(strings.TrimPrefix(pod.Name, s.Name+"-")); err == nil {
			pods[n] = pod
		}
	}
	var waiting []string
	var stuck *corev1.Pod
	for n := start; n < start+want; n++ {
		switch pod := pods[n]; {
		case stuck == nil && pod != nil && !engine.PodReady(pod):
			stuck = pod
		case stuck == nil && pod == nil:
			return false // not created yet, or refused: no pod blocks it
		case stuck != nil && pod == nil:
			waiting = append(waiting, s.Name+"-"+strconv.Itoa(n))
		}
		if len(waiting) > 10 {
			break
		}
	}
	if stuck == nil {
		return false
	}
	revision := stuck.Labels[appsv1.StatefulSetRevisionLabel]
	outdated := s.Status.UpdateRevision != "" && revision != "" && revision != s.Status.UpdateRevision && s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
	if len(waiting) == 0 && !outdated {
		return false
	}
	f.Pods = []string{stuck.Name}
	// Pods start one by one as a rule; only a pod that takes long is a finding in its own right.
	f.Follower = !outdated && x.Taken.Sub(stuck.CreationTimestamp.Time) < startTime
	f.Confidence = engine.High
	f.Evidence = []string{fmt.Sprintf("Pod %s exists and is not ready.", engine.QuoteCode(stuck.Name))}
	f.Cause = fmt.Sprintf("The pods of a StatefulSet start one after the other, and %s is not ready.", engine.QuoteCode(stuck.Name))
	f.Text = "Find out why that pod is not ready; the others follow by themselves."
	if len(waiting) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Not created yet: %s.", engine.QuoteCodes(waiting)))
	}
	if outdated {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The pod is of revision %s; the StatefulSet wants %s, and does not replace a pod that never became ready.", engine.QuoteCode(revision), engine.QuoteCode(s.Status.UpdateRevision)))
		f.Cause = fmt.Sprintf("The pod %s is of an earlier revision and not ready; the StatefulSet waits for it before continuing.", engine.QuoteCode(stuck.Name))
		f.Text = "If the StatefulSet was corrected since, delete this pod: it comes back with the revision that is wanted, and its volumes stay."
		f.Because, f.Confidence = nil, engine.Medium
		f.Fix = engine.ValidFix(engine.NewOperation(operation.Delete, operation.Ref{Kind: "Pod", Namespace: stuck.Namespace, Name: stuck.Name}))
	}
	return true
}
