package admission

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// orSet sets a nil pointer field to its default.
func orSet[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// setDefault sets an empty plain field to its default.
func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

func applyDefaults(tx store.Tx, o resource.Object) {
	switch o := o.(type) {
	case *corev1.Namespace:
		setDefault(&o.Status.Phase, corev1.NamespaceActive)
		if o.CreationTimestamp.IsZero() || (len(o.Spec.Finalizers) == 0 && o.DeletionTimestamp == nil) {
			o.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
		}
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels[corev1.LabelMetadataName] = o.Name
	case *corev1.Pod:
		setDefault(&o.Status.Phase, corev1.PodPending)
		if o.Status.QOSClass == "" {
			o.Status.QOSClass = qosClass(&o.Spec)
		}
		podDefaults(&o.Spec)
		setDefault(&o.Spec.ServiceAccountName, "default")
		o.Spec.DeprecatedServiceAccount = o.Spec.ServiceAccountName
	case *corev1.Service:
		serviceDefaults(tx, o)
	case *corev1.Secret:
		setDefault(&o.Type, corev1.SecretTypeOpaque)
		for key, value := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[key] = []byte(value)
		}
		o.StringData = nil
	case *corev1.PersistentVolumeClaim:
		setDefault(&o.Status.Phase, corev1.ClaimPending)
		orSet(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		if o.Spec.StorageClassName == nil {
			if class := defaultClass(tx); class != "" {
				o.Spec.StorageClassName = &class
			}
		}
	case *appsv1.Deployment:
		orSet(&o.Spec.Replicas, 1)
		orSet(&o.Spec.RevisionHistoryLimit, 10)
		orSet(&o.Spec.ProgressDeadlineSeconds, 600)
		setDefault(&o.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
		if o.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
			orSet(&o.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
			orSet(&o.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
			orSet(&o.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
		}
		podDefaults(&o.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		orSet(&o.Spec.Replicas, 1)
		podDefaults(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		orSet(&o.Spec.Replicas, 1)
		orSet(&o.Spec.RevisionHistoryLimit, 10)
		setDefault(&o.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
		setDefault(&o.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
		podDefaults(&o.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		orSet(&o.Spec.RevisionHistoryLimit, 10)
		setDefault(&o.Spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
		podDefaults(&o.Spec.Template.Spec)
	case *batchv1.Job:
		jobDefaults(&o.Spec)
		if o.Spec.Selector == nil && o.UID != "" {
			labels := map[string]string{batchv1.ControllerUidLabel: string(o.UID), batchv1.JobNameLabel: o.Name}
			if o.Spec.Template.Labels == nil {
				o.Spec.Template.Labels = map[string]string{}
			}
			for k, v := range labels {
				o.Spec.Template.Labels[k] = v
			}
			o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(o.UID)}}
		}
	case *batchv1.CronJob:
		setDefault(&o.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
		orSet(&o.Spec.Suspend, false)
		orSet(&o.Spec.SuccessfulJobsHistoryLimit, 3)
		orSet(&o.Spec.FailedJobsHistoryLimit, 1)
		podDefaults(&o.Spec.JobTemplate.Spec.Template.Spec)
	case *networkingv1.NetworkPolicy:
		if len(o.Spec.PolicyTypes) == 0 {
			o.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
			if len(o.Spec.Egress) > 0 {
				o.Spec.PolicyTypes = append(o.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
			}
		}
	}
}

func jobDefaults(s *batchv1.JobSpec) {
	orSet(&s.BackoffLimit, 6)
	orSet(&s.Completions, 1)
	orSet(&s.Parallelism, 1)
	orSet(&s.Suspend, false)
	orSet(&s.CompletionMode, batchv1.NonIndexedCompletion)
	podDefaults(&s.Template.Spec)
}

func podDefaults(s *corev1.PodSpec) {
	setDefault(&s.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&s.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&s.SchedulerName, corev1.DefaultSchedulerName)
	orSet(&s.TerminationGracePeriodSeconds, 30)
	orSet(&s.SecurityContext, corev1.PodSecurityContext{})
	orSet(&s.EnableServiceLinks, true)
	for i := range s.InitContainers {
		containerDefaults(&s.InitContainers[i])
	}
	for i := range s.Containers {
		containerDefaults(&s.Containers[i])
	}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		switch {
		case v.ConfigMap != nil:
			orSet(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
		case v.Secret != nil:
			orSet(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
		}
	}
}

func containerDefaults(c *corev1.Container) {
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if last := c.Image[strings.LastIndex(c.Image, "/")+1:]; !strings.Contains(last, ":") || strings.HasSuffix(last, ":latest") {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for name, limit := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; !ok {
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			c.Resources.Requests[name] = limit.DeepCopy()
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p == nil {
			continue
		}
		setDefault(&p.TimeoutSeconds, 1)
		setDefault(&p.PeriodSeconds, 10)
		setDefault(&p.SuccessThreshold, 1)
		setDefault(&p.FailureThreshold, 3)
		if p.HTTPGet != nil {
			setDefault(&p.HTTPGet.Path, "/")
			setDefault(&p.HTTPGet.Scheme, corev1.URISchemeHTTP)
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			setDefault(&from.FieldRef.APIVersion, "v1")
		}
	}
}

func qosClass(s *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, any := true, false
	for _, c := range s.Containers {
		if len(c.Resources.Limits)+len(c.Resources.Requests) > 0 {
			any = true
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, ok := c.Resources.Limits[name]
			request, asked := c.Resources.Requests[name]
			if !ok || asked && request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case guaranteed:
		return corev1.PodQOSGuaranteed
	case any:
		return corev1.PodQOSBurstable
	}
	return corev1.PodQOSBestEffort
}

func serviceDefaults(tx store.Tx, s *corev1.Service) {
	setDefault(&s.Spec.Type, corev1.ServiceTypeClusterIP)
	setDefault(&s.Spec.SessionAffinity, corev1.ServiceAffinityNone)
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	orSet(&s.Spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	orSet(&s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		setDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if s.Spec.ClusterIP == "" {
		s.Spec.ClusterIP = freeClusterIP(tx)
	}
	if len(s.Spec.ClusterIPs) == 0 {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
}

// freeClusterIP returns the lowest address of 10.96.0.0/16 that no service holds.
func freeClusterIP(tx store.Tx) string {
	taken := map[string]bool{}
	for _, s := range store.List[*corev1.Service](tx, resource.Services, "") {
		taken[s.Spec.ClusterIP] = true
	}
	for i := 1; ; i++ {
		if ip := fmt.Sprintf("10.96.%d.%d", i/256%256, i%256); !taken[ip] || i > 65535 {
			return ip
		}
	}
}
