package change

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// podSpecs holds the path of the pod spec in each kind that runs pods.
var podSpecs = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                        {"spec"},
	{Kind: "ReplicationController"}:      {"spec", "template", "spec"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
}

func kindOfRef(ref operation.Ref) schema.GroupKind {
	return schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
}

// unsupportedKind is the error for a verb that a kind does not support.
func unsupportedKind(ref operation.Ref, can string, kinds string) error {
	return operation.Refuse(operation.InvalidArgument, "kind", "%s cannot be %s; that is for %s.", ref, can, kinds)
}

func (s *Service) scale(ctx context.Context, c *call, op operation.Operation) error {
	c.body, c.done = nestValue(int64(*op.Replicas), "spec", "replicas"), "scaled"
	switch kindOfRef(c.ref) {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Kind: "ReplicationController"}:
		return nil
	}
	// For other kinds only the scale subresource knows the field of the number.
	r, err := s.resource(ctx, c.ref)
	if err != nil {
		return err
	}
	if !r.Subresources["scale"] {
		return unsupportedKind(c.ref, "scaled", "deployments, stateful sets, replica sets and kinds with a scale")
	}
	c.sub = "scale"
	return nil
}

// setRestartedAt changes an annotation of the template, which replaces the pods.
func setRestartedAt(c *call, when string) error {
	switch kindOfRef(c.ref) {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		if valueAt(c.live.Object, "spec", "paused") == true {
			return operation.Refuse(operation.InvalidArgument, "", "%s is paused, so nothing would restart; resume it first.", c.ref)
		}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
	default:
		return unsupportedKind(c.ref, "restarted", "deployments, stateful sets and daemon sets")
	}
	c.body, c.done = nestValue(when, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"), "restarted"
	return nil
}

// setPaused pauses or resumes a rollout or a schedule.
func setPaused(c *call, v operation.Verb) error {
	gk := kindOfRef(c.ref)
	jobs := gk.Group == "batch" && (gk.Kind == "CronJob" || gk.Kind == "Job")
	rollout := gk == schema.GroupKind{Group: "apps", Kind: "Deployment"}
	hold := v != operation.Resume
	c.done = map[operation.Verb]string{operation.Pause: "paused", operation.Resume: "resumed", operation.Suspend: "suspended"}[v]
	switch {
	case rollout && v != operation.Suspend:
		c.body = nestValue(hold, "spec", "paused")
	case jobs && v != operation.Pause:
		c.body = nestValue(hold, "spec", "suspend")
	case v == operation.Pause:
		return unsupportedKind(c.ref, "paused", "deployments")
	case v == operation.Suspend:
		return unsupportedKind(c.ref, "suspended", "cron jobs and jobs")
	default:
		return unsupportedKind(c.ref, "resumed", "deployments, cron jobs and jobs")
	}
	return nil
}

// container is a container of a pod spec, with the list that contains it.
type container struct {
	list string
	object
}

func containersOf(c *call) ([]container, []string, error) {
	path, ok := podSpecs[kindOfRef(c.ref)]
	if !ok {
		return nil, nil, unsupportedKind(c.ref, "changed so", "pods and the kinds that make them")
	}
	spec := valueAt(c.live.Object, path...)
	var found []container
	for _, list := range []string{"containers", "initContainers"} {
		for _, o := range objectsAt(spec, list) {
			found = append(found, container{list, o})
		}
	}
	return found, path, nil
}

func noContainer(c *call, name string, have []container) error {
	names := make([]string, len(have))
	for i, h := range have {
		names[i] = textAt(h.object, "name")
	}
	return operation.Refuse(operation.InvalidArgument, "container", "%s has no container %s; it has %s.", c.ref, operation.Quote(name), strings.Join(names, ", "))
}

// perContainer builds the patch that changes containers by name.
func (c *call) perContainer(path []string, changes map[string][]any) {
	spec := object{}
	for list, items := range changes {
		spec[list] = items
	}
	c.kind, c.body = types.StrategicMergePatchType, nestValue(spec, path...)
}

func setImages(c *call, op operation.Operation) error {
	have, path, err := containersOf(c)
	if err != nil {
		return err
	}
	changes := map[string][]any{}
	for _, h := range have {
		name := textAt(h.object, "name")
		image, named := op.Images[name]
		if !named {
			if image, named = op.Images["*"]; !named {
				continue
			}
		}
		changes[h.list] = append(changes[h.list], object{"name": name, "image": image})
	}
	for _, name := range slices.Sorted(maps.Keys(op.Images)) {
		if name != "*" && !slices.ContainsFunc(have, func(h container) bool { return h.object["name"] == name }) {
			return noContainer(c, name, have)
		}
	}
	c.perContainer(path, changes)
	c.done = "given its image"
	return nil
}

// pickContainers returns the named container, otherwise all except the init containers.
func pickContainers(c *call, name string) ([]container, []string, error) {
	have, path, err := containersOf(c)
	if err != nil {
		return nil, nil, err
	}
	kept := slices.DeleteFunc(slices.Clone(have), func(h container) bool {
		if name == "" || name == "*" {
			return h.list != "containers"
		}
		return h.object["name"] != name
	})
	if len(kept) == 0 {
		return nil, nil, noContainer(c, name, have)
	}
	return kept, path, nil
}

func setResources(c *call, op operation.Operation) error {
	picked, path, err := pickContainers(c, op.Container)
	if err != nil {
		return err
	}
	resources := object{}
	for member, amounts := range map[string]map[string]string{"requests": op.Requests, "limits": op.Limits} {
		if len(amounts) == 0 {
			continue
		}
		values := object{}
		for name, amount := range amounts {
			values[name] = amount
		}
		resources[member] = values
	}
	changes := map[string][]any{}
	for _, h := range picked {
		changes[h.list] = append(changes[h.list], object{"name": h.object["name"], "resources": resources})
	}
	c.perContainer(path, changes)
	c.done = "given its resources"
	return nil
}

func setEnv(c *call, op operation.Operation) error {
	picked, path, err := pickContainers(c, op.Container)
	if err != nil {
		return err
	}
	changes := map[string][]any{}
	for _, h := range picked {
		var env []any
		for _, name := range slices.Sorted(maps.Keys(op.Set)) {
			entry := object{"name": name, "value": op.Set[name]}
			if slices.ContainsFunc(objectsAt(h.object, "env"), func(e object) bool { return e["name"] == name && e["valueFrom"] != nil }) {
				entry["valueFrom"] = nil // a variable has a value or a source
			}
			env = append(env, entry)
		}
		for _, name := range op.Remove {
			env = append(env, object{"name": name, "$patch": "delete"})
		}
		changes[h.list] = append(changes[h.list], object{"name": h.object["name"], "env": env})
	}
	c.perContainer(path, changes)
	c.done = "given its environment"
	return nil
}
