package playbook_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// clusterShape describes the size of a cluster, and how much of it is broken.
type clusterShape struct {
	Name        string
	Pods        int
	Namespaces  int
	Deployments int // they own the pods, in turn
	Idle        int // the last of these, which are scaled to 0
	Services    int // each selects the pods of one deployment, in turn
	Policies    int
	Closed      int // further policies, which admit no existing pod
	Budgets     int
	Scalers     int
	Events      int
	Broken      int // of 100 deployments
}

// clusterShapes are the shapes on which a question has to be fast.
func clusterShapes() []clusterShape {
	base := clusterShape{Pods: 5000, Namespaces: 10, Deployments: 1000, Services: 1000, Policies: 50, Budgets: 100, Scalers: 100, Events: 2000, Broken: 2}
	shape := func(name string, change func(*clusterShape)) clusterShape {
		s := base
		s.Name = name
		change(&s)
		return s
	}
	return []clusterShape{
		shape("1_namespace", func(s *clusterShape) { s.Namespaces = 1 }),
		shape("10_namespaces", func(*clusterShape) {}),
		shape("100_namespaces", func(s *clusterShape) { s.Namespaces = 100 }),
		shape("many_services", func(s *clusterShape) { s.Namespaces, s.Deployments, s.Services = 1, 4000, 3000 }),
		shape("many_policies", func(s *clusterShape) { s.Namespaces, s.Policies = 1, 2000 }),
		shape("closed", func(s *clusterShape) { s.Namespaces, s.Closed = 1, 20 }),
		shape("idle", func(s *clusterShape) { s.Namespaces, s.Deployments, s.Idle, s.Services = 1, 4000, 3000, 4000 }),
		shape("many_budgets", func(s *clusterShape) { s.Namespaces, s.Budgets, s.Scalers = 1, 1000, 1000 }),
		shape("many_events", func(s *clusterShape) { s.Namespaces, s.Events = 1, 50000 }),
		shape("healthy", func(s *clusterShape) { s.Namespaces, s.Broken = 1, 0 }),
		shape("broken", func(s *clusterShape) { s.Namespaces, s.Deployments, s.Services, s.Broken = 1, 4000, 3000, 100 }),
	}
}

// taken is the time of every snapshot.
var taken = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// maker builds one snapshot.
type maker struct {
	size clusterShape
	*engine.Snapshot
}

// newCluster builds the cluster of a shape, deterministically.
func newCluster(s clusterShape) *engine.Snapshot {
	m := &maker{s, &engine.Snapshot{
		Taken: taken, Logs: map[engine.Log]string{}, Unread: map[string]bool{},
		Served: map[string]bool{"v1": true, "apps/v1": true, "batch/v1": true, "autoscaling/v2": true, "policy/v1": true, "networking.k8s.io/v1": true, "discovery.k8s.io/v1": true},
	}}
	for i := range max(s.Pods/50, 1) {
		m.node(i)
	}
	for i := range s.Namespaces {
		n := corev1.Namespace{ObjectMeta: objectMeta("", m.namespace(i))}
		n.Status.Phase = corev1.NamespaceActive
		m.Namespaces = append(m.Namespaces, n)
		m.ServiceAccounts = append(m.ServiceAccounts, corev1.ServiceAccount{ObjectMeta: objectMeta(n.Name, "default")})
		m.ConfigMaps = append(m.ConfigMaps, corev1.ConfigMap{ObjectMeta: objectMeta(n.Name, "settings"), Data: map[string]string{"LEVEL": "info"}})
	}
	for i := range s.Deployments {
		m.deployment(i)
	}
	for i := range s.Pods {
		m.pod(i)
	}
	for i := range s.Services {
		m.service(i)
	}
	for i := range s.Policies {
		m.policy(i)
	}
	for i := range s.Closed {
		m.closed(i)
	}
	for i := range s.Budgets {
		m.budget(i)
	}
	for i := range s.Scalers {
		m.scaler(i)
	}
	for i := range s.Events {
		m.event(i)
	}
	return m.Snapshot
}

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(taken.Add(-48 * time.Hour))}
}

func ownedBy(by metav1.ObjectMeta, kind string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: by.Name, UID: by.UID, Controller: &yes}}
}

// namespace returns the namespace of the i-th deployment and its pods.
func (m *maker) namespace(i int) string { return fmt.Sprintf("team-%d", i%max(m.size.Namespaces, 1)) }

// ill reports whether the i-th deployment is broken, and how: 0 to 5.
func (m *maker) ill(i int) (how int, is bool) { return i / 7 % 6, i*37%100 < m.size.Broken }

func appLabels(i int) map[string]string {
	return map[string]string{"app": fmt.Sprintf("app-%d", i), "tier": "backend", "team": "payments"}
}

func (m *maker) node(i int) {
	n := corev1.Node{ObjectMeta: objectMeta("", fmt.Sprintf("node-%d", i))}
	n.Labels = map[string]string{"kubernetes.io/hostname": n.Name, "topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i%3)}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(taken.Add(-24 * time.Hour))}}
	m.Nodes = append(m.Nodes, n)
}

func (m *maker) template(i int) corev1.PodTemplateSpec {
	how, ill := m.ill(i)
	c := corev1.Container{
		Name: "app", Image: fmt.Sprintf("registry.example/team/app-%d:1.2.3", i), Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		Env: []corev1.EnvVar{
			{Name: "LOG_LEVEL", Value: "info"}, {Name: "UPSTREAM_URL", Value: fmt.Sprintf("http://svc-%d:80/", (i+m.size.Namespaces)%max(m.size.Services, 1))},
			{Name: "DATABASE_HOST", Value: "database.example.org"}, {Name: "FEATURES", Value: "some value of ordinary length"},
		},
		EnvFrom:        []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
		Resources:      corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}, Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}}, PeriodSeconds: 10},
		VolumeMounts:   []corev1.VolumeMount{{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
	}
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: appLabels(i)}}
	if ill {
		switch how {
		case 0:
			c.Env = append(c.Env, corev1.EnvVar{Name: "DATABASE_URL"})
		case 2:
			c.EnvFrom[0].ConfigMapRef.Name = "absent"
		case 3:
			c.ReadinessProbe.HTTPGet.Port = intstr.FromInt32(9999)
		case 4:
			c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse("100Gi")
		}
	}
	t.Spec = corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{c}, Volumes: []corev1.Volume{{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}}
	return t
}

// running returns the number of deployments with pods.
func (m *maker) running() int { return m.size.Deployments - m.size.Idle }

func (m *maker) deployment(i int) {
	_, ill := m.ill(i)
	replicas := int32(m.size.Pods / m.running())
	if i < m.size.Pods%m.running() {
		replicas++
	}
	if i >= m.running() {
		replicas = 0
	}
	d := appsv1.Deployment{ObjectMeta: objectMeta(m.namespace(i), fmt.Sprintf("app-%d", i))}
	d.Labels = appLabels(i)
	d.Spec = appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": d.Name}}, Template: m.template(i)}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas}
	if !ill {
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = replicas, replicas
	}
	m.Deployments = append(m.Deployments, d)
	for revision, hash := range []string{"5d4f8c7b9d", "77c5f6d4b8"} {
		r := appsv1.ReplicaSet{ObjectMeta: objectMeta(d.Namespace, d.Name+"-"+hash)}
		r.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(revision + 1)}
		r.Labels, r.OwnerReferences = d.Labels, ownedBy(d.ObjectMeta, "Deployment")
		r.Spec.Template = d.Spec.Template
		if revision == 1 {
			r.Spec.Replicas, r.Status.Replicas, r.Status.ReadyReplicas = &replicas, replicas, d.Status.ReadyReplicas
		}
		m.ReplicaSets = append(m.ReplicaSets, r)
	}
}

func (m *maker) podName(i int) string {
	return fmt.Sprintf("app-%d-77c5f6d4b8-%05d", i%m.running(), i)
}

func (m *maker) pod(i int) {
	of := i % m.running()
	d := &m.Deployments[of]
	p := corev1.Pod{ObjectMeta: objectMeta(d.Namespace, m.podName(i)), Spec: *d.Spec.Template.Spec.DeepCopy()}
	set := metav1.ObjectMeta{Name: d.Name + "-77c5f6d4b8"}
	p.Labels, p.OwnerReferences = appLabels(of), ownedBy(set, "ReplicaSet")
	p.Labels["pod-template-hash"] = "77c5f6d4b8"
	p.Spec.NodeName = fmt.Sprintf("node-%d", i%len(m.Nodes))
	c := corev1.ContainerStatus{Name: "app", Ready: true, Image: p.Spec.Containers[0].Image, ImageID: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
	c.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(taken.Add(-24 * time.Hour))}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}
	if how, ill := m.ill(of); ill {
		c.Ready = false
		switch how {
		case 0:
			end := &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: metav1.NewTime(taken.Add(-time.Minute))}
			c.State, c.LastTerminationState, c.RestartCount = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, corev1.ContainerState{Terminated: end}, 12
			m.Logs[engine.Log{Namespace: p.Namespace, Pod: p.Name, Container: "app", Previous: true}] = "starting\nfatal: DATABASE_URL is empty\n"
		case 1:
			c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "manifest unknown"}}
			p.Status.Phase = corev1.PodPending
		case 2:
			c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `configmap "absent" not found`}}
			p.Status.Phase = corev1.PodPending
		case 4:
			p.Status, p.Spec.NodeName = corev1.PodStatus{Phase: corev1.PodPending}, ""
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/100 nodes are available: 100 Insufficient memory."}}
			m.Pods = append(m.Pods, p)
			return
		case 5: // the service's selector is wrong; the pods are healthy
			c.Ready = true
		}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{c}
	state := corev1.ConditionFalse
	if c.Ready {
		state = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: state}, {Type: corev1.PodReady, Status: state}}
	m.Pods = append(m.Pods, p)
}

func (m *maker) service(i int) {
	of := i % m.size.Deployments
	s := corev1.Service{ObjectMeta: objectMeta(m.namespace(of), fmt.Sprintf("svc-%d", i))}
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": fmt.Sprintf("app-%d", of), "tier": "backend"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP}}}
	how, ill := m.ill(of)
	if ill && how == 5 {
		s.Spec.Selector["tier"] = "frontend"
	}
	m.Services = append(m.Services, s)
	e := discoveryv1.EndpointSlice{ObjectMeta: objectMeta(s.Namespace, s.Name+"-x7k2p")}
	e.Labels = map[string]string{discoveryv1.LabelServiceName: s.Name}
	if ready := !ill && of < m.running(); ready {
		e.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}
	}
	m.EndpointSlices = append(m.EndpointSlices, e)
}

// policy admits all pods of its team to the pods of a deployment or, for one in fifty, pods with a label that none has.
func (m *maker) policy(i int) {
	of := i % m.size.Deployments
	p := networkingv1.NetworkPolicy{ObjectMeta: objectMeta(m.namespace(of), fmt.Sprintf("policy-%d", i))}
	from := map[string]string{"team": "payments"}
	if i%50 == 1 && m.size.Broken > 0 {
		from = map[string]string{"role": "frontend"}
	}
	p.Spec = networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", of)}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: from}}}}},
	}
	m.NetworkPolicies = append(m.NetworkPolicies, p)
}

func (m *maker) closed(i int) {
	p := networkingv1.NetworkPolicy{ObjectMeta: objectMeta(m.namespace(i), fmt.Sprintf("closed-%d", i))}
	from := &metav1.LabelSelector{MatchLabels: map[string]string{"role": "frontend"}}
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: from}}}}
	m.NetworkPolicies = append(m.NetworkPolicies, p)
}

func (m *maker) budget(i int) {
	of := i % m.size.Deployments
	b := policyv1.PodDisruptionBudget{ObjectMeta: objectMeta(m.namespace(of), fmt.Sprintf("budget-%d", i))}
	least := intstr.FromInt32(1)
	b.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", of)}}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2}
	m.Budgets = append(m.Budgets, b)
}

func (m *maker) scaler(i int) {
	of := i % m.size.Deployments
	a := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: objectMeta(m.namespace(of), fmt.Sprintf("scaler-%d", i))}
	share := int32(80)
	a.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprintf("app-%d", of)}, MaxReplicas: 100,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &share}}}},
	}
	m.Autoscalers = append(m.Autoscalers, a)
}

func (m *maker) event(i int) {
	p := &m.Pods[i%len(m.Pods)]
	e := corev1.Event{ObjectMeta: objectMeta(p.Namespace, fmt.Sprintf("%s.%x", p.Name, i))}
	e.InvolvedObject = corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
	e.Type, e.Reason, e.Message, e.Count = corev1.EventTypeNormal, "Pulled", "Container image is present on the machine already", 1
	if how, ill := m.ill(i % len(m.Pods) % m.running()); ill && how < 5 {
		e.Type, e.Reason = corev1.EventTypeWarning, []string{"BackOff", "Failed", "Failed", "Unhealthy", "FailedScheduling"}[how]
		e.Message = []string{
			"Back-off restarting failed container", "Failed to pull image: manifest unknown", `Error: configmap "absent" not found`,
			"Readiness probe failed: dial tcp 10.0.0.1:9999: connect: connection refused", "0/100 nodes are available: 100 Insufficient memory.",
		}[how]
	}
	e.LastTimestamp = metav1.NewTime(taken.Add(-time.Duration(i) * time.Second))
	m.Events = append(m.Events, e)
}
