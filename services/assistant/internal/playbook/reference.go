package playbook

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/spelling"
)

// reference is a place in a pod that needs a ConfigMap or Secret, or one key of it.
type reference struct {
	kind string // ConfigMap or Secret
	name string
	key  string // empty: the object as a whole
	// where is the place, for people.
	where string
	// change points it at another key; nil where no strategic patch can.
	change func(w *workload, key string) *operation.Operation
}

// checkReferences explains classes 4 and 5. It looks at the references themselves: messages
// name only the first that failed.
func checkReferences(x *index, pod *corev1.Pod, w *workload) []Finding {
	var found []Finding
	for _, c := range listContainers(pod) {
		if c.waiting() == "CreateContainerConfigError" {
			for _, r := range environmentReferences(c) {
				for _, f := range x.check(r, pod, w) {
					f.container = c.spec.Name
					found = append(found, f)
				}
			}
		}
	}
	// Volumes are mounted before any container starts.
	if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending && !slices.ContainsFunc(listContainers(pod), hasStarted) {
		for i := range pod.Spec.Volumes {
			for _, r := range volumeReferences(&pod.Spec.Volumes[i]) {
				found = append(found, x.check(r, pod, w)...)
			}
		}
	}
	return found
}

func hasStarted(c container) bool {
	return c.status.State.Running != nil || c.lastEnd() != nil || c.status.ImageID != ""
}

func isRequired(optional *bool) bool { return optional == nil || !*optional }

// environmentReferences lists what a container's variables come from.
func environmentReferences(c container) []reference {
	var all []reference
	for _, e := range c.spec.EnvFrom {
		where := "all variables of container " + quoteCode(c.spec.Name)
		if r := e.ConfigMapRef; r != nil && isRequired(r.Optional) {
			all = append(all, reference{kind: "ConfigMap", name: r.Name, where: where})
		}
		if r := e.SecretRef; r != nil && isRequired(r.Optional) {
			all = append(all, reference{kind: "Secret", name: r.Name, where: where})
		}
	}
	for _, e := range c.spec.Env {
		if e.ValueFrom == nil {
			continue
		}
		add := func(kind, member, object, key string) {
			all = append(all, reference{kind: kind, name: object, key: key,
				where: fmt.Sprintf("the variable %s of container %s", quoteCode(e.Name), quoteCode(c.spec.Name)),
				change: func(w *workload, key string) *operation.Operation {
					from := members{member: members{"name": object, "key": key}}
					return patchContainer(w, c, members{"env": []any{members{"name": e.Name, "valueFrom": from}}})
				}})
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil && isRequired(r.Optional) {
			add("ConfigMap", "configMapKeyRef", r.Name, r.Key)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil && isRequired(r.Optional) {
			add("Secret", "secretKeyRef", r.Name, r.Key)
		}
	}
	return all
}

// volumeReferences lists what a volume is made of.
func volumeReferences(v *corev1.Volume) []reference {
	where := "the volume " + quoteCode(v.Name)
	if r := v.ConfigMap; r != nil && isRequired(r.Optional) {
		return itemsOf("ConfigMap", r.Name, where, r.Items, func(items []any) members {
			return members{"name": v.Name, "configMap": members{"name": r.Name, "items": items}}
		})
	}
	if r := v.Secret; r != nil && isRequired(r.Optional) {
		return itemsOf("Secret", r.SecretName, where, r.Items, func(items []any) members {
			return members{"name": v.Name, "secret": members{"secretName": r.SecretName, "items": items}}
		})
	}
	var all []reference
	if v.Projected != nil {
		// The sources of a projected volume have no merge key: no patch reaches one alone.
		for _, s := range v.Projected.Sources {
			if r := s.ConfigMap; r != nil && isRequired(r.Optional) {
				all = append(all, itemsOf("ConfigMap", r.Name, where, r.Items, nil)...)
			}
			if r := s.Secret; r != nil && isRequired(r.Optional) {
				all = append(all, itemsOf("Secret", r.Name, where, r.Items, nil)...)
			}
		}
	}
	return all
}

func itemsOf(kind, object, where string, items []corev1.KeyToPath, wrap func(items []any) members) []reference {
	if len(items) == 0 {
		return []reference{{kind: kind, name: object, where: where}}
	}
	var all []reference
	for i, item := range items {
		r := reference{kind: kind, name: object, key: item.Key, where: where}
		if wrap != nil {
			r.change = func(w *workload, key string) *operation.Operation {
				// The list is replaced as a whole, so the other items go along.
				changed := []any{}
				for j, other := range items {
					if j == i {
						other.Key = key
					}
					one := members{"key": other.Key, "path": other.Path}
					if other.Mode != nil {
						one["mode"] = *other.Mode
					}
					changed = append(changed, one)
				}
				return patchPodSpec(w, members{"volumes": []any{wrap(changed)}})
			}
		}
		all = append(all, r)
	}
	return all
}

// check finds what a reference lacks: the object, or its key.
func (x *index) check(r reference, pod *corev1.Pod, w *workload) []Finding {
	held, unread := x.configMaps, x.Unread["configmaps"]
	if r.kind == "Secret" {
		held, unread = x.secrets, x.Unread["secrets"]
	}
	if unread || r.name == "" {
		return nil
	}
	keys, exists := held[name{Namespace: pod.Namespace, Name: r.name}]
	f := Finding{Object: w.ref, Confidence: High, Evidence: []string{fmt.Sprintf("%s comes from the %s %s.", upperFirst(r.where), r.kind, quoteCode(r.name))}}
	switch {
	case !exists:
		f.missingObject(r, pod, w)
	case r.key != "" && !slices.Contains(keys, r.key):
		f.missingKey(r, keys, w)
	default:
		return nil
	}
	return []Finding{f}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (f *Finding) missingObject(r reference, pod *corev1.Pod, w *workload) {
	f.Class = MissingObject
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no %s has this name.", quoteCode(pod.Namespace), r.kind))
	f.Cause = fmt.Sprintf("The %s %s does not exist, so the pod cannot start.", r.kind, quoteCode(r.name))
	f.Text = fmt.Sprintf("Create the %s in namespace %s", r.kind, quoteCode(pod.Namespace))
	if r.key != "" {
		f.Text += " with the key " + quoteCode(r.key)
	}
	if r.kind == "Secret" {
		f.Text += " yourself: no secret value passes through here."
	} else {
		f.Text += "; say which values it is to hold."
	}
	f.undoReference(r, w)
}

func (f *Finding) missingKey(r reference, keys []string, w *workload) {
	f.Class = MissingKey
	has := "It has no keys."
	if len(keys) > 0 {
		has = "It has " + quoteCodes(keys) + "."
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The %s exists. %s", r.kind, has))
	f.Cause = fmt.Sprintf("The %s %s has no key %s.", r.kind, quoteCode(r.name), quoteCode(r.key))
	f.Text = "Say which of its keys is meant, or add the key."
	if key, ok := nearestName(r.key, keys); ok {
		f.Cause += fmt.Sprintf(" Its key %s is the nearest.", quoteCode(key))
		if r.change != nil {
			if f.Fix = r.change(w, key); f.Fix != nil {
				f.Text = fmt.Sprintf("Take the key %s for %s, if it holds what is meant.", quoteCode(key), r.where)
				return
			}
		}
	}
	f.undoReference(r, w)
}

// undoReference offers the last revision that did not need the object or key.
func (f *Finding) undoReference(r reference, w *workload) {
	fix, text := undoRollout(w, func(older *corev1.PodTemplateSpec) bool { return !refersTo(older, r) })
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}

// refersTo says whether a template needs the same object and key.
func refersTo(t *corev1.PodTemplateSpec, r reference) bool {
	same := func(o reference) bool { return o.kind == r.kind && o.name == r.name && o.key == r.key }
	for _, list := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range list {
			if slices.ContainsFunc(environmentReferences(container{spec: &list[i]}), same) {
				return true
			}
		}
	}
	for i := range t.Spec.Volumes {
		if slices.ContainsFunc(volumeReferences(&t.Spec.Volumes[i]), same) {
			return true
		}
	}
	return false
}

// nearestName is the one key that may have been meant: a few letters away, or with a word in
// common. Two that are as near are none.
func nearestName(want string, keys []string) (string, bool) {
	low, most := strings.ToLower(want), len(want)/3
	own := nameWords(low)
	best, at, twice := "", 0, false
	for _, key := range keys {
		other := strings.ToLower(key)
		d := most + 1 // or more: lengths alone make that difference
		if gap := len(low) - len(other); gap <= most && -gap <= most {
			d = spelling.Distance(low, other)
		}
		if d > most {
			if !shareWord(own, other) {
				continue
			}
			d = spelling.Distance(low, other)
		}
		if best == "" || d < at {
			best, at, twice = key, d, false
		} else if d == at {
			twice = true
		}
	}
	return best, best != "" && !twice
}

// nameWords are the parts of a name that are long enough to mean something.
func nameWords(s string) []string {
	all := strings.FieldsFunc(s, isSeparator)
	return slices.DeleteFunc(all, func(word string) bool { return len(word) < 3 })
}

func isSeparator(r rune) bool { return strings.ContainsRune("_-./", r) }

// shareWord says whether a name has one of these words.
func shareWord(own []string, other string) bool {
	return slices.ContainsFunc(own, func(word string) bool {
		if !strings.Contains(other, word) {
			return false
		}
		for part := range strings.FieldsFuncSeq(other, isSeparator) {
			if part == word {
				return true
			}
		}
		return false
	})
}
