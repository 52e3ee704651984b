package coverage

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// rule describes how a symptom is covered: the classes of findings that may cause it, and the aspects that no object
// shows.
type rule struct {
	classes []engine.Class
	// status means that the status of an object always shows the symptom.
	status bool
	// unmeasured is the aspect that only a request or a measurement shows, with the command for that; empty: none.
	unmeasured, command string
	// usage means that the rules need the metrics API.
	usage bool
}

const (
	trafficCommand = "kubectl port-forward service/NAME 8080:PORT"
	lookupCommand  = "kubectl exec POD -- nslookup NAME"
	accessCommand  = "kubectl auth can-i --list --as=system:serviceaccount:NAMESPACE:NAME"
)

// rules maps each symptom that a question can name to its coverage. A symptom that is not here is a gap.
var rules = map[question.Symptom]rule{
	question.Crash:   {classes: []engine.Class{engine.CrashLoop, engine.OutOfMemory, engine.LivenessProbe, engine.InitContainer, engine.Sidecar, engine.DatabaseRefuses}, status: true},
	question.Memory:  {classes: []engine.Class{engine.OutOfMemory}},
	question.Pending: {classes: []engine.Class{engine.PendingResources, engine.PendingPlacement, engine.ClaimUnbound, engine.VolumeNotAttached, engine.QuotaExceeded}, status: true},
	question.NotStarting: {classes: []engine.Class{engine.ImagePull, engine.MissingObject, engine.MissingKey, engine.PendingResources, engine.PendingPlacement, engine.ClaimUnbound, engine.VolumeNotAttached, engine.QuotaExceeded,
		engine.LimitRangeViolated, engine.InitContainer, engine.MissingServiceAccount, engine.AdmissionWebhook, engine.StatefulSetStuck, engine.CrashLoop}},
	question.Image: {classes: []engine.Class{engine.ImagePull}, status: true},
	question.Traffic: {classes: []engine.Class{engine.ReadinessProbe, engine.ServiceWithoutEndpoint, engine.ServicePort, engine.IngressBackend, engine.GatewayListener, engine.RouteBackend, engine.CertificateNotIssued, engine.CertificateIssuer, engine.TLSSecret,
		engine.PolicyBlocks, engine.NameResolution, engine.ReadinessGate}, unmeasured: "whether a request is answered now", command: trafficCommand},
	question.Terminating: {classes: []engine.Class{engine.StuckTerminating}, status: true},
	question.Scaling:     {classes: []engine.Class{engine.AutoscalerIdle, engine.QuotaExceeded}},
	question.Drain:       {classes: []engine.Class{engine.BudgetDeadlock}},
	question.Init:        {classes: []engine.Class{engine.InitContainer, engine.Sidecar}, status: true},
	question.Access:      {classes: []engine.Class{engine.AccessForbidden}, unmeasured: "whether the request is allowed now", command: accessCommand},
	question.Names:       {classes: []engine.Class{engine.NameResolution, engine.PolicyBlocks}, unmeasured: "whether a name is looked up from the pod now", command: lookupCommand},
	question.Job:         {classes: []engine.Class{engine.JobFailed, engine.CronJobIdle}},
	question.Rollout:     {classes: []engine.Class{engine.RolloutStuck, engine.ApplicationNotSynced, engine.ReleaseNotDeployed, engine.ImagePull, engine.CrashLoop, engine.ReadinessProbe, engine.QuotaExceeded}},
	question.Node:        {classes: []engine.Class{engine.NodeTrouble}},
	question.Volume:      {classes: []engine.Class{engine.ClaimUnbound, engine.VolumeNotAttached}, unmeasured: "how full the volume is", command: "kubectl exec POD -- df -h"},
	question.Config:      {classes: []engine.Class{engine.MissingObject, engine.MissingKey}},
	question.Probe:       {classes: []engine.Class{engine.LivenessProbe, engine.ReadinessProbe}},
	question.Quota:       {classes: []engine.Class{engine.QuotaExceeded, engine.LimitRangeViolated}},
	question.Webhook:     {classes: []engine.Class{engine.AdmissionWebhook}},
	question.Slow:        {classes: []engine.Class{engine.CPULimit}, usage: true, unmeasured: "how long requests take", command: "kubectl top pods --containers"},
	question.Version:     {classes: []engine.Class{engine.RolloutStuck, engine.ImagePull}},
	question.Certificate: {classes: []engine.Class{engine.CertificateNotIssued, engine.CertificateIssuer, engine.TLSSecret}, unmeasured: "the certificate that clients get", command: "openssl s_client -connect HOST:443 -servername HOST"},
	question.Lost:        {classes: []engine.Class{engine.PendingPlacement, engine.PendingResources, engine.NodeTrouble, engine.QuotaExceeded}},
	question.Address:     {classes: []engine.Class{engine.ServiceWithoutAddress}},
}

// needs lists the kinds, besides pods and events, without which the rules of a class are incomplete.
var needs = map[engine.Class][]string{
	engine.MissingObject: {"configmaps", "secrets"}, engine.MissingKey: {"configmaps", "secrets"}, engine.PendingResources: {"nodes"}, engine.PendingPlacement: {"nodes"},
	engine.ClaimUnbound: {"persistentvolumeclaims", "persistentvolumes", "storageclasses"}, engine.QuotaExceeded: {"resourcequotas"}, engine.LimitRangeViolated: {"limitranges"},
	engine.ServiceWithoutEndpoint: {"services", "endpointslices"}, engine.ServicePort: {"services", "endpointslices"}, engine.IngressBackend: {"ingresses", "services"},
	engine.GatewayListener: {"gateways"}, engine.RouteBackend: {"httproutes"}, engine.CertificateIssuer: {"issuers", "clusterissuers"},
	engine.ApplicationNotSynced: {"applications"}, engine.ReleaseNotDeployed: {"secrets"}, engine.CertificateNotIssued: {"certificates", "certificaterequests", "issuers", "clusterissuers", "orders", "challenges"}, engine.TLSSecret: {"secrets"}, engine.PolicyBlocks: {"networkpolicies", "services"},
	engine.NameResolution: {"networkpolicies", "services"}, engine.NodeTrouble: {"nodes", "leases"}, engine.AutoscalerIdle: {"horizontalpodautoscalers"}, engine.BudgetDeadlock: {"poddisruptionbudgets"},
	engine.JobFailed: {"jobs"}, engine.CronJobIdle: {"cronjobs", "jobs"}, engine.AccessForbidden: {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
	engine.MissingServiceAccount: {"serviceaccounts"}, engine.RolloutStuck: {"deployments", "replicasets"}, engine.StatefulSetStuck: {"statefulsets", "services"},
	engine.AdmissionWebhook: {"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}, engine.ServiceWithoutAddress: {"services"},
}

// Unmeasured describes the aspects of some symptoms that only a request or a measurement shows, as a paragraph; empty:
// none.
func Unmeasured(symptoms []question.Symptom) string {
	var gaps []Gap
	for _, s := range symptoms {
		if rule := rules[s]; rule.unmeasured != "" {
			gaps = append(gaps, Gap{rule.unmeasured, rule.command})
		}
	}
	return describeGaps(gaps)
}

// Classes returns the classes of findings that may cause a symptom.
func Classes(s question.Symptom) []engine.Class { return rules[s].classes }

// rulesWithout names the classes whose rules need any of some kinds.
func rulesWithout(unread map[string]bool) string {
	var names []string
	for class, kinds := range needs {
		if slices.ContainsFunc(kinds, func(kind string) bool { return unread[kind] }) {
			names = append(names, class.String())
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Ask closes the symptoms of a question that rules cover. Aspects that only a measurement shows stay open. asserted
// means that the question states a fault: then aspects that no object shows stay open, too, since rules cannot refute a
// person's observation. complaint is the wording of a question whose fault matches none of the symptoms.
func (r *Record) Ask(symptoms []question.Symptom, asserted bool, complaint string) {
	shown := false // a status would show it
	for _, s := range symptoms {
		rule, covered := rules[s]
		shown = shown || rule.status
		switch {
		case !covered:
			r.AddGap("a symptom for which there is no rule", "")
		case rule.usage: // readiness does not show the speed
			r.AddGap(rule.unmeasured, rule.command+flagsOf(r.namespace))
		}
		if rule.usage && r.snap.Usage == nil {
			r.AddGap("what containers use: the cluster has no metrics API", "kubectl top pods --containers"+flagsOf(r.namespace))
		}
	}
	if shown {
		return
	}
	open := len(r.gaps)
	for _, s := range symptoms {
		if rule := rules[s]; rule.unmeasured != "" && !rule.usage {
			r.AddGap(rule.unmeasured, rule.command)
		}
	}
	if asserted && len(r.gaps) == open {
		r.AddGap("what "+engine.QuoteCode(complaint)+" stands for: no rule covers it, and only the program or who uses it shows it", "")
	}
}
