package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// Count answers how many objects meet all conditions of a question: the number first, then its parts, then the list. ok
// is false for a kind that snapshots do not contain.
func Count(v View, c question.Count) (text string, ok bool) {
	var ignored []string
	if c.Kind != "pod" && len(v.Objects) > 0 {
		for _, r := range v.Objects {
			ignored = append(ignored, Code(r.Name))
		}
		v.Objects = nil
	}
	if IsClusterScoped(c.Kind) {
		v.Namespace = ""
	}
	all, known := v.countable(c.Kind)
	if !known {
		return "", false
	}
	conditions, meaningless := countConditions(c)
	ignored = append(ignored, meaningless...)
	if c.New && v.Within > 0 {
		conditions = append(conditions, condition{"created" + v.period(), func(o countable) bool { return v.within(o.meta.GetCreationTimestamp().Time) }})
	}
	var fit []countable
	for _, o := range all {
		if !slices.ContainsFunc(conditions, func(c condition) bool { return !c.holds(o) }) {
			fit = append(fit, o)
		}
	}
	noun := countNoun(len(all), c.Kind, PluralOf(c.Kind))
	head := fmt.Sprintf("There %s %s %s.", isAre(len(all)), noun, v.where())
	if len(conditions) > 0 {
		var said []string
		for _, c := range conditions {
			said = append(said, c.text)
		}
		head = fmt.Sprintf("%d of %s %s: %s.", len(fit), noun, v.where(), strings.Join(said, "; "))
	}
	if len(ignored) > 0 {
		head += " Not applied, since it says nothing of this kind: " + strings.Join(ignored, ", ") + "."
	}
	if v.Unread[PluralOf(c.Kind)] {
		head += " Not all of them could be read, so there may be more."
	}
	return head + "\n\n" + v.listCounted(fit, c), true
}

// clusterScoped are the kinds that belong to no namespace.
var clusterScoped = []string{"node", "namespace", "persistentvolume", "storageclass", "clusterrole", "clusterrolebinding", "customresourcedefinition", "gatewayclass", "clusterissuer"}

// IsClusterScoped reports whether a kind belongs to no namespace.
func IsClusterScoped(kind string) bool { return slices.Contains(clusterScoped, kind) }

// countable is one object that can be counted.
type countable struct {
	meta  metav1.Object
	pod   *corev1.Pod
	owner operation.Ref
	// state is the object's state as shown in the list, if it has one.
	state  string
	states []question.PodState
}

type condition struct {
	text  string
	holds func(countable) bool
}

// statesOfKind are the states that objects of a kind can be in.
var statesOfKind = map[string][]question.PodState{
	"node": {question.IsReady, question.NotReady, question.Cordoned}, "deployment": {question.IsReady, question.NotReady}, "statefulset": {question.IsReady, question.NotReady},
	"daemonset": {question.IsReady, question.NotReady}, "job": {question.IsRunning, question.HasFailed, question.IsCompleted, question.IsSuspended},
	"cronjob": {question.IsSuspended}, "persistentvolumeclaim": {question.IsBound, question.IsUnbound, question.IsPending}, "namespace": {question.IsLeaving},
}

// countConditions returns the tests of a count, and the conditions that do not apply to its kind.
func countConditions(c question.Count) (tests []condition, ignored []string) {
	for _, s := range c.States {
		if c.Kind != "pod" && !slices.Contains(statesOfKind[c.Kind], s) {
			ignored = append(ignored, string(s))
			continue
		}
		tests = append(tests, condition{string(s), func(o countable) bool { return slices.Contains(o.states, s) }})
	}
	for _, l := range c.Labels {
		tests = append(tests, condition{"label " + Code(l), func(o countable) bool { return hasMark(o.meta.GetLabels(), l) }})
	}
	for _, a := range c.Annotations {
		tests = append(tests, condition{"annotation " + Code(a), func(o countable) bool { return hasMark(o.meta.GetAnnotations(), a) }})
	}
	if c.Restarts > 0 {
		if c.Kind != "pod" {
			return tests, append(ignored, "restarts")
		}
		tests = append(tests, condition{fmt.Sprintf("restarted at least %s", countNoun(c.Restarts, "time", "times")), func(o countable) bool { return countRestarts(o.pod) >= c.Restarts }})
	}
	if c.Image != "" {
		if c.Kind != "pod" {
			return tests, append(ignored, "image "+Code(c.Image))
		}
		tests = append(tests, condition{"an image with " + Code(c.Image), func(o countable) bool {
			return slices.ContainsFunc(imagesOf(o.pod), func(image string) bool { return strings.Contains(strings.ToLower(image), c.Image) })
		}})
	}
	return tests, ignored
}

// hasMark reports whether labels or annotations have a key, or a key with a value. The question was parsed in lower
// case.
func hasMark(marks map[string]string, want string) bool {
	key, value, pair := strings.Cut(want, "=")
	for k, v := range marks {
		if strings.EqualFold(k, key) && (!pair || strings.EqualFold(v, value)) {
			return true
		}
	}
	return false
}

func imagesOf(pod *corev1.Pod) []string {
	var images []string
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			images = append(images, list[i].Image)
		}
	}
	return images
}

// listCounted shows the groups of a number, and lists its objects.
func (v View) listCounted(fit []countable, c question.Count) string {
	by := c.By
	if by == "" && c.Kind == "pod" && len(c.States) != 1 {
		by = "state"
	}
	var b strings.Builder
	if by != "" && len(fit) > 0 {
		groups := map[string]int{}
		for _, o := range fit {
			groups[cmp.Or(o.groupBy(by), "none")]++
		}
		names := slices.SortedFunc(maps.Keys(groups), func(x, y string) int { return cmp.Or(cmp.Compare(groups[y], groups[x]), cmp.Compare(x, y)) })
		t := newTable(strings.ToUpper(by[:1])+by[1:], pluralTitle(c.Kind))
		for _, name := range names {
			t.add(tableCell(name), strconv.Itoa(groups[name]))
		}
		b.WriteString("By " + by + ":\n\n" + t.String() + "\n")
		if c.By != "" {
			return b.String()
		}
	}
	if c.Kind != "pod" {
		t := newTable("Namespace", pluralTitle(c.Kind), "State", "Age")
		for _, o := range fit {
			t.add(tableCell(o.meta.GetNamespace()), tableCell(o.meta.GetName()), tableCell(o.state), formatAge(v.Taken, o.meta.GetCreationTimestamp().Time))
		}
		return b.String() + t.under("They are:", "").String()
	}
	t := newTable("Namespace", "Pod", "State", "Restarts", "Node", "Age")
	for _, o := range fit {
		t.add(tableCell(o.pod.Namespace), tableCell(o.pod.Name), tableCell(o.state), strconv.Itoa(countRestarts(o.pod)), tableCell(o.pod.Spec.NodeName), formatAge(v.Taken, o.pod.CreationTimestamp.Time))
	}
	return b.String() + t.under("They are:", "").String()
}

// groupBy returns the group of an object for a grouping.
func (o countable) groupBy(by string) string {
	kind, key, marked := strings.Cut(by, " ")
	marks := o.meta.GetLabels()
	if kind == "annotation" {
		marks = o.meta.GetAnnotations()
	}
	switch {
	case marked:
		for k, v := range marks {
			if strings.EqualFold(k, key) {
				return v
			}
		}
		return ""
	case by == "namespace":
		return o.meta.GetNamespace()
	case by == "state" || o.pod == nil:
		return o.state
	case by == "node":
		return o.pod.Spec.NodeName
	case by == "image":
		return strings.Join(imagesOf(o.pod), ", ")
	}
	return strings.ToLower(o.owner.Kind) + " " + o.owner.Name
}

// statesOfPod returns the states of a pod.
func statesOfPod(pod *corev1.Pod) []question.PodState {
	var states []question.PodState
	add := func(holds bool, s question.PodState) {
		if holds {
			states = append(states, s)
		}
	}
	shown := State(pod)
	ended := func(match func(corev1.ContainerStatus) bool) bool {
		return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), match)
	}
	done := pod.Status.Phase == corev1.PodSucceeded
	// Running but not ready is running, as in kubectl; a container that waits or ended is not.
	add(!done && shown != "Running" && shown != "NotReady", question.NotRunning)
	add(shown == "Running" || shown == "NotReady", question.IsRunning)
	add(!isHealthy(pod), question.NotReady)
	add(isHealthy(pod) && !done, question.IsReady)
	add(pod.Status.Phase == corev1.PodPending, question.IsPending)
	add(pod.Status.Phase == corev1.PodFailed, question.HasFailed)
	add(done, question.IsCompleted)
	add(pod.DeletionTimestamp != nil, question.IsLeaving)
	add(pod.Status.Reason == "Evicted", question.WasEvicted)
	add(ended(func(st corev1.ContainerStatus) bool {
		return st.State.Waiting != nil && st.State.Waiting.Reason == "CrashLoopBackOff"
	}), question.IsCrashing)
	add(ended(func(st corev1.ContainerStatus) bool {
		return st.State.Waiting != nil && (strings.Contains(st.State.Waiting.Reason, "ImagePull") || st.State.Waiting.Reason == "InvalidImageName")
	}), question.NoImage)
	add(ended(func(st corev1.ContainerStatus) bool {
		for _, e := range []*corev1.ContainerStateTerminated{st.State.Terminated, st.LastTerminationState.Terminated} {
			if e != nil && e.Reason == "OOMKilled" {
				return true
			}
		}
		return false
	}), question.WasOOM)
	return states
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// PluralOf returns the plural of a kind in lower case.
func PluralOf(kind string) string {
	switch {
	case strings.HasSuffix(kind, "ss"):
		return kind + "es"
	case strings.HasSuffix(kind, "y"):
		return kind[:len(kind)-1] + "ies"
	}
	return kind + "s"
}

func pluralTitle(kind string) string {
	plural := PluralOf(kind)
	return strings.ToUpper(plural[:1]) + plural[1:]
}
