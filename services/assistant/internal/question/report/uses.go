package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Uses reports whether a pod reads a ConfigMap or Secret, mounts a volume claim or runs as a service account.
func Uses(pod *corev1.Pod, r operation.Ref) bool {
	spec := &pod.Spec
	if r.Kind == "ServiceAccount" {
		return spec.ServiceAccountName == r.Name
	}
	if r.Kind == "Secret" && slices.ContainsFunc(spec.ImagePullSecrets, func(s corev1.LocalObjectReference) bool { return s.Name == r.Name }) {
		return true
	}
	if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return volumeUses(&v, r) }) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.EnvFrom, func(e corev1.EnvFromSource) bool {
			return r.Kind == "ConfigMap" && e.ConfigMapRef != nil && e.ConfigMapRef.Name == r.Name || r.Kind == "Secret" && e.SecretRef != nil && e.SecretRef.Name == r.Name
		}) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			from := e.ValueFrom
			return from != nil && (r.Kind == "ConfigMap" && from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Name == r.Name ||
				r.Kind == "Secret" && from.SecretKeyRef != nil && from.SecretKeyRef.Name == r.Name)
		})
	})
}

func volumeUses(v *corev1.Volume, r operation.Ref) bool {
	switch r.Kind {
	case "PersistentVolumeClaim":
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == r.Name
	case "ConfigMap":
		return v.ConfigMap != nil && v.ConfigMap.Name == r.Name || v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool { return p.ConfigMap != nil && p.ConfigMap.Name == r.Name })
	case "Secret":
		return v.Secret != nil && v.Secret.SecretName == r.Name || v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool { return p.Secret != nil && p.Secret.Name == r.Name })
	}
	return false
}

// FirstPort returns the first port that a container of a view declares, or 0.
func (v View) FirstPort() int32 {
	for _, pod := range v.pods() {
		for i := range pod.Spec.Containers {
			if ports := pod.Spec.Containers[i].Ports; len(ports) > 0 {
				return ports[0].ContainerPort
			}
		}
	}
	return 0
}
