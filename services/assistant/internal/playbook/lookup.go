package playbook

import (
	"cmp"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// tables are further ways into a snapshot. Each is made when it is first asked for: what
// is well asks for few.
type tables struct {
	deployments func() map[name]*appsv1.Deployment
	autoscale   func() map[operation.Ref]bool
	mounts      func() map[name][]*corev1.Pod
	users       func() map[name][]*corev1.Pod
	claimNamed  func() map[name]*corev1.PersistentVolumeClaim
	nameServing func() nameServing
	spaces      func() map[string]*corev1.Namespace
	callers     func() map[*corev1.Service][]string
	ending      func() *Chooser[*corev1.Pod]
	templates   func() *Chooser[*workload]
	nearby      func() *Chooser[*near]
	servicesIn  func() map[string][]*corev1.Service
	fronts      func() *selecting[*corev1.Service]
	holds       func() *selecting[map[string]string]
	limiting    func() *policyTable
	runs        func() map[types.UID][]*batchv1.Job
	waiting     func() []string
	rejected    func() []rejection
	nodesByName func() []*corev1.Node
	left        map[nodeKind]resource.Quantity
	keepers     map[string]string      // of finalizers
	closest     map[string]closest     // of labels: see nearTo
	hosts       map[hostKey][]address  // of values of variables
	asks        map[*corev1.Pod][]call // of pods
}

func (x *index) lazily() {
	x.tables = tables{
		deployments: sync.OnceValue(x.deploymentTable),
		autoscale:   sync.OnceValue(x.autoscaleTable),
		mounts:      sync.OnceValue(x.mountTable),
		users:       sync.OnceValue(x.userTable),
		claimNamed:  sync.OnceValue(x.claimTable),
		nameServing: sync.OnceValue(x.findNameServer),
		spaces:      sync.OnceValue(x.spaceTable),
		callers:     sync.OnceValue(x.callerTable),
		ending:      sync.OnceValue(x.endingTable),
		templates:   sync.OnceValue(x.templateTable),
		nearby:      sync.OnceValue(x.nearTable),
		servicesIn:  sync.OnceValue(x.serviceTable),
		fronts:      sync.OnceValue(x.frontTable),
		holds:       sync.OnceValue(x.holdTable),
		limiting:    sync.OnceValue(x.policyTable),
		runs:        sync.OnceValue(x.runTable),
		waiting:     sync.OnceValue(x.waitingTable),
		rejected:    sync.OnceValue(x.rejections),
		nodesByName: sync.OnceValue(func() []*corev1.Node { return sortedNodes(x.Nodes) }),
		left:        map[nodeKind]resource.Quantity{},
		keepers:     map[string]string{},
		closest:     map[string]closest{},
		hosts:       map[hostKey][]address{},
		asks:        map[*corev1.Pod][]call{},
	}
}

func nameOf(o metav1.Object) name { return name{Namespace: o.GetNamespace(), Name: o.GetName()} }

func (x *index) deploymentTable() map[name]*appsv1.Deployment {
	all := make(map[name]*appsv1.Deployment, len(x.Deployments))
	for i := range x.Deployments {
		all[nameOf(&x.Deployments[i])] = &x.Deployments[i]
	}
	return all
}

// deployment is the deployment of that name, or nil.
func (x *index) deployment(r operation.Ref) *appsv1.Deployment {
	if r.Kind != "Deployment" {
		return nil
	}
	return x.deployments()[name{Namespace: r.Namespace, Name: r.Name}]
}

func (x *index) autoscaleTable() map[operation.Ref]bool {
	all := map[operation.Ref]bool{}
	for i := range x.Autoscalers {
		a := &x.Autoscalers[i]
		all[operation.Ref{Kind: a.Spec.ScaleTargetRef.Kind, Namespace: a.Namespace, Name: a.Spec.ScaleTargetRef.Name}] = true
	}
	return all
}

// autoscaled says whether an autoscaler decides on a workload's replicas.
func (x *index) autoscaled(r operation.Ref) bool {
	return x.autoscale()[operation.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}]
}

// mountTable has the living pods that mount each claim, by name.
func (x *index) mountTable() map[name][]*corev1.Pod {
	all := map[name][]*corev1.Pod{}
	for _, pod := range x.byName {
		for _, claim := range claimsOf(pod) {
			of := name{Namespace: pod.Namespace, Name: claim}
			all[of] = append(all[of], pod)
		}
	}
	return all
}

func (x *index) claimTable() map[name]*corev1.PersistentVolumeClaim {
	all := map[name]*corev1.PersistentVolumeClaim{}
	for i := range x.Claims {
		all[nameOf(&x.Claims[i])] = &x.Claims[i]
	}
	return all
}

func (x *index) spaceTable() map[string]*corev1.Namespace {
	all := map[string]*corev1.Namespace{}
	for i := range x.Namespaces {
		all[x.Namespaces[i].Name] = &x.Namespaces[i]
	}
	return all
}

func (x *index) endingTable() *Chooser[*corev1.Pod] {
	all := NewChooser(PodLabels)
	for i := range x.Pods {
		if pod := &x.Pods[i]; pod.DeletionTimestamp != nil {
			all.Add(pod.Namespace, pod)
		}
	}
	return all
}

// templateTable has the workloads whose pod template is known.
func (x *index) templateTable() *Chooser[*workload] {
	all := NewChooser(func(w *workload) map[string]string { return w.template.Labels })
	for _, w := range x.workloads {
		if w.template != nil {
			all.Add(w.ref.Namespace, w)
		}
	}
	return all
}

// serviceTable has the services of each namespace, by name.
func (x *index) serviceTable() map[string][]*corev1.Service {
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

// frontTable has the services that choose pods.
func (x *index) frontTable() *selecting[*corev1.Service] {
	all := newSelecting[*corev1.Service]()
	for i := range x.Services {
		if s := &x.Services[i]; len(s.Spec.Selector) > 0 {
			all.add(x.pods, s.Namespace, s.Spec.Selector, s)
		}
	}
	return all
}

// holdTable has the labels by which services and workloads choose pods.
func (x *index) holdTable() *selecting[map[string]string] {
	all := newSelecting[map[string]string]()
	add := func(namespace string, want map[string]string) {
		if len(want) > 0 {
			all.add(x.pods, namespace, want, want)
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

// runTable has the jobs of each owner.
func (x *index) runTable() map[types.UID][]*batchv1.Job {
	all := map[types.UID][]*batchv1.Job{}
	for i := range x.Jobs {
		if owner := metav1.GetControllerOf(&x.Jobs[i]); owner != nil {
			all[owner.UID] = append(all[owner.UID], &x.Jobs[i])
		}
	}
	return all
}

// waitingTable has the namespaces with pods that no node takes, in order.
func (x *index) waitingTable() []string {
	var all []string
	for _, pod := range x.byName {
		if isUnschedulable(pod) && (len(all) == 0 || all[len(all)-1] != pod.Namespace) {
			all = append(all, pod.Namespace)
		}
	}
	return all
}

// ReadyEndpoints counts the ready endpoints of each service.
func ReadyEndpoints(slices []discoveryv1.EndpointSlice) map[types.NamespacedName]int {
	ready := map[name]int{}
	for i := range slices {
		s := &slices[i]
		of := name{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready[of]++
			}
		}
	}
	return ready
}
