package admission

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

func defaultClass(tx store.Tx) string {
	for _, c := range tx.List(resource.StorageClasses, "") {
		if c.GetAnnotations()[defaultClassAnnotation] == "true" {
			return c.GetName()
		}
	}
	return ""
}

// admitPod refuses pods of absent service accounts and applies the namespace's limit ranges.
func admitPod(tx store.Tx, pod *corev1.Pod) error {
	if _, ok := tx.Get(resource.ServiceAccounts, pod.Namespace, pod.Spec.ServiceAccountName); !ok {
		return apierrors.NewForbidden(resource.Pods, pod.Name, fmt.Errorf("error looking up service account %s/%s: serviceaccount %q not found", pod.Namespace, pod.Spec.ServiceAccountName, pod.Spec.ServiceAccountName))
	}
	var broken []string
	for _, lr := range store.List[*corev1.LimitRange](tx, resource.LimitRanges, pod.Namespace) {
		for _, item := range lr.Spec.Limits {
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			for i := range pod.Spec.Containers {
				broken = append(broken, limitContainer(&pod.Spec.Containers[i], item)...)
			}
		}
	}
	if len(broken) > 0 {
		slices.Sort(broken)
		text := strings.Join(broken, ", ")
		if len(broken) > 1 {
			text = "[" + text + "]"
		}
		return apierrors.NewForbidden(resource.Pods, pod.Name, fmt.Errorf("%s", text))
	}
	return nil
}

func limitContainer(c *corev1.Container, item corev1.LimitRangeItem) []string {
	fill := func(list *corev1.ResourceList, defaults corev1.ResourceList) {
		for name, q := range defaults {
			if _, ok := (*list)[name]; !ok {
				if *list == nil {
					*list = corev1.ResourceList{}
				}
				(*list)[name] = q.DeepCopy()
			}
		}
	}
	// A container's own limit is used as its request before the namespace's default is.
	fill(&c.Resources.Requests, c.Resources.Limits)
	fill(&c.Resources.Limits, item.Default)
	fill(&c.Resources.Requests, item.DefaultRequest)
	fill(&c.Resources.Requests, c.Resources.Limits)
	var broken []string
	for name, most := range item.Max {
		limit, ok := c.Resources.Limits[name]
		switch {
		case !ok:
			broken = append(broken, fmt.Sprintf("maximum %s usage per Container is %s.  No limit is specified", name, most.String()))
		case limit.Cmp(most) > 0:
			broken = append(broken, fmt.Sprintf("maximum %s usage per Container is %s, but limit is %s", name, most.String(), limit.String()))
		}
	}
	for name, least := range item.Min {
		request, ok := c.Resources.Requests[name]
		switch {
		case !ok:
			broken = append(broken, fmt.Sprintf("minimum %s usage per Container is %s.  No request is specified", name, least.String()))
		case request.Cmp(least) < 0:
			broken = append(broken, fmt.Sprintf("minimum %s usage per Container is %s, but request is %s", name, least.String(), request.String()))
		}
	}
	return broken
}

// Usage sums what counts against a quota in a namespace.
func Usage(tx store.Tx, namespace string) corev1.ResourceList {
	used := corev1.ResourceList{}
	for _, pod := range store.List[*corev1.Pod](tx, resource.Pods, namespace) {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			addQuantities(used, quotaCost(resource.Of(resource.Pods), pod))
		}
	}
	for _, gr := range Counted {
		for _, o := range tx.List(gr, namespace) {
			addQuantities(used, quotaCost(resource.Of(gr), o))
		}
	}
	return used
}

// Counted are the resources beside pods that count against quotas.
var Counted = []schema.GroupResource{resource.Services, resource.ConfigMaps, resource.Secrets, resource.Claims, resource.Deployments, resource.Jobs, resource.CronJobs}

func addQuantities(sum, more corev1.ResourceList) {
	for name, q := range more {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
}

// quotaCost returns the amounts that one object counts against a quota.
func quotaCost(kind resource.Kind, o resource.Object) corev1.ResourceList {
	one := *apiresource.NewQuantity(1, apiresource.DecimalSI)
	counted := corev1.ResourceName("count/" + kind.GroupResource().String())
	switch o := o.(type) {
	case *corev1.Pod:
		sum := corev1.ResourceList{corev1.ResourcePods: one, counted: one}
		for _, c := range o.Spec.Containers {
			for name, q := range c.Resources.Requests {
				addQuantities(sum, corev1.ResourceList{corev1.ResourceName("requests." + string(name)): q, name: q})
			}
			for name, q := range c.Resources.Limits {
				addQuantities(sum, corev1.ResourceList{corev1.ResourceName("limits." + string(name)): q})
			}
		}
		return sum
	case *corev1.PersistentVolumeClaim:
		q := o.Spec.Resources.Requests[corev1.ResourceStorage]
		return corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: one, counted: one, corev1.ResourceRequestsStorage: q}
	}
	if kind.GroupVersionKind.Group == "" {
		return corev1.ResourceList{corev1.ResourceName(kind.Plural): one, counted: one}
	}
	return corev1.ResourceList{counted: one}
}

func admitQuota(tx store.Tx, kind resource.Kind, o resource.Object) error {
	quotas := store.List[*corev1.ResourceQuota](tx, resource.Quotas, o.GetNamespace())
	if len(quotas) == 0 || !kind.Namespaced {
		return nil
	}
	asked, used := quotaCost(kind, o), Usage(tx, o.GetNamespace())
	for _, quota := range quotas {
		var wanted, taken, limited, missing []string
		for name, hard := range quota.Spec.Hard {
			q, ok := asked[name]
			if !ok {
				if _, pod := o.(*corev1.Pod); pod && (strings.HasPrefix(string(name), "requests.") || strings.HasPrefix(string(name), "limits.")) && !strings.HasSuffix(string(name), "storage") {
					missing = append(missing, string(name))
				}
				continue
			}
			have := used[name]
			total := have.DeepCopy()
			total.Add(q)
			if total.Cmp(hard) > 0 {
				wanted = append(wanted, fmt.Sprintf("%s=%s", name, q.String()))
				taken = append(taken, fmt.Sprintf("%s=%s", name, have.String()))
				limited = append(limited, fmt.Sprintf("%s=%s", name, hard.String()))
			}
		}
		if len(missing) > 0 {
			slices.Sort(missing)
			return apierrors.NewForbidden(kind.GroupResource(), o.GetName(), fmt.Errorf("failed quota: %s: must specify %s", quota.Name, strings.Join(missing, ",")))
		}
		if len(wanted) > 0 {
			slices.Sort(wanted)
			slices.Sort(taken)
			slices.Sort(limited)
			return apierrors.NewForbidden(kind.GroupResource(), o.GetName(), fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s", quota.Name, strings.Join(wanted, ","), strings.Join(taken, ","), strings.Join(limited, ",")))
		}
	}
	return nil
}
