package change

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// prepare builds the call of an operation on the current state of one of its objects. at is the
// time of the proposal.
func (s *Service) prepare(ctx context.Context, op operation.Operation, ref operation.Ref, at string) (call, error) {
	switch op.Verb {
	case operation.RunJob, operation.Expose, operation.Autoscale:
		return s.fromSource(ctx, op, ref)
	case operation.Apply, operation.Create, operation.Replace:
		return s.fromManifest(ctx, op, ref)
	}
	live, err := s.read(ctx, ref)
	if err != nil {
		return call{}, err
	}
	c := call{ref: ref, live: live, kind: types.MergePatchType, known: []object{live.Object}}
	switch op.Verb {
	case operation.Scale:
		err = s.scale(ctx, &c, op)
	case operation.Restart:
		err = setRestartedAt(&c, at)
	case operation.Undo:
		err = s.undo(ctx, &c, op)
	case operation.Pause, operation.Resume, operation.Suspend:
		err = setPaused(&c, op.Verb)
	case operation.SetImage:
		err = setImages(&c, op)
	case operation.SetResources:
		err = setResources(&c, op)
	case operation.SetEnv:
		err = setEnv(&c, op)
	case operation.Label:
		err = setMarks(&c, op, "labels", "labelled")
	case operation.Annotate:
		err = setMarks(&c, op, "annotations", "annotated")
	case operation.Patch:
		err = preparePatch(&c, op)
	case operation.Cordon, operation.Uncordon:
		setUnschedulable(&c, op.Verb == operation.Cordon)
	case operation.Taint:
		err = setTaints(&c, op)
	case operation.Delete:
		prepareRemoval(&c, op)
	case operation.Evict:
		c.way, c.done, c.grace = evicts, "evicted", op.GracePeriod
	case operation.Drain:
		setUnschedulable(&c, true)
		c.way, c.done = drains, "drained"
	default:
		err = operation.Refuse(operation.UnknownVerb, "verb", "There is no write %s.", op.Verb)
	}
	return c, err
}

// isBuiltIn reports whether the server can merge lists of a kind by key, which it can for
// built-in kinds only.
func isBuiltIn(o *unstructured.Unstructured) bool {
	return scheme.Scheme.Recognizes(schema.FromAPIVersionAndKind(o.GetAPIVersion(), o.GetKind()))
}

func preparePatch(c *call, op operation.Operation) error {
	if op.PatchType == operation.JSONPatch {
		return prepareJSONPatch(c, op)
	}
	body, err := operation.PatchObject(op.Patch)
	if err != nil {
		return err
	}
	if op.PatchType == "" && isBuiltIn(c.live) {
		c.kind = types.StrategicMergePatchType
	}
	c.body, c.done = body, "patched"
	return nil
}

// setMarks sets and removes labels or annotations.
func setMarks(c *call, op operation.Operation, field, done string) error {
	have, _ := valueAt(c.live.Object, "metadata", field).(object)
	change := object{}
	for name, value := range op.Set {
		if old, taken := have[name]; taken && old != value && !op.Overwrite {
			return operation.Refuse(operation.InvalidArgument, "overwrite", "%s already has %s with another value; request an overwrite to replace it.", c.ref, operation.Quote(name))
		}
		change[name] = value
	}
	for _, name := range op.Remove {
		change[name] = nil
	}
	c.body, c.done = nestValue(change, "metadata", field), done
	return nil
}

func prepareRemoval(c *call, op operation.Operation) {
	c.way, c.done, c.grace, c.cascade = removes, "deleted", op.GracePeriod, metav1.DeletePropagationBackground
	if op.Force && c.grace == nil {
		c.grace = new(int64)
	}
	switch op.Cascade {
	case "foreground":
		c.cascade = metav1.DeletePropagationForeground
	case "orphan":
		c.cascade = metav1.DeletePropagationOrphan
	}
}

// fromManifest prepares the object of one document, or the deletion of a pruned one.
func (s *Service) fromManifest(ctx context.Context, op operation.Operation, ref operation.Ref) (call, error) {
	docs, err := operation.Documents(op.Manifest)
	if err != nil {
		return call{}, err
	}
	i := slices.IndexFunc(docs, func(d operation.Document) bool {
		gv, err := schema.ParseGroupVersion(d.APIVersion)
		return err == nil && gv.Group == ref.Group && d.Kind == ref.Kind && d.Name == ref.Name &&
			(d.Namespace == ref.Namespace || d.Namespace == "" || ref.Namespace == "")
	})
	c := call{way: creates, ref: ref, done: "created"}
	if i >= 0 {
		c.body = docs[i].Object
		meta, _ := c.body["metadata"].(object)
		delete(meta, "namespace")
		if ref.Namespace != "" {
			meta["namespace"] = ref.Namespace
		}
		// Server-set fields are not taken from a manifest; the versions are bound again.
		for _, name := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
			delete(meta, name)
		}
		delete(c.body, "status")
	}
	if op.Verb == operation.Create {
		return c, nil
	}
	if c.live, err = s.readIf(ctx, ref); err != nil {
		return c, err
	}
	if c.live != nil {
		c.known = []object{c.live.Object}
	}
	switch {
	case i < 0 && c.live == nil:
		return c, operation.Refuse(operation.NotFound, "", "%s is not there any more.", ref)
	case i < 0:
		prepareRemoval(&c, operation.Operation{})
		c.done = "pruned"
	case c.live == nil && op.Verb == operation.Replace && !op.Force:
		return c, operation.Refuse(operation.NotFound, "", "%s is not there, so it cannot be replaced.", ref)
	case c.live == nil:
		// Created, not applied: a create fails if another client was faster, while an apply would change its object.
	case op.Verb == operation.Apply:
		c.way, c.kind, c.force, c.done = patches, types.ApplyPatchType, op.Force, "applied"
	case op.Force:
		c.way, c.done, c.grace, c.cascade = recreates, "deleted and created", op.GracePeriod, metav1.DeletePropagationBackground
		if c.grace == nil {
			c.grace = new(int64)
		}
	default:
		c.way, c.done = updates, "replaced"
	}
	return c, nil
}
