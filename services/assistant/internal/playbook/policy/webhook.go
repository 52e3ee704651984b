package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Messages of the API server about webhooks and its own policies.
var (
	callExpr   = regexp.MustCompile(`failed calling webhook "([^"]+)": (.*)`)
	denyExpr   = regexp.MustCompile(`admission webhook "([^"]+)" denied the request(?:: (.*)| without explanation)`)
	policyExpr = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' denied request: (.*)`)
)

// callFaults are the reasons why a call to a webhook fails, most certain first.
var callFaults = []struct {
	expr        *regexp.Regexp
	cause, text string
}{
	{regexp.MustCompile(`service "[^"]+" not found`), "its service does not exist", "Bring the service of the webhook back"},
	{regexp.MustCompile(`no endpoints available`), "its service has no endpoints: no pod behind it is ready", "Repair the pods behind the webhook's service"},
	{regexp.MustCompile(`x509|certificate|tls:`), "the API server does not trust its certificate", "Renew the webhook's certificate, or the caBundle of its configuration"},
	{regexp.MustCompile(`deadline exceeded|[Tt]imeout|timed out`), "it does not answer in time", "Look at the log and the load of the pods behind the webhook, and at the network policies before them"},
	{regexp.MustCompile(`connection refused|no route to host|connection reset|EOF`), "nothing listens where its service leads", "Repair the pods behind the webhook's service, or the target port of the service"},
	{regexp.MustCompile(`no such host`), "its host name is not known", "Correct the URL in the webhook's configuration"},
}

// webhook is one webhook of a configuration.
type webhook struct {
	config  operation.Ref
	service *admissionv1.ServiceReference // nil: a URL
	policy  admissionv1.FailurePolicyType
}

// webhooks returns all webhooks of the cluster, by name.
func (x *Index) webhooks() map[string]webhook {
	all := map[string]webhook{}
	ref := func(kind, name string) operation.Ref {
		return operation.Ref{Group: admissionv1.GroupName, Version: "v1", Kind: kind, Name: name}
	}
	for i := range x.Validating {
		for _, h := range x.Validating[i].Webhooks {
			all[h.Name] = webhook{ref("ValidatingWebhookConfiguration", x.Validating[i].Name), h.ClientConfig.Service, engine.ValueOr(h.FailurePolicy, admissionv1.Fail)}
		}
	}
	for i := range x.Mutating {
		for _, h := range x.Mutating[i].Webhooks {
			all[h.Name] = webhook{ref("MutatingWebhookConfiguration", x.Mutating[i].Name), h.ClientConfig.Service, engine.ValueOr(h.FailurePolicy, admissionv1.Fail)}
		}
	}
	return all
}

// checkAdmission explains AdmissionWebhook: pods that a webhook or a policy rejects.
func checkAdmission(x *Index) []engine.Finding {
	all := slices.Clone(x.rejected())
	for i := range x.CronJobs {
		c := &x.CronJobs[i]
		ref := operation.Ref{Group: "batch", Version: "v1", Kind: "CronJob", Namespace: c.Namespace, Name: c.Name}
		if said := x.failedCreate(c.UID); said != "" {
			all = append(all, rejection{Workload: &engine.Workload{Ref: ref}, said: said, want: 1})
		}
	}
	hooks := x.webhooks()
	broken := map[string]*engine.Finding{}
	var found []engine.Finding
	for _, r := range all {
		if m := callExpr.FindStringSubmatch(r.said); m != nil {
			hook, ok := hooks[m[1]]
			if !ok && !x.Unread["validatingwebhookconfigurations"] && !x.Unread["mutatingwebhookconfigurations"] {
				continue // removed since: the next attempt succeeds
			}
			f := broken[m[1]]
			if f == nil {
				f = &engine.Finding{Class: engine.AdmissionWebhook, Object: hook.config, Confidence: engine.High}
				if !ok {
					f.Object = r.Ref
				}
				explainCalling(f, x, m[1], m[2], hook)
				broken[m[1]] = f
			}
			explainKeptOut(f, x, r)
			continue
		}
		f := engine.Finding{Class: engine.AdmissionWebhook, Object: r.Ref, Confidence: engine.High, Evidence: []string{r.lacks(), "The API server says " + engine.QuoteCode(r.said) + "."}}
		if m := denyExpr.FindStringSubmatch(r.said); m != nil {
			f.Cause = fmt.Sprintf("The admission webhook %s works, and does not allow these pods.", engine.QuoteCode(m[1]))
		} else if m := policyExpr.FindStringSubmatch(r.said); m != nil {
			f.Cause = fmt.Sprintf("The admission policy %s does not allow these pods.", engine.QuoteCode(m[1]))
		} else {
			continue
		}
		f.Text = fmt.Sprintf("Change %s to follow the rule that the message names; the rule's owner knows what it requires.", engine.RefTitle(r.Ref))
		fix, text := engine.UndoRollout(r.Workload, func(older *corev1.PodTemplateSpec) bool { return !engine.EqualValues(older.Spec, r.Template.Spec) })
		if fix != nil {
			f.Fix, f.Text = fix, text
		}
		found = append(found, f)
	}
	for _, hook := range slices.Sorted(maps.Keys(broken)) {
		found = append(found, *broken[hook])
	}
	return found
}

// explainCalling explains why a webhook cannot be called.
func explainCalling(f *engine.Finding, x *Index, called, said string, hook webhook) {
	f.Evidence = append(f.Evidence, "The API server says "+engine.QuoteCode(said)+".")
	cause, text := "the call fails", "Look at the log of the pods behind the webhook"
	for _, fault := range callFaults {
		if fault.expr.MatchString(said) {
			cause, text = fault.cause, fault.text
			break
		}
	}
	f.Cause = fmt.Sprintf("The admission webhook %s cannot be called, for %s; so the requests that it must review are refused.", engine.QuoteCode(called), cause)
	f.Text = text + ". Only the webhook's owner can decide whether requests may pass without it (failurePolicy)."
	if hook.service == nil {
		return
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("It is served by the service %s in namespace %s, and its failurePolicy is %s.", engine.QuoteCode(hook.service.Name), engine.QuoteCode(hook.service.Namespace), hook.policy))
	if s := x.ServiceByName[engine.Name{Namespace: hook.service.Namespace, Name: hook.service.Name}]; s != nil {
		f.Because = append(f.Because, engine.ServiceRef(s))
		for _, pod := range x.Selected(s.Namespace, s.Spec.Selector) {
			f.Because = append(f.Because, x.WorkloadOf(pod).Ref)
		}
	}
}

// explainKeptOut adds a workload that a webhook rejects.
func explainKeptOut(f *engine.Finding, x *Index, r rejection) {
	f.Evidence = append(f.Evidence, r.lacks())
	if ns := r.Ref.Namespace; !slices.Contains(f.Namespaces, ns) {
		f.Namespaces = append(f.Namespaces, ns)
	}
	f.Effects = append(f.Effects, engine.Effect{Of: r.Ref, Classes: []engine.Class{engine.RolloutStuck, engine.StatefulSetStuck, engine.JobFailed, engine.CronJobIdle}})
	if r.Template == nil {
		return
	}
	for _, s := range x.Fronts().May(r.Ref.Namespace, r.Template.Labels) {
		if engine.HasAll(r.Template.Labels, s.Spec.Selector) {
			f.Effects = append(f.Effects, engine.Effect{Of: engine.ServiceRef(s), Classes: []engine.Class{engine.ServiceWithoutEndpoint}})
		}
	}
}
