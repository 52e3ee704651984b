package investigate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/coverage"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// one builds the operation for one object. It requests a missing value, unless the spec or an earlier revision has it.
func (b *builder) one(r operation.Ref) {
	op := newOperation(b.change.Verb, r)
	name := upperFirst(refTitle(r))
	switch b.change.Verb {
	case operation.Scale:
		if b.change.Count == nil {
			b.miss("Give the number of replicas for %s, for example `scale %s to 3`.", refTitle(r), r.Name)
			return
		}
		if op.Replicas = b.replicas(r); op.Replicas == nil {
			return
		}
		b.add(op, "%s %s", describeStanding(b.snap, r), fmt.Sprintf("It is to have %d replicas.", *op.Replicas))
	case operation.Undo:
		b.undo(r, op)
	case operation.Restart:
		if r.Kind == "Pod" {
			op.Verb = operation.Evict
			b.add(op, "A pod is not restarted but evicted; %s.", podAftermath(b.topic, r))
			return
		}
		b.add(op, "%s gets new pods, a few at a time.%s", name, b.lastingCause(r))
	case operation.Pause:
		if r.Kind != "Deployment" {
			op.Verb = operation.Suspend
		}
		b.add(op, "%s is stopped until it is resumed.", name)
	case operation.Resume, operation.Suspend:
		b.resume(r, op)
	case operation.RunJob:
		op.NewName = r.Name[:min(len(r.Name), 40)] + "-manual-" + b.snap.Taken.UTC().Format("060102-150405")
		b.add(op, "%s is run once now, as job %s.", name, report.Code(op.NewName))
	case operation.SetImage:
		b.image(r, op)
	case operation.SetResources:
		b.resources(r, op)
	case operation.SetEnv:
		b.env(r, op)
	case operation.Label, operation.Annotate:
		if len(b.change.Set)+len(b.change.Remove) == 0 {
			b.miss("Name the %[1]s and its value, for example `%[1]s %[2]s team=web`, or `%[1]s %[2]s team-` to remove it.", strings.TrimSuffix(string(b.change.Verb), "e"), r.Name)
			return
		}
		op.Set, op.Remove = b.change.Set, b.change.Remove
		b.add(op, "%s gets or loses what was named.", name)
	case operation.Expose:
		op.Port = b.change.Port
		b.add(op, "%s gets a service.", name)
	case operation.Autoscale:
		op.Min, op.CPUPercent = b.change.Min, b.change.Percent
		if b.change.Max != nil {
			op.Max = *b.change.Max
		}
		b.add(op, "%s gets an autoscaler.", name)
	case operation.Taint:
		b.taint(r, op)
	case operation.Drain:
		op.Namespace, op.IgnoreDaemonSets = "", true // their pods stay, and would refuse every drain
		b.add(op, "%s is cordoned and its pods are evicted; those of daemon sets stay.", name)
	case operation.Cordon, operation.Uncordon:
		op.Namespace = ""
		b.add(op, "%s is to be %sed.", name, b.change.Verb)
	default:
		b.add(op, "%s is to be changed by %s.", name, b.change.Verb)
	}
}

// replicas returns the wanted number of replicas; nil, with a message, if the words and the spec do not give it.
func (b *builder) replicas(r operation.Ref) *int32 {
	if b.change.Step == 0 {
		return b.change.Count
	}
	now, ok := b.wanted(r)
	if !ok {
		b.miss("The current number of replicas of %s could not be read. Give the new number, for example `scale %s to 3`.", refTitle(r), r.Name)
		return nil
	}
	to := now + int32(b.change.Step)**b.change.Count
	if to < 0 {
		b.miss("%s is set to %d replicas, which is less than that. Give the new number, for example `scale %s to 0`.", upperFirst(refTitle(r)), now, r.Name)
		return nil
	}
	return &to
}

// wanted returns the number of replicas in the spec.
func (b *builder) wanted(r operation.Ref) (int32, bool) {
	if d := b.deployment(r); d != nil {
		return replicasOf(d.Spec.Replicas), true
	}
	for i := range b.snap.StatefulSets {
		if s := &b.snap.StatefulSets[i]; r.Kind == "StatefulSet" && s.Name == r.Name && s.Namespace == r.Namespace {
			return replicasOf(s.Spec.Replicas), true
		}
	}
	return 0, false
}

// replicasOf returns n, or the API's default of 1.
func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// podAftermath describes what happens after the end of a pod.
func podAftermath(t *topic, r operation.Ref) string {
	for i := range t.snap.Pods {
		if p := &t.snap.Pods[i]; p.Name == r.Name && p.Namespace == r.Namespace {
			if owner := t.view().Owners()(p); owner.Kind != "Pod" {
				return refTitle(owner) + " makes a new one"
			}
		}
	}
	return "it has no owner, so it is not replaced"
}

// undo rolls back to the named revision, else to the newest whose pods are still ready, else to the previous one.
func (b *builder) undo(r operation.Ref, op operation.Operation) {
	older, known := b.revisions(r)
	if !known {
		op.Revision = b.change.Revision
		b.add(op, "%s goes back to its revision before.", upperFirst(refTitle(r)))
		return
	}
	if len(older) == 0 {
		b.miss("%s has no earlier revision to go back to.", upperFirst(refTitle(r)))
		return
	}
	to, why := older[0], "the one before"
	if at := slices.IndexFunc(older, func(v revision) bool { return v.set.Status.ReadyReplicas > 0 }); at >= 0 {
		to, why = older[at], fmt.Sprintf("the last good one, of which %d pods are ready", older[at].set.Status.ReadyReplicas)
	}
	if want := b.change.Revision; want > 0 || b.change.Tag != "" {
		at := slices.IndexFunc(older, func(v revision) bool {
			return v.number == want || want == 0 && slices.ContainsFunc(v.set.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return strings.HasSuffix(c.Image, ":"+b.change.Tag) })
		})
		if at < 0 {
			b.miss("%s has no such revision; it has %s.", upperFirst(refTitle(r)), numbersOf(older))
			return
		}
		to, why = older[at], "as you said"
	}
	op.Revision = to.number
	var images []string
	for _, c := range to.set.Spec.Template.Spec.Containers {
		images = append(images, report.Code(c.Image))
	}
	b.add(op, "%s goes back to revision %d, %s (image %s).", upperFirst(refTitle(r)), to.number, why, strings.Join(images, ", "))
}

func numbersOf(older []revision) string {
	var list []string
	for _, v := range older {
		list = append(list, fmt.Sprint(v.number))
	}
	return strings.Join(list, ", ")
}

func (b *builder) resume(r operation.Ref, op operation.Operation) {
	wants := b.change.Verb == operation.Suspend
	if b.stopped(r) == wants {
		state := "not stopped"
		if wants {
			state = "suspended already"
		}
		b.miss("%s is %s; there is nothing to do.", upperFirst(refTitle(r)), state)
		return
	}
	if wants {
		b.add(op, "%s is suspended: it starts nothing until it is resumed.", upperFirst(refTitle(r)))
		return
	}
	b.add(op, "%s continues with its next run; missed runs are not made up.", upperFirst(refTitle(r)))
}

// container returns the container of a change: the named one, the only one, or the one in trouble.
func (b *builder) container(r operation.Ref) (*corev1.Container, bool) {
	t := b.template(r)
	if t == nil || len(t.Spec.Containers) == 0 {
		b.miss("The pod template of %s could not be read.", refTitle(r))
		return nil, false
	}
	list := t.Spec.Containers
	if len(list) == 1 && (b.change.Container == "" || list[0].Name == b.change.Container) {
		return &list[0], true
	}
	var names []string
	for i := range list {
		names = append(names, report.Code(list[i].Name))
		if list[i].Name == b.change.Container {
			return &list[i], true
		}
		repository, _, _ := strings.Cut(list[i].Image, ":")
		if b.change.Container == "" && b.change.Image != "" && strings.HasPrefix(b.change.Image, repository+":") {
			return &list[i], true
		}
	}
	b.miss("Name the container of %s: %s.", refTitle(r), strings.Join(names, ", "))
	return nil, false
}

func (b *builder) image(r operation.Ref, op operation.Operation) {
	c, ok := b.container(r)
	if !ok {
		return
	}
	image := b.change.Image
	if image == "" {
		if b.change.Tag == "" {
			b.miss("Name the new image for %s.", refTitle(r))
			return
		}
		// The repository is the spec's; a colon also precedes a registry's port.
		repository := c.Image
		if at := strings.LastIndexByte(repository, ':'); at > strings.LastIndexByte(repository, '/') {
			repository = repository[:at]
		}
		repository, _, _ = strings.Cut(repository, "@")
		image = repository + ":" + b.change.Tag
	}
	op.Images = map[string]string{c.Name: image}
	b.add(op, "%s changes from image %s to image %s.", upperFirst(refTitle(r)), report.Code(c.Image), report.Code(image))
}

func (b *builder) resources(r operation.Ref, op operation.Operation) {
	if b.change.Quantity == "" {
		b.miss("Give the amount, for example `raise the memory limit of %s to 256Mi`.", r.Name)
		return
	}
	c, ok := b.container(r)
	if !ok {
		return
	}
	kind := b.change.Resource
	if kind == "" {
		if kind = "memory"; strings.HasSuffix(b.change.Quantity, "m") {
			kind = "cpu"
		}
	}
	op.Container = c.Name
	what, now := "limit", c.Resources.Limits
	if b.change.Request {
		what, now = "request", c.Resources.Requests
	}
	old, amount := "none", b.change.Quantity
	q, ok := now[corev1.ResourceName(kind)]
	if ok {
		old = q.String()
	}
	if b.change.Step != 0 {
		by, err := resource.ParseQuantity(amount)
		if b.change.Step < 0 {
			by.Neg()
		}
		if q.Add(by); !ok || err != nil || q.Sign() <= 0 {
			b.miss("The %s %s of container %s of %s is %s. Give the new amount.", kind, what, report.Code(c.Name), refTitle(r), old)
			return
		}
		amount = q.String()
	}
	if amounts := map[string]string{kind: amount}; b.change.Request {
		op.Requests = amounts
	} else {
		op.Limits = amounts
	}
	b.add(op, "The %s %s of container %s of %s changes from %s to %s.", kind, what, report.Code(c.Name), refTitle(r), old, amount)
}

func (b *builder) env(r operation.Ref, op operation.Operation) {
	if len(b.change.Set)+len(b.change.Remove) == 0 {
		b.miss("Name the variable and its value, for example `set LOG_LEVEL=debug on %s`.", r.Name)
		return
	}
	for name, value := range b.change.Set {
		if strings.Contains(value, "[redacted") { // earlier messages are kept without secrets
			b.miss("The value of %s is not kept. Send it again, in a separate request for %s.", report.Code(name), refTitle(r))
			return
		}
	}
	if _, ok := b.container(r); !ok {
		return
	}
	op.Container, op.Set, op.Remove = b.change.Container, b.change.Set, b.change.Remove
	b.add(op, "%s gets new pods with the variables as you said.", upperFirst(refTitle(r)))
}

func (b *builder) taint(r operation.Ref, op operation.Operation) {
	op.Namespace = ""
	for _, t := range b.change.Taints {
		if removed, ok := strings.CutSuffix(t, "-"); ok {
			op.RemoveTaints = append(op.RemoveTaints, removed)
		} else {
			op.Taints = append(op.Taints, t)
		}
	}
	if len(b.change.Taints) == 0 { // "remove the taint from worker-01"
		for i := range b.snap.Nodes {
			for _, t := range b.snap.Nodes[i].Spec.Taints {
				if b.snap.Nodes[i].Name == r.Name && !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
					op.RemoveTaints = append(op.RemoveTaints, t.Key+":"+string(t.Effect))
				}
			}
		}
		if !b.change.Untaint || len(op.RemoveTaints) == 0 {
			b.miss("%s has no taint that a person set. Name the taint, for example `taint %s key=value:NoSchedule`.", upperFirst(refTitle(r)), r.Name)
			return
		}
	}
	b.add(op, "%s gets other taints.", upperFirst(refTitle(r)))
}

// fix repairs what is wrong, if the playbooks know the values.
func (b *builder) fix() {
	about, others := b.found(b.change.Symptoms)
	if b.change.Kind != "" && len(b.change.Mentions) == 0 {
		about = slices.Concat(about, others)
		if of, _ := partition(about, func(f engine.Finding) bool { return strings.EqualFold(f.Object.Kind, b.change.Kind) }); len(of) > 0 {
			about = of
		}
	}
	var can []engine.Finding
	for _, f := range about {
		if f.Fix != nil {
			can = append(can, f)
		}
	}
	both := strings.Contains(b.words, "both")
	switch {
	case len(about) == 0 && len(b.objects) > 0:
		b.miss("No rule can repair %s. %s", refTitles(b.objects), coverage.Verdict(b.cover(question.Ask{}, b.unexplained(nil)), nil))
		return
	case len(about) == 0:
		b.miss("No rule can repair anything %s. %s", b.where(), coverage.Verdict(b.cover(question.Ask{}, b.unexplained(nil)), nil))
		return
	case both && len(can) > 2, len(about) > 1 && len(b.objects) == 0 && !b.change.Several && len(b.change.Symptoms) == 0:
		b.which(about)
		return
	}
	for _, f := range about {
		if f.Fix == nil {
			b.miss("%s: %s %s", upperFirst(refTitle(f.Object)), f.Cause, f.Text)
			b.missing[len(b.missing)-1] += quoteEvidence(f)
			continue
		}
		b.add(*f.Fix, "%s: %s %s", upperFirst(refTitle(f.Object)), f.Cause, f.Text)
	}
}

// quoteEvidence quotes the evidence of a finding, if the user has to give the value.
func quoteEvidence(f engine.Finding) string {
	var text strings.Builder
	for i, e := range f.Evidence {
		if i == 4 {
			break
		}
		text.WriteString("\n- " + e)
	}
	if text.Len() == 0 {
		return ""
	}
	return "\n" + text.String()
}

// which asks which of several problems is meant.
func (b *builder) which(about []engine.Finding) {
	var list []string
	for _, f := range about {
		list = append(list, fmt.Sprintf("%s: %s", refTitle(f.Object), f.Class))
	}
	b.miss("%d things are wrong %s; name one to repair, or say `fix all`:\n\n- %s", len(about), b.where(), strings.Join(list[:min(len(list), 20)], "\n- "))
}
