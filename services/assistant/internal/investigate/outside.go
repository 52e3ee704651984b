package investigate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// outsideSystems are the systems around a cluster that people ask about. Their data cannot be read through the
// cluster's API.
var outsideSystems = func() map[string]string {
	systems := map[string]string{}
	for what, names := range map[string]string{
		"the cloud's own console and API": "aws amazon ec2 eks rds s3 iam elb cloudwatch route53 ecr azure aks gcp gke bigquery cloudsql gcs cloudflare digitalocean hetzner",
		"that service's own account":      "datadog newrelic sentry pagerduty opsgenie splunk dynatrace snowflake stripe twilio slack jira confluence github gitlab bitbucket jenkins circleci",
	} {
		for name := range strings.FieldsSeq(names) {
			systems[name] = what
		}
	}
	return systems
}()

// operators are systems that keep their state in the cluster, in custom resources: the API group, and the kind to list.
var operators = map[string][2]string{
	"keda": {"keda.sh", "scaledobjects.keda.sh"}, "argocd": {"argoproj.io", "applications.argoproj.io"}, "istio": {"networking.istio.io", "virtualservices.networking.istio.io"},
	"flux": {"kustomize.toolkit.fluxcd.io", "kustomizations.kustomize.toolkit.fluxcd.io"}, "certmanager": {"cert-manager.io", "certificates.cert-manager.io"},
	"cert-manager": {"cert-manager.io", "certificates.cert-manager.io"}, "karpenter": {"karpenter.sh", "nodepools.karpenter.sh"},
}

// sayOutside answers a question about a system outside the cluster: there is no access to it, and what the cluster
// shows of it. done is false if the question names something in the cluster as well.
func (w *work) sayOutside(ctx context.Context, a question.Ask) (done bool, err error) {
	if backupExpr.MatchString(a.Words) && !faultyExpr.MatchString(a.Words) && a.Intent != question.Request && a.Intent != question.Advice {
		return w.sayBackups(ctx)
	}
	name := ""
	for word := range strings.FieldsSeq(a.Words) {
		if _, known := operators[word]; known || outsideSystems[word] != "" {
			name = word
			break
		}
	}
	if name == "" || a.Intent == question.Request {
		return false, nil
	}
	s, err := w.snapshot(ctx, "")
	if err != nil || s == nil {
		return false, err
	}
	names := namesOf(s)
	if names.has(name) {
		return false, nil // a workload or namespace of that name is meant
	}
	if operator, known := operators[name]; known {
		for served := range s.Served {
			if group, _, _ := strings.Cut(served, "/"); group == operator[0] {
				w.say(fmt.Sprintf("No playbook covers %s, so its health is not judged here. Its objects can be read: %s.", report.Code(name), report.Code("kubectl get "+operator[1]+" -A")))
				return !namesSomething(a, names, name), nil
			}
		}
		w.say(fmt.Sprintf("The API group %s is not served here, so I cannot read the objects of %s; pods may still run parts of it.%s", report.Code(operator[0]), report.Code(name), insteadOf(s)))
		return !namesSomething(a, names, name), nil
	}
	w.say(fmt.Sprintf("I have no access to %s: I read the cluster's API alone. Look there with %s.%s", report.Code(name), outsideSystems[name], insteadOf(s)))
	return !namesSomething(a, names, name), nil
}

var (
	backupExpr = question.Pattern(`^(is|are|was|were|do|does|did|can|could|when|how|who|where|which|what)\b.*\b(backed up|backups?|back ups|restore (a|the|our|my|from)? ?(backups?|dumps?|snapshots?|data))\b`)
	faultyExpr = question.Pattern(`\b(fail\w*|wrong|stuck|broken|crash\w*|not run\w*|hang\w*)\b|\bjobs?\b`)
)

// servesByItself are the kinds of objects whose state a question with their name may be about. Jobs, claims and
// accounts of a backup are part of the backup.
var servesByItself = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "Service": true}

// sayBackups answers what the cluster shows about backups: no object shows whether data is backed up.
func (w *work) sayBackups(ctx context.Context) (done bool, err error) {
	s, err := w.snapshot(ctx, "")
	if err != nil || s == nil {
		return false, err
	}
	// If something is called backup, the question is about its state.
	if slices.ContainsFunc(s.Namespaces, func(n corev1.Namespace) bool { return strings.Contains(n.Name, "backup") }) || slices.ContainsFunc(nameableObjects(s), func(o thing) bool {
		return servesByItself[o.ref.Kind] && strings.Contains(o.ref.Name, "backup")
	}) {
		return false, nil
	}
	var list []string
	for i := range s.CronJobs {
		if c := &s.CronJobs[i]; strings.Contains(c.Name, "backup") || strings.Contains(c.Name, "dump") || strings.Contains(c.Name, "snapshot") {
			list = append(list, fmt.Sprintf("CronJob %s in namespace %s, schedule %s", report.Code(c.Name), report.Code(c.Namespace), report.Code(c.Spec.Schedule)))
		}
	}
	text := "No object of the cluster shows whether data is backed up, or whether a backup can be restored: I do not know."
	switch {
	case len(list) > 0:
		text += " Judging by the name, this may be related: " + strings.Join(list, "; ") + "."
	case s.Unread["cronjobs"]:
		text += " CronJobs could not be read."
	default:
		text += " I see no CronJob whose name mentions backups."
	}
	w.say(text)
	return true, nil
}

// namesSomething reports whether a question names an object of the cluster beside an outside system.
func namesSomething(a question.Ask, names clusterNames, outside string) bool {
	return a.Namespace != "" || slices.ContainsFunc(a.Mentions, func(m question.Mention) bool { return m.Name != outside && names.has(m.Name) })
}

// insteadOf lists what the cluster itself shows of outside systems.
func insteadOf(s *engine.Snapshot) string {
	const most = 5
	var list []string
	for i := range s.Services {
		svc := &s.Services[i]
		switch {
		case svc.Spec.Type == corev1.ServiceTypeExternalName:
			list = append(list, fmt.Sprintf("Service %s in namespace %s leads outside, to %s", report.Code(svc.Name), report.Code(svc.Namespace), report.Code(svc.Spec.ExternalName)))
		case svc.Spec.Type == corev1.ServiceTypeLoadBalancer:
			address := "has no address yet"
			if len(svc.Status.LoadBalancer.Ingress) > 0 {
				address = "has an address"
			}
			list = append(list, fmt.Sprintf("Service %s in namespace %s requests a load balancer and %s", report.Code(svc.Name), report.Code(svc.Namespace), address))
		}
	}
	kinds := map[string]bool{}
	for i := range s.Nodes {
		if scheme, _, ok := strings.Cut(s.Nodes[i].Spec.ProviderID, "://"); ok {
			kinds[scheme] = true
		}
	}
	if len(kinds) > 0 {
		list = append(list, "the nodes come from provider "+joinCodes(slices.Sorted(maps.Keys(kinds))))
	}
	for i := range s.Autoscalers {
		h := &s.Autoscalers[i]
		list = append(list, fmt.Sprintf("autoscaler %s in namespace %s wants %d of %d to %d replicas", report.Code(h.Name), report.Code(h.Namespace), h.Status.DesiredReplicas, minReplicas(h.Spec.MinReplicas), h.Spec.MaxReplicas))
	}
	if len(list) == 0 {
		autoscaler := "and no autoscaler"
		if s.Unread["horizontalpodautoscalers"] {
			autoscaler = "and not all autoscalers could be read"
		}
		return " What the cluster itself shows of an outside system: no Service of type ExternalName or LoadBalancer, " + autoscaler + "."
	}
	if len(list) > most {
		list = append(list[:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	return " What the cluster itself shows:\n\n- " + strings.Join(list, "\n- ")
}

func minReplicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
