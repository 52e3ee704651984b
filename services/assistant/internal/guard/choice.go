package guard

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Choice means that a language model, or another program, chose the operations. It may have read text that programs in
// the cluster write, so a value that neither the user nor a playbook named counts as unrequested.
type Choice struct {
	// Requested means that the user's message orders a change, as determined without a model. The zero value denies: a
	// question or a sentence that is not understood orders nothing, however many names and verbs it has.
	Requested bool
	// Program means that a program chose them, without a message from a user.
	Program bool
	// Wish means that the user's message was read as a wish, which an approval given in advance does not cover.
	Wish bool
	// Fixes are the fixes of the playbooks' findings; their values come from the cluster
	// itself.
	Fixes []operation.Operation
	// Scope is the default namespace.
	Scope string
	// Revision is the revision that an undo was requested for; 0 is the previous one.
	Revision int64
}

const (
	maxUnsaid = 8   // notes about one action's choices
	maxValues = 500 // values searched for in the user's messages
)

// confirmChoice requires confirmation of a language model's writes that the user did not order,
// or whose verb, object or values the user did not say, unless they are the fix of a finding.
func (v *Verdict) confirmChoice(c Case) {
	if c.Choice == nil {
		return
	}
	if c.Choice.Program {
		v.add(ModelChoice, "a program chose to make this change; no person requested it in a message")
		return
	}
	if c.Choice.Wish {
		v.add(ModelChoice, "your message was read as a wish, and not as an order")
		return
	}
	if !c.Choice.Requested {
		v.add(ModelChoice, "the language model chose to make a change; your message was not read as an order for one")
	}
	words := newCorpus(c.Words)
	told := 0
	for _, e := range c.Operations {
		if e.Risk() == operation.Low || c.Choice.fixes(e) {
			continue
		}
		for _, what := range c.Choice.unsaid(e, words) {
			if told++; told <= maxUnsaid {
				v.add(ModelChoice, "the language model chose "+what+", which you did not say")
			}
		}
	}
}

// fixes reports whether an operation is one of the findings' fixes, on the same objects.
func (c *Choice) fixes(e operation.Expanded) bool {
	return slices.ContainsFunc(c.Fixes, func(f operation.Operation) bool {
		return reflect.DeepEqual(withoutObjects(f), withoutObjects(e.Operation)) && len(e.Targets) > 0 && !slices.ContainsFunc(e.Targets, func(t operation.Target) bool { return !namesObject(f, t.Ref) })
	})
}

// withoutObjects returns an operation without its objects, which are compared in their resolved
// form.
func withoutObjects(o operation.Operation) operation.Operation {
	o = operation.Normalize(o)
	o.Kind, o.Names, o.Namespace = "", nil, ""
	return o
}

// namesObject reports whether an operation as written names the object. A manifest names its
// own objects; equal manifests name the same ones.
func namesObject(o operation.Operation, r operation.Ref) bool {
	if o.Manifest != "" {
		return o.Namespace == "" || o.Namespace == r.Namespace
	}
	return (r.Namespace == "" || o.Namespace == r.Namespace) && slices.ContainsFunc(o.Objects(), func(at operation.Object) bool {
		kind, _, _ := strings.Cut(at.Kind, ".")
		return at.Name == r.Name && (strings.EqualFold(kind, r.Kind) || kind == r.Resource)
	})
}

// unsaid lists the parts of an operation that the user's words do not contain.
func (c *Choice) unsaid(e operation.Expanded, words corpus) []string {
	var missing []string
	apart := words.apart()
	need := func(what, value string) {
		if value != "" && !words.mentions(value) && !apart.mentions(value) {
			missing = append(missing, what+" "+operation.Quote(value))
		}
	}
	if !slices.ContainsFunc(spoken[e.Verb], words.mentions) {
		missing = append(missing, "to "+strings.ReplaceAll(string(e.Verb), "_", " "))
	}
	chosen := e.All || e.LabelSelector != "" || e.FieldSelector != ""
	if e.All && !slices.ContainsFunc([]string{"all", "every", "everything", "each"}, words.mentions) {
		missing = append(missing, "all objects")
	}
	need("the selector", e.LabelSelector)
	need("the selector", e.FieldSelector)
	need("the selector", e.PodSelector)
	for _, t := range e.Targets {
		if !chosen {
			need("the object", t.Ref.Name)
		}
		if t.Ref.Namespace != cmp.Or(c.Scope, "default") {
			need("the namespace", t.Ref.Namespace)
		}
	}
	if e.Verb == operation.Undo && c.Revision != 0 {
		need("revision", strconv.FormatInt(c.Revision, 10))
	}
	all := settingsOf(e)
	if len(all) > maxValues {
		return append(missing, fmt.Sprintf("%d values", len(all)))
	}
	for _, value := range all {
		if !words.mentions(value) && !apart.mentions(separated.Replace(value)) && !slices.ContainsFunc(small[value], words.mentions) {
			missing = append(missing, "the value "+operation.Quote(value))
		}
	}
	return missing
}

// settingsOf returns the values that an operation sets, with the names under which it sets
// them, sorted.
func settingsOf(e operation.Expanded) []string {
	found := set{}
	for _, m := range []map[string]string{e.Set, e.Images, e.Requests, e.Limits} {
		for name, value := range m {
			found[name], found[value] = true, true
		}
	}
	for _, list := range [][]string{e.Remove, e.Taints, e.RemoveTaints} {
		for _, value := range list {
			found[value] = true
		}
	}
	for _, value := range []string{e.Container, e.NewName, e.TargetPort, e.ServiceType} {
		found[value] = true
	}
	for _, n := range []*int32{e.Replicas, e.Min} {
		if n != nil {
			found[fmt.Sprint(*n)] = true
		}
	}
	for _, n := range []int64{int64(e.Port), int64(e.Max), int64(e.CPUPercent)} {
		if n != 0 {
			found[strconv.FormatInt(n, 10)] = true
		}
	}
	if docs, err := operation.Documents(e.Manifest); err == nil {
		for _, d := range docs {
			addLeaves(found, "", d.Object, 0)
		}
	}
	eachPatchValue(e.Operation, func(name string, value any) { addLeaves(found, name, value, 0) })
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// addLeaves collects the values of a patch or manifest with the names directly above them: a
// label or variable name says as much as its value.
func addLeaves(found set, name string, v any, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			addLeaves(found, key, inner, depth+1)
		}
	case []any:
		for _, inner := range v {
			addLeaves(found, name, inner, depth+1)
		}
	default:
		found[name] = true
		if v != nil {
			found[fmt.Sprint(v)] = true
		}
	}
}

// spoken maps verbs to the words that request them. Free-form words such as fix request no particular verb: their
// values have to be stated.
var spoken = map[operation.Verb][]string{
	operation.Scale:        {"scale", "scaling", "rescale", "replica", "replicas", "instances", "copies"},
	operation.Restart:      {"restart", "restarting", "bounce", "recycle", "reboot"},
	operation.Undo:         {"undo", "revert", "rollback", "back", "restore"},
	operation.Pause:        {"pause", "halt", "freeze"},
	operation.Resume:       {"resume", "unpause", "unsuspend", "continue", "enable"},
	operation.Suspend:      {"suspend", "pause", "disable", "stop"},
	operation.RunJob:       {"run", "rerun", "trigger", "start"},
	operation.SetImage:     {"image", "version", "deploy", "upgrade", "update", "tag"},
	operation.SetResources: {"resource", "resources", "memory", "cpu", "limit", "limits", "request", "requests"},
	operation.SetEnv:       {"env", "environment", "variable", "variables", "set", "unset"},
	operation.Expose:       {"expose", "service"},
	operation.Autoscale:    {"autoscale", "autoscaler", "autoscaling", "hpa"},
	operation.Label:        {"label", "labels", "unlabel"},
	operation.Annotate:     {"annotate", "annotation", "annotations"},
	operation.Patch:        {"patch", "set", "change", "add", "remove", "raise", "increase", "lower", "reduce", "decrease", "update", "replace", "fix"},
	operation.Apply:        {"apply", "create", "add", "make", "deploy", "set", "change", "update"},
	operation.Create:       {"create", "add", "make", "new"},
	operation.Replace:      {"replace"},
	operation.Delete:       {"delete", "remove", "kill", "destroy", "drop"},
	operation.Evict:        {"evict"},
	operation.Cordon:       {"cordon", "unschedulable"},
	operation.Uncordon:     {"uncordon", "schedulable"},
	operation.Drain:        {"drain"},
	operation.Taint:        {"taint", "untaint"},
}

// small are the numbers that people write as words.
var small = map[string][]string{
	"0": {"zero"}, "1": {"one"}, "2": {"two"}, "3": {"three"}, "4": {"four"}, "5": {"five"}, "6": {"six"}, "7": {"seven"}, "8": {"eight"}, "9": {"nine"}, "10": {"ten"},
}

// separated splits kind/name and name=value, as people write and paste them.
var separated = strings.NewReplacer("=", " ", ":", " ", "/", " ")

func (c corpus) apart() corpus {
	texts := make([]string, len(c.texts))
	for i, t := range c.texts {
		texts[i] = foldSpace(separated.Replace(t))
	}
	return corpus{texts}
}
