package change

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// maxTargets limits the objects of one operation.
const maxTargets = 500

// chosen is an operation in its stored form, with the objects that it names.
type chosen struct {
	op    operation.Operation
	scope string // namespace of the requester, for operations that name none
	refs  []operation.Ref
	docs  []operation.Document // of the manifest; the i-th is of refs[i], pruned ones follow
	kinds []cluster.Resource
}

// choose resolves kinds, selectors and manifests. The returned operation is complete: with its
// own namespace and the plain name of its kind; choosing again returns the same.
func (s *Service) choose(ctx context.Context, op operation.Operation, scope string) (chosen, error) {
	if err := op.Validate(); err != nil {
		return chosen{}, err
	}
	if !op.Verb.Writes() {
		return chosen{}, operation.Refuse(operation.InvalidArgument, "verb", "%s changes nothing.", op.Verb)
	}
	c := chosen{op: op, scope: scope}
	var err error
	if op.Manifest != "" {
		err = s.chooseDocuments(ctx, &c)
	} else {
		err = s.chooseObjects(ctx, &c)
	}
	if err != nil {
		return c, err
	}
	if !slices.ContainsFunc(c.kinds, func(r cluster.Resource) bool { return r.Namespaced }) {
		c.op.Namespace = ""
	}
	for i, ref := range c.refs {
		if slices.ContainsFunc(c.refs[:i], func(r operation.Ref) bool { return sameRef(r, ref) }) {
			return c, operation.Refuse(operation.InvalidArgument, "names", "%s is named twice.", ref)
		}
	}
	return c, nil
}

// namespace returns the namespace of objects that name none.
func (c *chosen) namespace() string {
	c.op.Namespace = cmp.Or(c.op.Namespace, c.scope, corev1.NamespaceDefault)
	return c.op.Namespace
}

func (s *Service) kind(ctx context.Context, c *chosen, name string) (cluster.Resource, error) {
	r, err := s.Cluster.Resolve(ctx, name)
	if err == nil {
		c.kinds = append(c.kinds, r)
	}
	return r, err
}

func (s *Service) chooseObjects(ctx context.Context, c *chosen) error {
	for _, o := range c.op.Objects() {
		r, err := s.kind(ctx, c, o.Kind)
		if err != nil {
			return err
		}
		ref := r.Ref(c.namespace(), o.Name)
		switch c.op.Verb {
		case operation.RunJob:
			ref, err = s.made(ctx, c, "jobs.v1.batch", c.op.NewName)
		case operation.Expose:
			ref, err = s.made(ctx, c, "services.v1", cmp.Or(c.op.NewName, o.Name))
		case operation.Autoscale:
			ref, err = s.made(ctx, c, "horizontalpodautoscalers.v2.autoscaling", o.Name)
		}
		if err != nil {
			return err
		}
		if ref.Name != "" {
			c.refs = append(c.refs, ref)
			continue
		}
		if err := s.selected(ctx, c, r); err != nil {
			return err
		}
	}
	return s.plainKind(ctx, c)
}

// made returns the object that an operation on another one creates.
func (s *Service) made(ctx context.Context, c *chosen, kind, name string) (operation.Ref, error) {
	r, err := s.Cluster.Resolve(ctx, kind)
	return r.Ref(c.namespace(), name), err
}

func (s *Service) selected(ctx context.Context, c *chosen, r cluster.Resource) error {
	of := r.Ref(c.namespace(), "")
	found, err := s.list(ctx, of, metav1.ListOptions{LabelSelector: c.op.LabelSelector, FieldSelector: c.op.FieldSelector}, maxTargets-len(c.refs))
	if err != nil {
		return err
	}
	if len(c.refs)+len(found) > maxTargets {
		return operation.Refuse(operation.TooLarge, "", "This chooses more than %d objects; choose fewer.", maxTargets)
	}
	for _, o := range found {
		c.refs = append(c.refs, r.Ref(o.GetNamespace(), o.GetName()))
	}
	return nil
}

// plainKind replaces a single kind by its plain name, so that deploy/api and
// deployments.apps/api are one operation with one digest.
func (s *Service) plainKind(ctx context.Context, c *chosen) error {
	if len(c.kinds) == 0 || strings.Contains(c.op.Kind, ",") || c.op.Kind == "" {
		return nil
	}
	first := c.kinds[0]
	plain := strings.ToLower(first.Kind)
	r, err := s.Cluster.Resolve(ctx, plain)
	if err != nil || r.GVR() != first.GVR() {
		return nil // the given name stays
	}
	c.op.Kind = plain
	c.op = operation.Normalize(c.op)
	return nil
}

func (s *Service) chooseDocuments(ctx context.Context, c *chosen) error {
	docs, err := operation.Documents(c.op.Manifest)
	if err != nil {
		return err
	}
	own := ""
	for i, d := range docs {
		r, err := s.kind(ctx, c, kindOf(d))
		if err != nil {
			return err
		}
		switch {
		case !r.Namespaced:
		case d.Namespace == "":
			docs[i].Namespace = c.namespace()
		default:
			own = d.Namespace
		}
		c.refs = append(c.refs, r.Ref(docs[i].Namespace, d.Name))
	}
	for _, ref := range c.refs {
		if ref.Namespace != "" && c.op.Namespace != "" && ref.Namespace != c.op.Namespace {
			return operation.Refuse(operation.InvalidArgument, "namespace", "One object says namespace %s, and %s is to hold the others; say the namespace of each.", own, c.op.Namespace)
		}
	}
	c.docs = docs
	if c.op.Verb == operation.Apply && c.op.Prune {
		return s.choosePruned(ctx, c)
	}
	return nil
}

func kindOf(d operation.Document) string {
	group, version, ok := strings.Cut(d.APIVersion, "/")
	if !ok {
		group, version = "", d.APIVersion
	}
	return strings.TrimSuffix(d.Kind+"."+version+"."+group, ".")
}

// choosePruned adds the objects that were applied earlier, have a kind and namespace of the
// manifest, and are no longer in it.
func (s *Service) choosePruned(ctx context.Context, c *chosen) error {
	var looked []operation.Ref
	for i, r := range c.kinds {
		of := r.Ref(c.refs[i].Namespace, "")
		if slices.Contains(looked, of) {
			continue
		}
		looked = append(looked, of)
		found, err := s.list(ctx, of, metav1.ListOptions{LabelSelector: c.op.LabelSelector}, maxTargets)
		if err != nil {
			return err
		}
		if len(found) > maxTargets {
			return operation.Refuse(operation.TooLarge, "prune", "More than %d objects would have to be looked at; choose fewer.", maxTargets)
		}
		for _, o := range found {
			ref := r.Ref(o.GetNamespace(), o.GetName())
			if wasApplied(o) && !slices.ContainsFunc(c.refs, func(have operation.Ref) bool { return sameRef(have, ref) }) {
				c.refs = append(c.refs, ref)
			}
		}
	}
	if len(c.refs) > maxTargets {
		return operation.Refuse(operation.TooLarge, "prune", "This would touch more than %d objects; choose fewer.", maxTargets)
	}
	return nil
}

// wasApplied reports whether an object came from a manifest: objects that controllers created
// did not, and are not pruned.
func wasApplied(o unstructured.Unstructured) bool {
	if metav1.GetControllerOf(&o) != nil {
		return false
	}
	if _, ok := o.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; ok {
		return true
	}
	for _, m := range o.GetManagedFields() {
		if m.Operation == metav1.ManagedFieldsOperationApply || m.Manager == FieldManager {
			return true
		}
	}
	return false
}
