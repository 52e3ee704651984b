package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// The messages of the API server's quota plug-in. Their names lead to the objects; amounts are taken from these.
var (
	exceededExpr = regexp.MustCompile(`exceeded quota: ([a-z0-9.-]+), requested: (.*?), used: (.*?), limited: (\S+)`)
	demandedExpr = regexp.MustCompile(`failed quota: ([a-z0-9.-]+): must specify (.+)`)
)

// checkQuotas explains QuotaExceeded: pods that a namespace's quota rejects.
func checkQuotas(x *Index) []engine.Finding {
	var found []engine.Finding
	for _, r := range x.rejected() {
		f := engine.Finding{Class: engine.QuotaExceeded, Object: r.Ref, Confidence: engine.High, Evidence: []string{r.lacks()}}
		if m := exceededExpr.FindStringSubmatch(r.said); m != nil {
			explainExceeded(&f, x, r, m)
		} else if m := demandedExpr.FindStringSubmatch(r.said); m != nil {
			explainDemanded(&f, m[1], m[2], r)
		} else {
			continue
		}
		found = append(found, f)
	}
	return found
}

func (x *Index) quota(namespace, quota string) *corev1.ResourceQuota {
	for i := range x.Quotas {
		if q := &x.Quotas[i]; q.Namespace == namespace && q.Name == quota {
			return q
		}
	}
	return nil
}

// parseAmounts parses a list such as pods=1,requests.cpu=500m.
func parseAmounts(list string) map[string]resource.Quantity {
	all := map[string]resource.Quantity{}
	for pair := range strings.SplitSeq(list, ",") {
		kind, amount, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if q, err := resource.ParseQuantity(amount); err == nil {
			all[kind] = q
		}
	}
	return all
}

func explainExceeded(f *engine.Finding, x *Index, r rejection, said []string) {
	asked, used, hard := parseAmounts(said[2]), parseAmounts(said[3]), parseAmounts(said[4])
	now := false // the quota is as full now as it was then
	q := x.quota(r.Ref.Namespace, said[1])
	for _, kind := range slices.Sorted(maps.Keys(hard)) {
		want, have, most := asked[kind], used[kind], hard[kind]
		if q != nil {
			most, have = q.Status.Hard[corev1.ResourceName(kind)], q.Status.Used[corev1.ResourceName(kind)]
		}
		total := have.DeepCopy()
		total.Add(want)
		now = now || total.Cmp(most) > 0
		f.Evidence = append(f.Evidence, fmt.Sprintf("Quota %s: %s used %s of %s, one more pod asks %s.", engine.QuoteCode(said[1]), engine.QuoteCode(kind), have.String(), most.String(), want.String()))
	}
	if scope := scopeText(q); scope != "" {
		f.Evidence = append(f.Evidence, scope)
	}
	kinds := engine.QuoteCodes(slices.Sorted(maps.Keys(hard)))
	f.Cause = fmt.Sprintf("The quota %s of the namespace is used up for %s, so the API server makes no more pods.", engine.QuoteCode(said[1]), kinds)
	f.Text = fmt.Sprintf("Choose how many pods %s should have or what each should request, free what another workload uses, or raise the quota.", engine.RefTitle(r.Ref))
	switch {
	case q == nil && x.Unread["resourcequotas"]:
		f.Evidence = append(f.Evidence, "These are the numbers of the API server's answer; the quota itself could not be read.")
	case q == nil:
		f.Confidence = engine.Low
		f.Cause = fmt.Sprintf("The quota %s blocked pods and has since been deleted; the controller retries automatically.", engine.QuoteCode(said[1]))
		f.Text = "Wait a few minutes."
		return
	case !now:
		f.Confidence = engine.Medium
		f.Cause = fmt.Sprintf("The quota %s was used up for %s when the controller last tried to create a pod. There is room again, and the controller retries automatically.", engine.QuoteCode(said[1]), kinds)
		f.Text = "Wait a few minutes."
		return
	}
	offerWithinQuota(f, x, r, hard)
}

// scopeText describes the scopes that limit which pods a quota counts.
func scopeText(q *corev1.ResourceQuota) string {
	if q == nil {
		return ""
	}
	var all []string
	for _, s := range q.Spec.Scopes {
		all = append(all, string(s))
	}
	if q.Spec.ScopeSelector != nil {
		for _, e := range q.Spec.ScopeSelector.MatchExpressions {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.ScopeName, e.Operator, strings.Join(e.Values, ","))))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("The quota counts only pods in the scope %s, so others are still let in.", engine.QuoteCodes(all))
}

// offerWithinQuota offers the workload's earlier state: its requests, or its present number of pods.
func offerWithinQuota(f *engine.Finding, x *Index, r rejection, hard map[string]resource.Quantity) {
	for _, kind := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		_, whole := hard[string(kind)]
		_, requests := hard["requests."+string(kind)]
		if (whole || requests) && r.Template != nil {
			f.OfferOldRequest(r.Workload, kind, &corev1.Pod{Spec: r.Template.Spec})
		}
	}
	if f.Fix != nil {
		return
	}
	if d := x.Deployment(r.Ref); d != nil && d.Status.Replicas >= r.Replicas {
		f.Evidence = append(f.Evidence, fmt.Sprintf("It has its %s already: a rollout makes a new one before an old one goes.", engine.CountNoun(int(r.Replicas), "pod", "pods")))
		f.Text = "Let the rollout take an old pod away first (maxSurge 0, maxUnavailable 1), or raise the quota."
		return
	}
	if r.have > 0 && (r.Ref.Kind == "Deployment" || r.Ref.Kind == "StatefulSet") && !x.Autoscaled(r.Ref) {
		o := engine.NewOperation(operation.Scale, r.Ref)
		o.Replicas = &r.have
		if f.Fix = engine.ValidFix(o); f.Fix != nil {
			f.Text += fmt.Sprintf(" Within the quota it can have the %d that it has.", r.have)
		}
	}
}

// explainDemanded explains a quota that admits only pods with requests or limits.
func explainDemanded(f *engine.Finding, quota, what string, r rejection) {
	f.Evidence = append(f.Evidence, "The API server says the pods must specify "+engine.QuoteCode(what)+".")
	f.Cause = fmt.Sprintf("The quota %s counts resources that the pods do not state, and admits no such pod.", engine.QuoteCode(quota))
	f.Text = fmt.Sprintf("Choose requests and limits for %s, or give the namespace a LimitRange with defaults.", engine.RefTitle(r.Ref))
}
