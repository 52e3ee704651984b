package workload

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// reference is a field in a pod that needs a ConfigMap or Secret, or one key of it.
type reference struct {
	kind      string // ConfigMap or Secret
	name      string
	key       string // empty: the object as a whole
	container string // container with the environment; empty: a volume
	// where describes the field, for people.
	where string
	// change points it at another key; nil if no strategic patch can.
	change func(w *engine.Workload, key string) *operation.Operation
}

// checkReferences explains MissingObject and MissingKey. It evaluates the references themselves, since messages name
// only the first that failed.
func checkReferences(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	var found []engine.Finding
	for _, r := range x.waitedFor(pod) {
		for _, f := range x.check(r, pod, w) {
			f.Container = r.container
			found = append(found, f)
		}
	}
	return found
}

// waitedFor lists the references without which a pod that has not started cannot start.
func (x *Index) waitedFor(pod *corev1.Pod) []reference {
	var all []reference
	for _, c := range engine.ListContainers(pod) {
		if c.Waiting() == "CreateContainerConfigError" {
			for _, r := range environmentReferences(c) {
				r.container = c.Spec.Name
				all = append(all, r)
			}
		}
	}
	// Volumes are mounted before any container starts.
	if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending && !slices.ContainsFunc(engine.ListContainers(pod), engine.HasStarted) {
		for i := range pod.Spec.Volumes {
			all = append(all, volumeReferences(&pod.Spec.Volumes[i])...)
		}
	}
	return all
}

func isRequired(optional *bool) bool { return optional == nil || !*optional }

// environmentReferences lists the sources of a container's variables.
func environmentReferences(c engine.Container) []reference {
	var all []reference
	for _, e := range c.Spec.EnvFrom {
		where := "all variables of container " + engine.QuoteCode(c.Spec.Name)
		if r := e.ConfigMapRef; r != nil && isRequired(r.Optional) {
			all = append(all, reference{kind: "ConfigMap", name: r.Name, where: where})
		}
		if r := e.SecretRef; r != nil && isRequired(r.Optional) {
			all = append(all, reference{kind: "Secret", name: r.Name, where: where})
		}
	}
	for _, e := range c.Spec.Env {
		if e.ValueFrom == nil {
			continue
		}
		add := func(kind, member, object, key string) {
			all = append(all, reference{kind: kind, name: object, key: key,
				where: fmt.Sprintf("the variable %s of container %s", engine.QuoteCode(e.Name), engine.QuoteCode(c.Spec.Name)),
				change: func(w *engine.Workload, key string) *operation.Operation {
					from := engine.Members{member: engine.Members{"name": object, "key": key}}
					return engine.PatchContainer(w, c, engine.Members{"env": []any{engine.Members{"name": e.Name, "valueFrom": from}}})
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

// volumeReferences lists the objects in a volume.
func volumeReferences(v *corev1.Volume) []reference {
	where := "the volume " + engine.QuoteCode(v.Name)
	if r := v.ConfigMap; r != nil && isRequired(r.Optional) {
		return itemsOf("ConfigMap", r.Name, where, r.Items, func(items []any) engine.Members {
			return engine.Members{"name": v.Name, "configMap": engine.Members{"name": r.Name, "items": items}}
		})
	}
	if r := v.Secret; r != nil && isRequired(r.Optional) {
		return itemsOf("Secret", r.SecretName, where, r.Items, func(items []any) engine.Members {
			return engine.Members{"name": v.Name, "secret": engine.Members{"secretName": r.SecretName, "items": items}}
		})
	}
	var all []reference
	if v.Projected != nil {
		// The sources of a projected volume have no merge key: no patch can change a single one.
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

func itemsOf(kind, object, where string, items []corev1.KeyToPath, wrap func(items []any) engine.Members) []reference {
	if len(items) == 0 {
		return []reference{{kind: kind, name: object, where: where}}
	}
	var all []reference
	for i, item := range items {
		r := reference{kind: kind, name: object, key: item.Key, where: where}
		if wrap != nil {
			r.change = func(w *engine.Workload, key string) *operation.Operation {
				// The list is replaced as a whole, so the patch repeats the other items.
				changed := []any{}
				for j, other := range items {
					if j == i {
						other.Key = key
					}
					one := engine.Members{"key": other.Key, "path": other.Path}
					if other.Mode != nil {
						one["mode"] = *other.Mode
					}
					changed = append(changed, one)
				}
				return engine.PatchPodSpec(w, engine.Members{"volumes": []any{wrap(changed)}})
			}
		}
		all = append(all, r)
	}
	return all
}

// check reports the missing object or key of a reference.
func (x *Index) check(r reference, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	held, unread := x.ConfigMapKeys, x.Unread["configmaps"]
	if r.kind == "Secret" {
		held, unread = x.SecretKeys, x.Unread["secrets"]
	}
	if unread || r.name == "" {
		return nil
	}
	keys, exists := held[engine.Name{Namespace: pod.Namespace, Name: r.name}]
	f := engine.Finding{Object: w.Ref, Confidence: engine.High, Evidence: []string{fmt.Sprintf("%s comes from the %s %s.", engine.UpperFirst(r.where), r.kind, engine.QuoteCode(r.name))}}
	switch {
	case !exists:
		explainMissingObject(&f, r, pod, w)
		if r.kind == "Secret" {
			x.FollowCertificate(&f, pod.Namespace, r.name)
		}
	case r.key != "" && !slices.Contains(keys, r.key):
		explainMissingKey(&f, r, keys, w)
	default:
		return nil
	}
	return []engine.Finding{f}
}

func explainMissingObject(f *engine.Finding, r reference, pod *corev1.Pod, w *engine.Workload) {
	f.Class = engine.MissingObject
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no %s has this name.", engine.QuoteCode(pod.Namespace), r.kind))
	f.Cause = fmt.Sprintf("The %s %s does not exist, so the pod cannot start.", r.kind, engine.QuoteCode(r.name))
	f.Text = fmt.Sprintf("Create the %s in namespace %s", r.kind, engine.QuoteCode(pod.Namespace))
	if r.key != "" {
		f.Text += " with the key " + engine.QuoteCode(r.key)
	}
	if r.kind == "Secret" {
		f.Text += " yourself: no secret value passes through here."
	} else {
		f.Text += "; choose the values that it should hold."
	}
	offerUndoReference(f, r, w)
}

func explainMissingKey(f *engine.Finding, r reference, keys []string, w *engine.Workload) {
	f.Class = engine.MissingKey
	has := "It has no keys."
	if len(keys) > 0 {
		has = "It has " + engine.QuoteCodes(keys) + "."
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The %s exists. %s", r.kind, has))
	f.Cause = fmt.Sprintf("The %s %s has no key %s.", r.kind, engine.QuoteCode(r.name), engine.QuoteCode(r.key))
	f.Text = "Choose one of its keys, or add the key."
	if key, ok := engine.NearestName(r.key, keys); ok {
		f.Cause += fmt.Sprintf(" Its key %s is the nearest.", engine.QuoteCode(key))
		if r.change != nil {
			if f.Fix = r.change(w, key); f.Fix != nil {
				f.Text = fmt.Sprintf("Take the key %s for %s, if it holds what is meant.", engine.QuoteCode(key), r.where)
				return
			}
		}
	}
	offerUndoReference(f, r, w)
}

// offerUndoReference offers the last revision that did not need the object or key.
func offerUndoReference(f *engine.Finding, r reference, w *engine.Workload) {
	fix, text := engine.UndoRollout(w, func(older *corev1.PodTemplateSpec) bool { return !refersTo(older, r) })
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}

// refersTo reports whether a template needs the same object and key.
func refersTo(t *corev1.PodTemplateSpec, r reference) bool {
	same := func(o reference) bool { return o.kind == r.kind && o.name == r.name && o.key == r.key }
	for _, list := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range list {
			if slices.ContainsFunc(environmentReferences(engine.Container{Spec: &list[i]}), same) {
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
