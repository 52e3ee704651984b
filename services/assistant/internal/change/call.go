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

// way is the kind of request that a call makes.
type way int

const (
	patches   way = iota // body is a patch of the type kind
	creates              // body is the object, which must not exist
	updates              // body is the object that replaces the live one
	removes              // deletes
	evicts               // deletes a pod if disruption budgets allow it
	recreates            // deletes and creates; body is the new object
	drains               // patches a node, then evicts its pods
)

// call is one write to one object, made from the object as it was read.
type call struct {
	way  way
	ref  operation.Ref
	live *unstructured.Unstructured // nil if absent
	kind types.PatchType
	body object
	sub  string // subresource that is patched
	// force takes over fields from other owners in an apply.
	force   bool
	grace   *int64
	cascade metav1.DeletionPropagation
	// done is the past participle of the verb, for messages.
	done string
	// revision is the revision that an undo restores.
	revision int64
	// copyOf and sources are the objects that a created object is made from.
	copyOf  object
	sources []operation.Target
	// proofs lists the contents of the object after the call, if they are not the body.
	proofs []object
	// known are objects and revisions whose values are not new in this object.
	known []object
}

// send makes a call bound to the live object, or dry-runs it. The returned object is nil if the
// server returns none.
func (s *Service) send(ctx context.Context, c call, rehearse bool) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if c.kind != types.ApplyPatchType || c.force {
		return s.sendOnce(ctx, c, rehearse)
	}
	o, err := s.sendOnce(ctx, c, true)
	switch {
	case err != nil && onlyOwn(err):
		// Fields that the assistant set by other verbs count as another owner's. The call is bound to the same version, so no
		// other owner can have added fields in between.
		c.force = true
	case rehearse, err != nil && !cannotDryRun(err):
		return o, err
	}
	return s.sendOnce(ctx, c, rehearse)
}

// onlyOwn reports whether an apply conflicts only with the assistant itself.
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

// bound returns the body with the identity and version of the live object as preconditions.
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

// isConflict reports whether a call failed because the version of its object has changed. An
// apply that would take fields from another owner is a different kind of conflict.
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
