package engine

import (
	"cmp"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// tables are further indexes of a snapshot. Each is built on first use: healthy objects need few of them.
type tables struct {
	deployments func() map[Name]*appsv1.Deployment
	autoscale   func() map[operation.Ref]bool
	Mounts      func() map[Name][]*corev1.Pod
	ClaimByName func() map[Name]*corev1.PersistentVolumeClaim
	Spaces      func() map[string]*corev1.Namespace
	Ending      func() *Chooser[*corev1.Pod]
	Templates   func() *Chooser[*Workload]
	ServicesIn  func() map[string][]*corev1.Service
	Fronts      func() *Selecting[*corev1.Service]
	Holds       func() *Selecting[map[string]string]
	Runs        func() map[types.UID][]*batchv1.Job
	Waiting     func() []string
	kept        func() map[Name][]operation.Ref
}

func (x *Index) lazily() {
	x.tables = tables{
		deployments: sync.OnceValue(x.deploymentTable),
		autoscale:   sync.OnceValue(x.autoscaleTable),
		Mounts:      sync.OnceValue(x.mountTable),
		ClaimByName: sync.OnceValue(x.claimTable),
		Spaces:      sync.OnceValue(x.spaceTable),
		Ending:      sync.OnceValue(x.endingTable),
		Templates:   sync.OnceValue(x.templateTable),
		ServicesIn:  sync.OnceValue(x.serviceTable),
		Fronts:      sync.OnceValue(x.frontTable),
		Holds:       sync.OnceValue(x.holdTable),
		Runs:        sync.OnceValue(x.runTable),
		Waiting:     sync.OnceValue(x.waitingTable),
		kept:        sync.OnceValue(x.keptTable),
	}
}

func NameOf(o metav1.Object) Name { return Name{Namespace: o.GetNamespace(), Name: o.GetName()} }

func (x *Index) deploymentTable() map[Name]*appsv1.Deployment {
	all := make(map[Name]*appsv1.Deployment, len(x.Deployments))
	for i := range x.Deployments {
		all[NameOf(&x.Deployments[i])] = &x.Deployments[i]
	}
	return all
}

// Deployment returns the deployment with a reference, or nil.
func (x *Index) Deployment(r operation.Ref) *appsv1.Deployment {
	if r.Kind != "Deployment" {
		return nil
	}
	return x.deployments()[Name{Namespace: r.Namespace, Name: r.Name}]
}

func (x *Index) autoscaleTable() map[operation.Ref]bool {
	all := map[operation.Ref]bool{}
	for i := range x.Autoscalers {
		a := &x.Autoscalers[i]
		all[operation.Ref{Kind: a.Spec.ScaleTargetRef.Kind, Namespace: a.Namespace, Name: a.Spec.ScaleTargetRef.Name}] = true
	}
	return all
}

// Autoscaled reports whether an autoscaler controls a workload's replicas.
func (x *Index) Autoscaled(r operation.Ref) bool {
	return x.autoscale()[operation.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}]
}

// mountTable returns the living pods that mount each claim, by name.
func (x *Index) mountTable() map[Name][]*corev1.Pod {
	all := map[Name][]*corev1.Pod{}
	for _, pod := range x.LivingPods {
		for _, claim := range ClaimsOf(pod) {
			of := Name{Namespace: pod.Namespace, Name: claim}
			all[of] = append(all[of], pod)
		}
	}
	return all
}

func (x *Index) claimTable() map[Name]*corev1.PersistentVolumeClaim {
	all := map[Name]*corev1.PersistentVolumeClaim{}
	for i := range x.Claims {
		all[NameOf(&x.Claims[i])] = &x.Claims[i]
	}
	return all
}

func (x *Index) spaceTable() map[string]*corev1.Namespace {
	all := map[string]*corev1.Namespace{}
	for i := range x.Namespaces {
		all[x.Namespaces[i].Name] = &x.Namespaces[i]
	}
	return all
}

func (x *Index) endingTable() *Chooser[*corev1.Pod] {
	all := NewChooser(PodLabels)
	for i := range x.Pods {
		if pod := &x.Pods[i]; pod.DeletionTimestamp != nil {
			all.Add(pod.Namespace, pod)
		}
	}
	return all
}

// templateTable returns the workloads whose pod template is known.
func (x *Index) templateTable() *Chooser[*Workload] {
	all := NewChooser(func(w *Workload) map[string]string { return w.Template.Labels })
	for _, w := range x.Workloads {
		if w.Template != nil {
			all.Add(w.Ref.Namespace, w)
		}
	}
	return all
}

// serviceTable returns the services of each namespace, by name.
func (x *Index) serviceTable() map[string][]*corev1.Service {
	all := map[string][]*corev1.Service{}
	for i := range x.Services {
		s := &x.Services[i]
		all[s.Namespace] = append(all[s.Namespace], s)
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b *corev1.Service) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all
}

// frontTable returns the services with a pod selector.
func (x *Index) frontTable() *Selecting[*corev1.Service] {
	all := NewSelecting[*corev1.Service]()
	for i := range x.Services {
		if s := &x.Services[i]; len(s.Spec.Selector) > 0 {
			all.Add(x.PodsByLabel, s.Namespace, s.Spec.Selector, s)
		}
	}
	return all
}

// holdTable returns the labels by which services and workloads select pods.
func (x *Index) holdTable() *Selecting[map[string]string] {
	all := NewSelecting[map[string]string]()
	add := func(namespace string, want map[string]string) {
		if len(want) > 0 {
			all.Add(x.PodsByLabel, namespace, want, want)
		}
	}
	own := func(namespace string, s *metav1.LabelSelector) {
		if s != nil {
			add(namespace, s.MatchLabels)
		}
	}
	for i := range x.Services {
		add(x.Services[i].Namespace, x.Services[i].Spec.Selector)
	}
	for i := range x.Deployments {
		own(x.Deployments[i].Namespace, x.Deployments[i].Spec.Selector)
	}
	for i := range x.StatefulSets {
		own(x.StatefulSets[i].Namespace, x.StatefulSets[i].Spec.Selector)
	}
	for i := range x.DaemonSets {
		own(x.DaemonSets[i].Namespace, x.DaemonSets[i].Spec.Selector)
	}
	return all
}

// runTable returns the jobs of each owner.
func (x *Index) runTable() map[types.UID][]*batchv1.Job {
	all := map[types.UID][]*batchv1.Job{}
	for i := range x.Jobs {
		if owner := metav1.GetControllerOf(&x.Jobs[i]); owner != nil {
			all[owner.UID] = append(all[owner.UID], &x.Jobs[i])
		}
	}
	return all
}

// waitingTable returns the namespaces with unschedulable pods, in order.
func (x *Index) waitingTable() []string {
	var all []string
	for _, pod := range x.LivingPods {
		if IsUnschedulable(pod) && (len(all) == 0 || all[len(all)-1] != pod.Namespace) {
			all = append(all, pod.Namespace)
		}
	}
	return all
}

// ReadyEndpoints counts the ready endpoints of each service.
func ReadyEndpoints(slices []discoveryv1.EndpointSlice) map[types.NamespacedName]int {
	ready := map[Name]int{}
	for i := range slices {
		s := &slices[i]
		of := Name{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready[of]++
			}
		}
	}
	return ready
}
