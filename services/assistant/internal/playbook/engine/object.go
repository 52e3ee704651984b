package engine

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func HasStarted(c Container) bool {
	return c.Status.State.Running != nil || c.LastEnd() != nil || c.Status.ImageID != ""
}

func IsUnschedulable(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func ServiceRef(s *corev1.Service) operation.Ref {
	return operation.Ref{Version: "v1", Kind: "Service", Namespace: s.Namespace, Name: s.Name}
}

func GatewayRef(g *gatewayapi.Gateway) operation.Ref {
	return operation.Ref{Group: gatewayapi.Group, Version: "v1", Kind: "Gateway", Namespace: g.Namespace, Name: g.Name}
}

// IsInitRunning reports whether an init container is running that the others wait for.
func IsInitRunning(pod *corev1.Pod, c Container) bool {
	return c.Init && !RunsBeside(c.Spec) && c.Status.State.Running != nil && pod.Status.Phase == corev1.PodPending
}

func PodNames(pods []*corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// OfferOldRequest offers the latest earlier request that was smaller, for the first container that has one.
func (f *Finding) OfferOldRequest(w *Workload, kind corev1.ResourceName, pod *corev1.Pod) {
	if !w.Patchable() || kind != corev1.ResourceCPU && kind != corev1.ResourceMemory {
		return
	}
	for _, r := range w.Older {
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			then := FindContainer(r.Template, c.Name)
			if then == nil {
				continue
			}
			old, ok := then.Resources.Requests[kind]
			if now := c.Resources.Requests[kind]; !ok || old.Cmp(now) >= 0 {
				continue
			}
			o := NewOperation(operation.SetResources, w.Ref)
			o.Container = c.Name
			o.Requests = map[string]string{string(kind): old.String()}
			if f.Fix = ValidFix(o); f.Fix != nil {
				f.Text = fmt.Sprintf("Give back the %s request of revision %d, %s.", kind, r.Number, old.String())
			}
			return
		}
	}
}

// ServiceNamed returns the service that a cluster-internal host name resolves to, or nil.
func (x *Index) ServiceNamed(host, namespace string) *corev1.Service {
	service, rest, _ := strings.Cut(host, ".")
	if rest != "" {
		var domain string
		namespace, domain, _ = strings.Cut(rest, ".")
		if domain != "" && domain != "svc" && !strings.HasPrefix(domain, "svc.") {
			return nil
		}
	}
	return x.ServiceByName[Name{Namespace: namespace, Name: service}]
}

// AccountOf returns the service account of a pod.
func AccountOf(pod *corev1.Pod) string {
	if pod.Spec.ServiceAccountName == "" {
		return "default"
	}
	return pod.Spec.ServiceAccountName
}

// holdsToken reports whether any container of a pod can act as its service account.
func holdsToken(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil })
	}) || AccountOf(pod) != "default" && (pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken)
}
