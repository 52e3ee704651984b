package policy

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// boundExpr matches the refusals of the API server's limit plug-in.
var boundExpr = regexp.MustCompile(`(?:minimum|maximum) \S+ usage per (?:Container|Pod) is|` +
	`\S+ max limit to request ratio per (?:Container|Pod) is`)

// checkLimitRanges explains LimitRangeViolated: pods that a namespace's LimitRange rejects.
func checkLimitRanges(x *Index) []engine.Finding {
	var found []engine.Finding
	for _, r := range x.rejected() {
		if !boundExpr.MatchString(r.said) {
			continue
		}
		f := engine.Finding{Class: engine.LimitRangeViolated, Object: r.Ref, Confidence: engine.High, Evidence: []string{r.lacks()}}
		violated := x.violations(r.Workload)
		if len(violated) == 0 {
			f.Confidence = engine.Medium
			f.Evidence = append(f.Evidence, "The API server says "+engine.QuoteCode(r.said)+".")
			f.Cause = "The pods break a bound of a LimitRange of the namespace, so the API server makes none."
			f.Text = fmt.Sprintf("Choose requests and limits for %s.", engine.RefTitle(r.Ref))
		}
		for i, v := range violated {
			f.Evidence = append(f.Evidence, v.evidence)
			if i == 0 {
				f.Cause, f.Text = v.cause, fmt.Sprintf("Choose requests and limits for %s within the bound.", engine.RefTitle(r.Ref))
				offerWithinBound(&f, r.Workload, v)
			}
		}
		found = append(found, f)
	}
	return found
}

// violation is a bound that a workload's pods violate.
type violation struct {
	evidence, cause string
	container       string // empty: the pod as a whole
	kind            corev1.ResourceName
	bound           resource.Quantity
	// low: more would be needed, not less. ratio: limit and request are too far apart.
	low, ratio bool
}

// violations compares a workload's template with the LimitRanges of its namespace, as the API server does on creation
// of a pod.
func (x *Index) violations(w *engine.Workload) []violation {
	if w.Template == nil {
		return nil
	}
	var all []violation
	for i := range x.LimitRanges {
		l := &x.LimitRanges[i]
		if l.Namespace != w.Ref.Namespace {
			continue
		}
		for _, item := range l.Spec.Limits {
			switch item.Type {
			case corev1.LimitTypeContainer:
				for _, list := range [][]corev1.Container{w.Template.Spec.InitContainers, w.Template.Spec.Containers} {
					for j := range list {
						c := &list[j]
						own := x.defaulted(l.Namespace, c.Resources)
						all = append(all, checkBounds(l.Name, item, own, "container "+engine.QuoteCode(c.Name), c.Name)...)
					}
				}
			case corev1.LimitTypePod:
				pod := &corev1.Pod{Spec: *w.Template.Spec.DeepCopy()}
				for j := range pod.Spec.Containers {
					pod.Spec.Containers[j].Resources = x.defaulted(l.Namespace, pod.Spec.Containers[j].Resources)
				}
				own := corev1.ResourceRequirements{
					Requests: helper.PodRequests(pod, helper.PodResourcesOptions{}),
					Limits:   helper.PodLimits(pod, helper.PodResourcesOptions{}),
				}
				all = append(all, checkBounds(l.Name, item, own, "the pod", "")...)
			}
		}
	}
	slices.SortFunc(all, func(a, b violation) int { return cmp.Compare(a.evidence, b.evidence) })
	return all
}

// defaulted returns a container with the namespace's defaults filled in.
func (x *Index) defaulted(namespace string, own corev1.ResourceRequirements) corev1.ResourceRequirements {
	own = *own.DeepCopy()
	if own.Requests == nil {
		own.Requests = corev1.ResourceList{}
	}
	if own.Limits == nil {
		own.Limits = corev1.ResourceList{}
	}
	fill := func(to, from corev1.ResourceList) {
		for kind, amount := range from {
			if _, ok := to[kind]; !ok {
				to[kind] = amount
			}
		}
	}
	// A limit without a request is also the request, before any default.
	fill(own.Requests, own.Limits)
	for i := range x.LimitRanges {
		if l := &x.LimitRanges[i]; l.Namespace == namespace {
			for _, item := range l.Spec.Limits {
				if item.Type == corev1.LimitTypeContainer {
					fill(own.Requests, item.DefaultRequest)
					fill(own.Limits, item.Default)
				}
			}
		}
	}
	return own
}

// checkBounds compares amounts with one item of a LimitRange.
func checkBounds(limitRange string, item corev1.LimitRangeItem, own corev1.ResourceRequirements, where, container string) []violation {
	var all []violation
	for _, kind := range slices.Sorted(maps.Keys(item.Min)) {
		least := item.Min[kind]
		name, value, stated := "request", own.Requests[kind], engine.HasResource(own.Requests, kind)
		if limit, ok := own.Limits[kind]; stated && value.Cmp(least) >= 0 && ok && limit.Cmp(least) < 0 {
			name, value = "limit", limit
		}
		if stated && value.Cmp(least) >= 0 {
			continue
		}
		all = append(all, violation{kind: kind, bound: least, low: true, container: container,
			evidence: fmt.Sprintf("LimitRange %s: minimum %s per %s is %s; %s has %s.", engine.QuoteCode(limitRange), kind, item.Type, least.String(), where, describeAmount(name, value, stated)),
			cause:    fmt.Sprintf("The %s %s of %s is %s the minimum of the LimitRange %s, so the API server makes no such pod.", kind, name, where, describeBreach("below", stated), engine.QuoteCode(limitRange))})
	}
	for _, kind := range slices.Sorted(maps.Keys(item.Max)) {
		most := item.Max[kind]
		name, value, stated := "limit", own.Limits[kind], engine.HasResource(own.Limits, kind)
		if request, ok := own.Requests[kind]; stated && value.Cmp(most) <= 0 && ok && request.Cmp(most) > 0 {
			name, value = "request", request
		}
		if stated && value.Cmp(most) <= 0 {
			continue
		}
		all = append(all, violation{kind: kind, bound: most, container: container,
			evidence: fmt.Sprintf("LimitRange %s: maximum %s per %s is %s; %s has %s.", engine.QuoteCode(limitRange), kind, item.Type, most.String(), where, describeAmount(name, value, stated)),
			cause:    fmt.Sprintf("The %s %s of %s is %s the maximum of the LimitRange %s, so the API server makes no such pod.", kind, name, where, describeBreach("above", stated), engine.QuoteCode(limitRange))})
	}
	for _, kind := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		most := item.MaxLimitRequestRatio[kind]
		limit, request := own.Limits[kind], own.Requests[kind]
		if !request.IsZero() && !limit.IsZero() && limit.AsApproximateFloat64() <= most.AsApproximateFloat64()*request.AsApproximateFloat64() {
			continue
		}
		all = append(all, violation{kind: kind, bound: most, ratio: true, container: container,
			evidence: fmt.Sprintf("LimitRange %s: the %s limit per %s may be %s times the request; %s has %s and %s.", engine.QuoteCode(limitRange), kind, item.Type, most.String(), where,
				describeAmount("limit", limit, engine.HasResource(own.Limits, kind)), describeAmount("request", request, engine.HasResource(own.Requests, kind))),
			cause: fmt.Sprintf("The %s limit of %s is more times its request than the LimitRange %s lets be, so the API server makes no such pod.", kind, where, engine.QuoteCode(limitRange))})
	}
	return all
}

func describeAmount(name string, value resource.Quantity, stated bool) string {
	if !stated {
		return "no " + name
	}
	return name + " " + value.String()
}

// describeBreach describes how an amount violates a limit.
func describeBreach(broken string, stated bool) string {
	if !stated {
		return "not stated and cannot be held to"
	}
	return broken
}

// offerWithinBound offers the bound itself if one container violates it.
func offerWithinBound(f *engine.Finding, w *engine.Workload, v violation) {
	if !w.Patchable() || v.ratio || v.container == "" || v.kind != corev1.ResourceCPU && v.kind != corev1.ResourceMemory {
		return
	}
	c := engine.FindContainer(w.Template, v.container)
	o := engine.NewOperation(operation.SetResources, w.Ref)
	o.Container = v.container
	bound := map[string]string{string(v.kind): v.bound.String()}
	request, requested := c.Resources.Requests[v.kind]
	limit, limited := c.Resources.Limits[v.kind]
	switch {
	case v.low:
		if !requested || request.Cmp(v.bound) < 0 {
			o.Requests = bound
		}
		if limited && limit.Cmp(v.bound) < 0 {
			o.Limits = bound
		}
	default:
		if !limited || limit.Cmp(v.bound) > 0 {
			o.Limits = bound
		}
		if requested && request.Cmp(v.bound) > 0 {
			o.Requests = bound
		}
	}
	if f.Fix = engine.ValidFix(o); f.Fix != nil {
		f.Text = fmt.Sprintf("Give container %s the bound itself, %s, if that is enough for it; else the bound has to change.", engine.QuoteCode(v.container), v.bound.String())
	}
}
