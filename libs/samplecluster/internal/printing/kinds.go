package printing

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

var printers = map[schema.GroupKind]printer{
	{Kind: "Pod"}: newPrinter("Ready,Status,Restarts,Age,+IP,+Node", podCells),
	{Kind: "Node"}: newPrinter("Status,Age,Version,+Internal-IP", func(n *corev1.Node, now time.Time) []any {
		return []any{nodeStatus(n), formatAge(n.CreationTimestamp, now), n.Status.NodeInfo.KubeletVersion, nodeAddress(n)}
	}),
	{Kind: "Namespace"}: newPrinter("Status,Age", func(n *corev1.Namespace, now time.Time) []any {
		return []any{string(n.Status.Phase), formatAge(n.CreationTimestamp, now)}
	}),
	{Kind: "Service"}: newPrinter("Type,Cluster-IP,External-IP,Port(s),Age,+Selector", serviceCells),
	{Kind: "ConfigMap"}: newPrinter("Data,Age", func(m *corev1.ConfigMap, now time.Time) []any {
		return []any{len(m.Data) + len(m.BinaryData), formatAge(m.CreationTimestamp, now)}
	}),
	{Kind: "Secret"}: newPrinter("Type,Data,Age", func(s *corev1.Secret, now time.Time) []any {
		return []any{string(s.Type), len(s.Data), formatAge(s.CreationTimestamp, now)}
	}),
	{Kind: "Event"}: newPrinter("Last Seen,Type,Reason,Object,Message", func(e *corev1.Event, now time.Time) []any {
		return []any{formatAge(e.LastTimestamp, now), e.Type, e.Reason, strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name, strings.TrimSpace(e.Message)}
	}),
	{Kind: "PersistentVolumeClaim"}: newPrinter("Status,Volume,Capacity,StorageClass,Age", func(c *corev1.PersistentVolumeClaim, now time.Time) []any {
		storage, class := c.Status.Capacity[corev1.ResourceStorage], ""
		if c.Spec.StorageClassName != nil {
			class = *c.Spec.StorageClassName
		}
		size := ""
		if !storage.IsZero() {
			size = storage.String()
		}
		return []any{string(c.Status.Phase), c.Spec.VolumeName, size, class, formatAge(c.CreationTimestamp, now)}
	}),
	{Kind: "PersistentVolume"}: newPrinter("Capacity,Status,Claim,StorageClass,Age", func(v *corev1.PersistentVolume, now time.Time) []any {
		storage, claim := v.Spec.Capacity[corev1.ResourceStorage], ""
		if ref := v.Spec.ClaimRef; ref != nil {
			claim = ref.Namespace + "/" + ref.Name
		}
		return []any{storage.String(), string(v.Status.Phase), claim, v.Spec.StorageClassName, formatAge(v.CreationTimestamp, now)}
	}),
	{Group: "apps", Kind: "Deployment"}: newPrinter("Ready,Up-To-Date,Available,Age,+Images", func(d *appsv1.Deployment, now time.Time) []any {
		return []any{formatPortion(d.Status.ReadyReplicas, d.Spec.Replicas), d.Status.UpdatedReplicas, d.Status.AvailableReplicas, formatAge(d.CreationTimestamp, now), formatImages(&d.Spec.Template)}
	}),
	{Group: "apps", Kind: "StatefulSet"}: newPrinter("Ready,Age,+Images", func(s *appsv1.StatefulSet, now time.Time) []any {
		return []any{formatPortion(s.Status.ReadyReplicas, s.Spec.Replicas), formatAge(s.CreationTimestamp, now), formatImages(&s.Spec.Template)}
	}),
	{Group: "apps", Kind: "ReplicaSet"}: newPrinter("Desired,Current,Ready,Age,+Images", func(s *appsv1.ReplicaSet, now time.Time) []any {
		return []any{replicasOrOne(s.Spec.Replicas), s.Status.Replicas, s.Status.ReadyReplicas, formatAge(s.CreationTimestamp, now), formatImages(&s.Spec.Template)}
	}),
	{Group: "apps", Kind: "DaemonSet"}: newPrinter("Desired,Current,Ready,Up-To-Date,Available,Age,+Images", func(s *appsv1.DaemonSet, now time.Time) []any {
		st := s.Status
		return []any{st.DesiredNumberScheduled, st.CurrentNumberScheduled, st.NumberReady, st.UpdatedNumberScheduled, st.NumberAvailable, formatAge(s.CreationTimestamp, now), formatImages(&s.Spec.Template)}
	}),
	{Group: "batch", Kind: "Job"}: newPrinter("Status,Completions,Age,+Images", func(j *batchv1.Job, now time.Time) []any {
		return []any{jobStatus(j), formatPortion(j.Status.Succeeded, j.Spec.Completions), formatAge(j.CreationTimestamp, now), formatImages(&j.Spec.Template)}
	}),
	{Group: "batch", Kind: "CronJob"}: newPrinter("Schedule,Suspend,Active,Last Schedule,Age", func(c *batchv1.CronJob, now time.Time) []any {
		last := "<none>"
		if c.Status.LastScheduleTime != nil {
			last = formatAge(*c.Status.LastScheduleTime, now)
		}
		return []any{c.Spec.Schedule, strconv.FormatBool(c.Spec.Suspend != nil && *c.Spec.Suspend), len(c.Status.Active), last, formatAge(c.CreationTimestamp, now)}
	}),
	{Group: "networking.k8s.io", Kind: "Ingress"}: newPrinter("Class,Hosts,Age", func(i *networkingv1.Ingress, now time.Time) []any {
		class, hosts := "<none>", []string{}
		if i.Spec.IngressClassName != nil {
			class = *i.Spec.IngressClassName
		}
		for _, r := range i.Spec.Rules {
			hosts = append(hosts, r.Host)
		}
		return []any{class, strings.Join(hosts, ","), formatAge(i.CreationTimestamp, now)}
	}),
	{Group: "policy", Kind: "PodDisruptionBudget"}: newPrinter("Min Available,Max Unavailable,Allowed Disruptions,Age", func(b *policyv1.PodDisruptionBudget, now time.Time) []any {
		least, most := "N/A", "N/A"
		if b.Spec.MinAvailable != nil {
			least = b.Spec.MinAvailable.String()
		}
		if b.Spec.MaxUnavailable != nil {
			most = b.Spec.MaxUnavailable.String()
		}
		return []any{least, most, b.Status.DisruptionsAllowed, formatAge(b.CreationTimestamp, now)}
	}),
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: newPrinter("Reference,Targets,MinPods,MaxPods,Replicas,Age", func(h *autoscalingv2.HorizontalPodAutoscaler, now time.Time) []any {
		return []any{h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name, formatTargets(h), replicasOrOne(h.Spec.MinReplicas), h.Spec.MaxReplicas, h.Status.CurrentReplicas, formatAge(h.CreationTimestamp, now)}
	}),
}

// podCells shows, as kubectl does, the most significant of the states of a pod's
// containers.
func podCells(p *corev1.Pod, now time.Time) []any {
	status, restarts, ready := string(p.Status.Phase), int32(0), 0
	var last time.Time
	if p.Status.Reason != "" {
		status = p.Status.Reason
	}
	note := func(s corev1.ContainerStatus) {
		restarts += s.RestartCount
		if end := s.LastTerminationState.Terminated; end != nil && end.FinishedAt.After(last) {
			last = end.FinishedAt.Time
		}
	}
	waits := false
	for i, s := range p.Status.InitContainerStatuses {
		note(s)
		if s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 || waits {
			continue
		}
		waits = true
		status = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		if reason := stateReason(s.State); reason != "" && reason != "PodInitializing" {
			status = "Init:" + reason
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		note(s)
		if s.Ready && s.State.Running != nil {
			ready++
		}
		if reason := stateReason(s.State); reason != "" && !waits {
			status = reason
		}
	}
	if p.DeletionTimestamp != nil {
		status = "Terminating"
	}
	again := strconv.Itoa(int(restarts))
	if restarts > 0 && !last.IsZero() {
		again += " (" + duration.HumanDuration(now.Sub(last)) + " ago)"
	}
	ip, node := p.Status.PodIP, p.Spec.NodeName
	return []any{fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers)), status, again, formatAge(p.CreationTimestamp, now), orNone(ip), orNone(node)}
}

// stateReason is the reason for which a container does not run; empty while it does.
func stateReason(s corev1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return s.Waiting.Reason
	case s.Terminated != nil && s.Terminated.Reason != "":
		return s.Terminated.Reason
	case s.Terminated != nil:
		return fmt.Sprintf("ExitCode:%d", s.Terminated.ExitCode)
	}
	return ""
}

func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = "NotReady"
			if c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeAddress(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return "<none>"
}

func serviceCells(s *corev1.Service, now time.Time) []any {
	external := "<none>"
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		external = "<pending>"
		for _, in := range s.Status.LoadBalancer.Ingress {
			external = in.IP + in.Hostname
		}
	}
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		external = s.Spec.ExternalName
	}
	ports := make([]string, 0, len(s.Spec.Ports))
	for _, p := range s.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
	}
	return []any{string(s.Spec.Type), orNone(s.Spec.ClusterIP), external, orNone(strings.Join(ports, ",")), formatAge(s.CreationTimestamp, now), orNone(labels.FormatLabels(s.Spec.Selector))}
}

func jobStatus(j *batchv1.Job) string {
	for _, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete || c.Type == batchv1.JobSuspended) {
			return string(c.Type)
		}
	}
	return "Running"
}

func formatTargets(h *autoscalingv2.HorizontalPodAutoscaler) string {
	var list []string
	for _, m := range h.Spec.Metrics {
		if m.Resource == nil || m.Resource.Target.AverageUtilization == nil {
			continue
		}
		now := "<unknown>"
		for _, c := range h.Status.CurrentMetrics {
			if c.Resource != nil && c.Resource.Name == m.Resource.Name && c.Resource.Current.AverageUtilization != nil {
				now = fmt.Sprintf("%d%%", *c.Resource.Current.AverageUtilization)
			}
		}
		list = append(list, fmt.Sprintf("%s: %s/%d%%", m.Resource.Name, now, *m.Resource.Target.AverageUtilization))
	}
	return orNone(strings.Join(list, ", "))
}

func formatImages(t *corev1.PodTemplateSpec) string {
	list := make([]string, 0, len(t.Spec.Containers))
	for _, c := range t.Spec.Containers {
		list = append(list, c.Image)
	}
	return strings.Join(list, ",")
}

// replicasOrOne is a number whose default is one.
func replicasOrOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func formatPortion(have int32, want *int32) string {
	return fmt.Sprintf("%d/%d", have, replicasOrOne(want))
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
