package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// way is how a call reaches the server.
type way int

const (
	patches   way = iota // body is a patch of the type kind
	creates              // body is the object, which must not be there
	updates              // body is the object that takes the place of the live one
	removes              // deletes
	evicts               // deletes a pod as disruption budgets allow
	recreates            // deletes and creates; body is the new object
	drains               // patches a node, then evicts its pods
)

// call is one write to one object, made from the object as it was read.
type call struct {
	way  way
	ref  operation.Ref
	live *unstructured.Unstructured // nil: not there
	kind types.PatchType
	body object
	sub  string // subresource that is patched
	// force takes fields from other owners in an apply.
	force   bool
	grace   *int64
	cascade metav1.DeletionPropagation
	// done is the past participle of what it does.
	done string
	// revision is what an undo goes back to.
	revision int64
	// copyOf and sources are what a created object takes over.
	copyOf  object
	sources []operation.Target
	// known are objects and revisions whose values are no news in this object.
	known []object
}

// send makes a call bound to the live object, or rehearses it. The object that the
// server gives back is nil where there is none.
func (s *Service) send(ctx context.Context, c call, rehearse bool) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if c.kind != types.ApplyPatchType || c.force {
		return s.sendOnce(ctx, c, rehearse)
	}
	o, err := s.sendOnce(ctx, c, true)
	switch {
	case err != nil && onlyOwn(err):
		// What the assistant set by other verbs counts as another owner's. It is bound to
		// the same version, so nobody else's field can have come in between.
		c.force = true
	case rehearse, err != nil && !cannotDryRun(err):
		return o, err
	}
	return s.sendOnce(ctx, c, rehearse)
}

// onlyOwn reports whether an apply conflicts with nobody but the assistant itself.
func onlyOwn(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	causes := status.Status().Details.Causes
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict || !strings.HasPrefix(c.Message, fmt.Sprintf("conflict with %q", FieldManager))
	})
}

func (s *Service) sendOnce(ctx context.Context, c call, rehearse bool) (*unstructured.Unstructured, error) {
	var dry []string
	if rehearse {
		dry = []string{metav1.DryRunAll}
	}
	client := s.client(c.ref)
	switch c.way {
	case patches, drains:
		body, err := json.Marshal(c.bound())
		if err != nil {
			return nil, fmt.Errorf("patch of %s: %w", c.ref, err)
		}
		o := metav1.PatchOptions{FieldManager: FieldManager, DryRun: dry, FieldValidation: metav1.FieldValidationStrict}
		if c.kind == types.ApplyPatchType {
			o.Force = &c.force
		}
		if c.sub != "" {
			return client.Patch(ctx, c.ref.Name, c.kind, body, o, c.sub)
		}
		return client.Patch(ctx, c.ref.Name, c.kind, body, o)
	case creates:
		return client.Create(ctx, &unstructured.Unstructured{Object: c.body}, metav1.CreateOptions{FieldManager: FieldManager, DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
	case updates:
		return client.Update(ctx, &unstructured.Unstructured{Object: c.bound()}, metav1.UpdateOptions{FieldManager: FieldManager, DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
	case removes:
		return nil, client.Delete(ctx, c.ref.Name, c.deletion(dry))
	case evicts:
		o := c.deletion(dry)
		return nil, s.Cluster.Typed().PolicyV1().Evictions(c.ref.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: c.ref.Name, Namespace: c.ref.Namespace}, DeleteOptions: &o,
		})
	}
	return nil, fmt.Errorf("%s cannot be sent in one call", c.ref)
}

// bound is the body with the identity and version of the live object as preconditions.
func (c call) bound() object {
	if c.live == nil {
		return c.body
	}
	body := maps.Clone(c.body)
	meta, _ := body["metadata"].(object)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = object{}
	}
	meta["uid"], meta["resourceVersion"] = string(c.live.GetUID()), c.live.GetResourceVersion()
	body["metadata"] = meta
	return body
}

func (c call) deletion(dry []string) metav1.DeleteOptions {
	o := metav1.DeleteOptions{DryRun: dry, GracePeriodSeconds: c.grace}
	if c.cascade != "" {
		o.PropagationPolicy = &c.cascade
	}
	if c.live != nil {
		uid, version := c.live.GetUID(), c.live.GetResourceVersion()
		o.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
	}
	return o
}

// isConflict reports whether a call failed because its object has another version by now. An
// apply that would take fields from another owner is a conflict of another kind.
func isConflict(err error) bool {
	if !apierrors.IsConflict(err) {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == metav1.CauseTypeFieldManagerConflict {
				return false
			}
		}
	}
	return true
}
