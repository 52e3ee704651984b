package investigate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/coverage"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// builder builds the operations of one change.
type builder struct {
	*topic
	change  question.Change
	words   string
	out     []proposal
	missing []string // what the user must say or choose first
	// wrong caches the findings by namespace: they are needed for each possible object.
	wrong map[string][]engine.Finding
}

func (b *builder) miss(format string, a ...any) {
	b.missing = append(b.missing, fmt.Sprintf(format, a...))
}

// add appends an operation if it is valid.
func (b *builder) add(op operation.Operation, format string, a ...any) {
	op = operation.Normalize(op)
	if err := op.Validate(); err != nil {
		b.miss("That cannot be done: %s", err)
		return
	}
	b.out = append(b.out, proposal{op, fmt.Sprintf(format, a...)})
}

var workloads = []string{"Deployment", "StatefulSet", "DaemonSet"}

// takes lists the kinds that a verb applies to; empty means every kind.
var takes = map[operation.Verb][]string{
	operation.Scale: {"Deployment", "StatefulSet"}, operation.Autoscale: {"Deployment", "StatefulSet"},
	operation.Restart: append(slices.Clone(workloads), "Pod"), operation.Undo: workloads, operation.SetImage: workloads,
	operation.SetResources: workloads, operation.SetEnv: workloads, operation.Expose: {"Deployment", "StatefulSet", "Pod"},
	operation.Pause: {"Deployment", "CronJob", "Job"}, operation.Resume: {"CronJob", "Job", "Deployment"}, operation.Suspend: {"CronJob", "Job"},
	operation.RunJob: {"CronJob"}, operation.Evict: {"Pod"}, operation.Cordon: {"Node"}, operation.Uncordon: {"Node"}, operation.Drain: {"Node"}, operation.Taint: {"Node"},
}

func (b *builder) build() {
	switch b.change.Verb {
	case "":
		b.fix()
		return
	case operation.Apply, operation.Create, operation.Replace, operation.Patch:
		b.miss("Send it as a complete kubectl line, for example `kubectl %s -f - <<'EOF'` followed by the manifest and `EOF`.", strings.Replace(string(b.change.Verb), "apply", "apply --server-side", 1))
		return
	case operation.Delete:
		if len(b.change.Mentions) == 0 && b.change.Several && b.change.Kind != "" {
			b.add(operation.Operation{Verb: operation.Delete, Kind: b.change.Kind, All: true, Namespace: b.namespace}, "This deletes every %s %s.", b.change.Kind, b.where())
			return
		}
	}
	for _, r := range b.chosen() {
		b.one(r)
	}
}

// chosen returns the objects of the change: those named, or the only one that fits.
func (b *builder) chosen() []operation.Ref {
	kinds := takes[b.change.Verb]
	if !b.takesKind(kinds) {
		b.miss("A %s cannot be changed that way; it works on %s.", b.change.Kind, strings.ToLower(strings.Join(kinds, ", ")))
		return nil
	}
	var fit []operation.Ref
	for _, r := range b.objects {
		if r, ok := b.as(r, kinds); ok && !slices.Contains(fit, r) {
			fit = append(fit, r)
		}
	}
	switch {
	case len(fit) > 0:
		return b.unambiguous(fit)
	case len(b.change.Mentions) > 0 && len(b.objects) > 0:
		works := ""
		if len(kinds) > 0 {
			works = "; it works on " + strings.ToLower(strings.Join(kinds, ", "))
		}
		if b.change.Verb == operation.Suspend {
			works += fmt.Sprintf(". To stop a workload, scale it to 0: `scale %s to 0`", b.objects[0].Name)
		}
		b.miss("%s cannot be changed that way%s.", upperFirst(refTitles(b.objects)), works)
		return nil
	case len(b.change.Mentions) > 0:
		b.miss("%s is a namespace. Name a workload in it, or say `%s all deployments in %s`.", report.Code(b.change.Mentions[0].Name), b.change.Verb, b.change.Mentions[0].Name)
		return nil
	case len(kinds) == 0:
		b.miss("Name the object with its kind, for example `%s deployment api`.", b.change.Verb)
		return nil
	}
	return b.only(kinds)
}

// takesKind reports whether the verb applies to the kind that was said. Without this check, a request for another kind
// would change what was spoken of before. A pod or service counts as its workload, a job as the cron job that makes it.
func (b *builder) takesKind(kinds []string) bool {
	said := b.change.Kind
	return said == "" || len(kinds) == 0 || said == "pod" || said == "service" || said == "job" && slices.Contains(kinds, "CronJob") ||
		slices.ContainsFunc(kinds, func(kind string) bool { return strings.EqualFold(kind, said) })
}

// as returns the object that a verb applies to instead of the one that was named: the workload of a pod, or the
// workload with the name of a service.
func (b *builder) as(r operation.Ref, kinds []string) (operation.Ref, bool) {
	if len(kinds) == 0 || slices.Contains(kinds, r.Kind) {
		return r, b.change.Kind == "" || len(kinds) > 0 || strings.EqualFold(b.change.Kind, r.Kind)
	}
	if r.Kind == "Pod" {
		for i := range b.snap.Pods {
			if p := &b.snap.Pods[i]; p.Name == r.Name && p.Namespace == r.Namespace {
				owner := b.view().Owners()(p)
				return owner, slices.Contains(kinds, owner.Kind)
			}
		}
	}
	for _, o := range nameableObjects(b.snap) {
		if o.ref.Name == r.Name && o.ref.Namespace == r.Namespace && slices.Contains(kinds, o.ref.Kind) {
			return o.ref, true
		}
	}
	return r, false
}

// unambiguous keeps one object for each name that was said. If two fit, the user must choose.
func (b *builder) unambiguous(fit []operation.Ref) []operation.Ref {
	var kept []operation.Ref
	byName := map[string][]operation.Ref{}
	for _, r := range fit {
		byName[r.Name] = append(byName[r.Name], r)
	}
	for _, r := range fit {
		all := byName[r.Name]
		if all[0] != r {
			continue
		}
		// People mean the first kind, but deletion needs certainty.
		differs := slices.ContainsFunc(all, func(o operation.Ref) bool { return o.Namespace != r.Namespace })
		if differs || len(all) > 1 && len(takes[b.change.Verb]) == 0 {
			b.miss("%s is ambiguous: there are %s. Name one, with kind and namespace.", report.Code(r.Name), refTitles(all))
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// only picks the object of a change that names none: the one in the state that the
// change ends, else the only one there is.
func (b *builder) only(kinds []string) []operation.Ref {
	var all, wanted []operation.Ref
	for _, o := range nameableObjects(b.snap) {
		if !slices.Contains(kinds, o.ref.Kind) || !withinNamespace(o.ref, b.namespace) || o.ref.Kind == "Pod" || b.change.Kind != "" && !strings.EqualFold(b.change.Kind, o.ref.Kind) && b.change.Kind != "pod" && b.change.Kind != "service" {
			continue
		}
		all = append(all, o.ref)
		if b.calls(o.ref) {
			wanted = append(wanted, o.ref)
		}
	}
	list := all
	if everyone := b.change.Several && b.change.Verb == operation.Restart; len(wanted) > 0 && !everyone {
		list = wanted
	}
	if b.change.Described && len(wanted) == 0 {
		b.miss("The playbooks find nothing %s that fits the description. Name the object.", b.where())
		return nil
	}
	switch {
	case len(list) == 1, b.change.Several && len(list) > 0:
		return list
	case len(list) == 0:
		b.miss("Nothing %s fits: this works on %s.", b.where(), strings.ToLower(strings.Join(kinds, ", ")))
	default:
		b.miss("Name one of these: %s.", refTitles(list))
	}
	return nil
}

// calls reports whether an object is in the state that the change remedies.
func (b *builder) calls(r operation.Ref) bool {
	switch b.change.Verb {
	case operation.Resume, operation.Suspend, operation.Pause:
		return b.stopped(r) == (b.change.Verb == operation.Resume)
	case operation.Undo:
		older, _ := b.revisions(r)
		return len(older) > 0 && b.troubled(r)
	case operation.Scale:
		return false
	}
	return b.troubled(r)
}

// troubled reports whether a finding is about an object.
func (b *builder) troubled(r operation.Ref) bool {
	classes := []engine.Class{}
	switch b.change.Verb {
	case operation.SetResources:
		classes = slices.Concat(coverage.Classes(question.Memory), []engine.Class{engine.PendingResources, engine.LimitRangeViolated})
	case operation.SetImage:
		classes = coverage.Classes(question.Image)
	case operation.Restart, operation.Undo:
		for _, s := range b.change.Symptoms { // the symptoms describe the object
			classes = append(classes, coverage.Classes(s)...)
		}
	}
	return slices.ContainsFunc(b.findings(r.Namespace), func(f engine.Finding) bool {
		return plainRef(f.Object) == plainRef(r) && (len(classes) == 0 || slices.Contains(classes, f.Class) || slices.Contains(classes, f.As))
	})
}

// findings returns what is wrong in a namespace.
func (b *builder) findings(namespace string) []engine.Finding {
	all, ok := b.wrong[namespace]
	if !ok {
		all = playbook.Findings(b.snap, namespace)
		b.wrong[namespace] = all
	}
	return all
}

// outlasting are the classes of faults whose cause is in a spec or around a workload, not in its running process.
var outlasting = []engine.Class{
	engine.CrashLoop, engine.OutOfMemory, engine.ImagePull, engine.MissingObject, engine.MissingKey, engine.PendingResources, engine.PendingPlacement, engine.ClaimUnbound,
	engine.QuotaExceeded, engine.LimitRangeViolated, engine.MissingServiceAccount, engine.AdmissionWebhook,
}

// lastingCause returns, after a blank, the cause of a workload's trouble that new pods would share; empty if none is
// known.
func (b *builder) lastingCause(r operation.Ref) string {
	for _, f := range b.findings(r.Namespace) {
		if plainRef(f.Object) == plainRef(r) && f.Confidence > engine.Low && (slices.Contains(outlasting, f.Class) || slices.Contains(outlasting, f.As)) {
			will := "will not fix it, since its new pods meet"
			if mayEnd(f) {
				will = "may not fix it, if its new pods meet"
			}
			return fmt.Sprintf(" A restart alone %s the same: %s", will, engine.LowerFirst(f.Cause))
		}
	}
	return ""
}

// mayEnd reports whether the processes of a workload may have caused a fault: a crash without a certain cause, or
// memory that filled up over time.
func mayEnd(f engine.Finding) bool {
	ends := []engine.Class{engine.CrashLoop, engine.OutOfMemory}
	return f.Confidence < engine.High && (slices.Contains(ends, f.Class) || slices.Contains(ends, f.As))
}

// stopped reports whether a cron job is suspended or a rollout paused.
func (b *builder) stopped(r operation.Ref) bool {
	for i := range b.snap.CronJobs {
		if c := &b.snap.CronJobs[i]; r.Kind == "CronJob" && c.Name == r.Name && c.Namespace == r.Namespace {
			return c.Spec.Suspend != nil && *c.Spec.Suspend
		}
	}
	for i := range b.snap.Jobs {
		if j := &b.snap.Jobs[i]; r.Kind == "Job" && j.Name == r.Name && j.Namespace == r.Namespace {
			return j.Spec.Suspend != nil && *j.Spec.Suspend
		}
	}
	d := b.deployment(r)
	return d != nil && d.Spec.Paused
}

func (b *builder) deployment(r operation.Ref) *appsv1.Deployment {
	for i := range b.snap.Deployments {
		if d := &b.snap.Deployments[i]; r.Kind == "Deployment" && d.Name == r.Name && d.Namespace == r.Namespace {
			return d
		}
	}
	return nil
}

// template returns the pod template of a workload.
func (b *builder) template(r operation.Ref) *corev1.PodTemplateSpec {
	for _, w := range (report.View{Snapshot: b.snap, Namespace: r.Namespace, Objects: []operation.Ref{r}}).Workloads() {
		if w.Ref.Kind == r.Kind {
			return w.Template
		}
	}
	return nil
}

// revision is one earlier state of a deployment.
type revision struct {
	number int64
	set    *appsv1.ReplicaSet
}

// revisions returns the earlier revisions of a deployment, newest first.
func (b *builder) revisions(r operation.Ref) (older []revision, known bool) {
	if r.Kind != "Deployment" {
		return nil, false
	}
	for i := range b.snap.ReplicaSets {
		set := &b.snap.ReplicaSets[i]
		owner := metav1.GetControllerOf(set)
		n, err := strconv.ParseInt(set.Annotations["deployment.kubernetes.io/revision"], 10, 64)
		if owner != nil && err == nil && owner.Kind == r.Kind && owner.Name == r.Name && set.Namespace == r.Namespace {
			older = append(older, revision{n, set})
		}
	}
	slices.SortFunc(older, func(x, y revision) int { return int(y.number - x.number) })
	return older[min(1, len(older)):], true
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
