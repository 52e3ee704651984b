package admission

import (
	"strings"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
)

func validateObject(kind resource.Kind, o resource.Object) field.ErrorList {
	nameRule := validation.ValidateNameFunc(validation.NameIsDNSSubdomain)
	switch o.(type) {
	case *corev1.Namespace:
		nameRule = validation.NameIsDNSLabel
	case *corev1.Service:
		nameRule = validation.NameIsDNS1035Label
	}
	if kind.GroupVersionKind.Group == "rbac.authorization.k8s.io" {
		nameRule = func(string, bool) []string { return nil } // names such as system:node are lawful there
	}
	errs := validation.ValidateObjectMetaAccessor(o, kind.Namespaced, nameRule, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	switch o := o.(type) {
	case *corev1.Pod:
		errs = append(errs, validatePodSpec(&o.Spec, spec)...)
	case *corev1.Service:
		errs = append(errs, validateService(&o.Spec, spec)...)
	case *corev1.PersistentVolumeClaim:
		if len(o.Spec.AccessModes) == 0 {
			errs = append(errs, field.Required(spec.Child("accessModes"), "at least 1 access mode is required"))
		}
		if _, ok := o.Spec.Resources.Requests[corev1.ResourceStorage]; !ok {
			errs = append(errs, field.Required(spec.Child("resources", "requests").Key("storage"), ""))
		}
	case *corev1.ConfigMap:
		for key := range o.Data {
			for _, msg := range utilvalidation.IsConfigMapKey(key) {
				errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, msg))
			}
		}
	case *appsv1.Deployment:
		errs = append(errs, notNegative(o.Spec.Replicas, spec.Child("replicas"))...)
		errs = append(errs, validateTemplate(o.Spec.Selector, &o.Spec.Template, spec)...)
		errs = append(errs, onlyRestart(&o.Spec.Template, spec, corev1.RestartPolicyAlways)...)
	case *appsv1.ReplicaSet:
		errs = append(errs, notNegative(o.Spec.Replicas, spec.Child("replicas"))...)
		errs = append(errs, validateTemplate(o.Spec.Selector, &o.Spec.Template, spec)...)
	case *appsv1.StatefulSet:
		errs = append(errs, notNegative(o.Spec.Replicas, spec.Child("replicas"))...)
		// A claim template is a volume too, though no pod template names it.
		whole := o.Spec.Template.DeepCopy()
		for _, claim := range o.Spec.VolumeClaimTemplates {
			whole.Spec.Volumes = append(whole.Spec.Volumes, corev1.Volume{Name: claim.Name})
		}
		errs = append(errs, validateTemplate(o.Spec.Selector, whole, spec)...)
		errs = append(errs, onlyRestart(&o.Spec.Template, spec, corev1.RestartPolicyAlways)...)
	case *appsv1.DaemonSet:
		errs = append(errs, validateTemplate(o.Spec.Selector, &o.Spec.Template, spec)...)
		errs = append(errs, onlyRestart(&o.Spec.Template, spec, corev1.RestartPolicyAlways)...)
	case *batchv1.Job:
		errs = append(errs, validateJob(&o.Spec, spec)...)
	case *batchv1.CronJob:
		if _, err := cron.ParseStandard(o.Spec.Schedule); err != nil {
			errs = append(errs, field.Invalid(spec.Child("schedule"), o.Spec.Schedule, err.Error()))
		}
		errs = append(errs, validateJob(&o.Spec.JobTemplate.Spec, spec.Child("jobTemplate", "spec"))...)
	case *policyv1.PodDisruptionBudget:
		if o.Spec.MinAvailable != nil && o.Spec.MaxUnavailable != nil {
			errs = append(errs, field.Invalid(spec, "minAvailable and maxUnavailable", "minAvailable and maxUnavailable cannot be both set"))
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		if o.Spec.MaxReplicas < 1 {
			errs = append(errs, field.Invalid(spec.Child("maxReplicas"), o.Spec.MaxReplicas, "must be greater than 0"))
		} else if o.Spec.MinReplicas != nil && *o.Spec.MinReplicas > o.Spec.MaxReplicas {
			errs = append(errs, field.Invalid(spec.Child("maxReplicas"), o.Spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
		}
		if o.Spec.ScaleTargetRef.Name == "" {
			errs = append(errs, field.Required(spec.Child("scaleTargetRef", "name"), ""))
		}
	}
	return errs
}

func notNegative(n *int32, path *field.Path) field.ErrorList {
	if n == nil {
		return nil
	}
	return validation.ValidateNonnegativeField(int64(*n), path)
}

func onlyRestart(t *corev1.PodTemplateSpec, path *field.Path, allowed ...corev1.RestartPolicy) field.ErrorList {
	for _, p := range allowed {
		if t.Spec.RestartPolicy == p {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path.Child("template", "spec", "restartPolicy"), t.Spec.RestartPolicy, allowed)}
}

func validateTemplate(selector *metav1.LabelSelector, t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if selector == nil {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	} else {
		errs = append(errs, metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(path.Child("selector"), selector, "empty selector is invalid for deployment"))
		}
		if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && !s.Matches(labels.Set(t.Labels)) {
			errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), t.Labels, "`selector` does not match template `labels`"))
		}
	}
	errs = append(errs, metavalidation.ValidateLabels(t.Labels, path.Child("template", "metadata", "labels"))...)
	return append(errs, validatePodSpec(&t.Spec, path.Child("template", "spec"))...)
}

func validateJob(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := notNegative(s.BackoffLimit, path.Child("backoffLimit"))
	errs = append(errs, notNegative(s.Parallelism, path.Child("parallelism"))...)
	errs = append(errs, notNegative(s.Completions, path.Child("completions"))...)
	errs = append(errs, validatePodSpec(&s.Template.Spec, path.Child("template", "spec"))...)
	return append(errs, onlyRestart(&s.Template, path, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
}

func validatePodSpec(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	volumes := map[string]bool{}
	for _, v := range s.Volumes {
		volumes[v.Name] = true
	}
	seen := map[string]bool{}
	check := func(list []corev1.Container, path *field.Path) {
		for i := range list {
			at := path.Index(i)
			errs = append(errs, validateContainer(&list[i], volumes, at)...)
			if seen[list[i].Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), list[i].Name))
			}
			seen[list[i].Name] = true
		}
	}
	check(s.InitContainers, path.Child("initContainers"))
	check(s.Containers, path.Child("containers"))
	for i, v := range s.Volumes {
		for _, msg := range utilvalidation.IsDNS1123Label(v.Name) {
			errs = append(errs, field.Invalid(path.Child("volumes").Index(i).Child("name"), v.Name, msg))
		}
	}
	return errs
}

func validateContainer(c *corev1.Container, volumes map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		for _, msg := range utilvalidation.IsDNS1123Label(c.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), c.Name, msg))
		}
	}
	if c.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	} else if strings.TrimSpace(c.Image) != c.Image {
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	for i, p := range c.Ports {
		for _, msg := range utilvalidation.IsValidPortNum(int(p.ContainerPort)) {
			errs = append(errs, field.Invalid(path.Child("ports").Index(i).Child("containerPort"), p.ContainerPort, msg))
		}
	}
	for i, e := range c.Env {
		at := path.Child("env").Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			for _, msg := range utilvalidation.IsRelaxedEnvVarName(e.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), e.Name, msg))
			}
		}
		if e.Value != "" && e.ValueFrom != nil {
			errs = append(errs, field.Invalid(at.Child("valueFrom"), "", "may not be specified when `value` is not empty"))
		}
	}
	for i, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			errs = append(errs, field.NotFound(path.Child("volumeMounts").Index(i).Child("name"), m.Name))
		}
	}
	for name, request := range c.Resources.Requests {
		if request.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Child("resources", "requests").Key(string(name)), request.String(), "must be greater than or equal to 0"))
		}
		if limit, ok := c.Resources.Limits[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("resources", "requests"), request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	return errs
}

func validateService(s *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Ports) == 0 && s.ClusterIP != corev1.ClusterIPNone && s.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(path.Child("ports"), ""))
	}
	for i, p := range s.Ports {
		at := path.Child("ports").Index(i)
		for _, msg := range utilvalidation.IsValidPortNum(int(p.Port)) {
			errs = append(errs, field.Invalid(at.Child("port"), p.Port, msg))
		}
		if len(s.Ports) > 1 && p.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if p.TargetPort.Type == 0 {
			for _, msg := range utilvalidation.IsValidPortNum(int(p.TargetPort.IntVal)) {
				errs = append(errs, field.Invalid(at.Child("targetPort"), p.TargetPort.IntVal, msg))
			}
		} else {
			for _, msg := range utilvalidation.IsValidPortName(p.TargetPort.StrVal) {
				errs = append(errs, field.Invalid(at.Child("targetPort"), p.TargetPort.StrVal, msg))
			}
		}
	}
	return append(errs, metavalidation.ValidateLabels(s.Selector, path.Child("selector"))...)
}

func validateUpdate(old, o resource.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessorUpdate(o, old, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	fixed := func(was, is any, path *field.Path) {
		errs = append(errs, validation.ValidateImmutableField(is, was, path)...)
	}
	switch o := o.(type) {
	case *appsv1.Deployment:
		fixed(old.(*appsv1.Deployment).Spec.Selector, o.Spec.Selector, spec.Child("selector"))
	case *appsv1.ReplicaSet:
		fixed(old.(*appsv1.ReplicaSet).Spec.Selector, o.Spec.Selector, spec.Child("selector"))
	case *appsv1.DaemonSet:
		fixed(old.(*appsv1.DaemonSet).Spec.Selector, o.Spec.Selector, spec.Child("selector"))
	case *appsv1.StatefulSet:
		was := old.(*appsv1.StatefulSet).Spec.DeepCopy()
		was.Replicas, was.Template, was.UpdateStrategy = o.Spec.Replicas, o.Spec.Template, o.Spec.UpdateStrategy
		was.PersistentVolumeClaimRetentionPolicy, was.MinReadySeconds, was.Ordinals = o.Spec.PersistentVolumeClaimRetentionPolicy, o.Spec.MinReadySeconds, o.Spec.Ordinals
		was.RevisionHistoryLimit = o.Spec.RevisionHistoryLimit
		if !equality.Semantic.DeepEqual(*was, o.Spec) {
			errs = append(errs, field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
		}
	case *batchv1.Job:
		was := old.(*batchv1.Job)
		fixed(was.Spec.Selector, o.Spec.Selector, spec.Child("selector"))
		fixed(was.Spec.Template, o.Spec.Template, spec.Child("template"))
		fixed(was.Spec.Completions, o.Spec.Completions, spec.Child("completions"))
	case *corev1.PersistentVolumeClaim:
		was := old.(*corev1.PersistentVolumeClaim).Spec.DeepCopy()
		was.Resources.Requests = o.Spec.Resources.Requests
		if was.VolumeName == "" {
			was.VolumeName = o.Spec.VolumeName
		}
		if !equality.Semantic.DeepEqual(*was, o.Spec) {
			errs = append(errs, field.Forbidden(spec, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
		}
	case *corev1.Service:
		was := old.(*corev1.Service)
		if was.Spec.Type != corev1.ServiceTypeExternalName && o.Spec.Type != corev1.ServiceTypeExternalName {
			fixed(was.Spec.ClusterIP, o.Spec.ClusterIP, spec.Child("clusterIP"))
		}
	case *corev1.Secret:
		was := old.(*corev1.Secret)
		fixed(was.Type, o.Type, field.NewPath("type"))
		if was.Immutable != nil && *was.Immutable && !equality.Semantic.DeepEqual(was.Data, o.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
		}
	case *corev1.Pod:
		errs = append(errs, validatePodUpdate(old.(*corev1.Pod), o, spec)...)
	}
	return errs
}

// validatePodUpdate lets a pod's images, tolerations and deadlines change, and its node be set once.
func validatePodUpdate(old, o *corev1.Pod, path *field.Path) field.ErrorList {
	was := old.Spec.DeepCopy()
	if len(was.Containers) != len(o.Spec.Containers) || len(was.InitContainers) != len(o.Spec.InitContainers) {
		return field.ErrorList{field.Forbidden(path.Child("containers"), "pod updates may not add or remove containers")}
	}
	for i := range was.Containers {
		was.Containers[i].Image = o.Spec.Containers[i].Image
	}
	for i := range was.InitContainers {
		was.InitContainers[i].Image = o.Spec.InitContainers[i].Image
	}
	was.ActiveDeadlineSeconds, was.Tolerations = o.Spec.ActiveDeadlineSeconds, o.Spec.Tolerations
	was.TerminationGracePeriodSeconds = o.Spec.TerminationGracePeriodSeconds
	if was.NodeName == "" {
		was.NodeName = o.Spec.NodeName
	}
	if equality.Semantic.DeepEqual(*was, o.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")}
}
