package change

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// maxSkew is how far the cluster's clock may lag behind ours for a write to be recognised as
// this action's. Beyond that the outcome is unclear, which is safe.
const maxSkew = 2 * time.Second

// Probe implements action.Probe. One object that differs from the others makes the whole unclear.
func (s *Service) Probe(ctx context.Context, a action.Action) (action.Effect, error) {
	var seen []action.Effect
	for i, e := range a.Observed {
		stamp := e.At
		if i < len(a.Operations) {
			stamp = a.Operations[i].At
		}
		for _, t := range e.Targets {
			effect, err := s.probe(ctx, a, e, t, stamp)
			if err != nil {
				return action.Unclear, cluster.Fail(err)
			}
			seen = append(seen, effect)
			if effect == action.Unclear || effect != seen[0] {
				return action.Unclear, nil
			}
		}
	}
	if len(seen) == 0 {
		return action.Unclear, nil
	}
	return seen[0], nil
}

func (s *Service) probe(ctx context.Context, a action.Action, e operation.Expanded, t operation.Target, stamp string) (action.Effect, error) {
	live, err := s.readIf(ctx, t.Ref)
	if err != nil {
		return action.Unclear, err
	}
	switch {
	case live == nil && t.UID == "":
		c, err := s.rebuild(ctx, e, t, stamp)
		if refused := (*operation.Fault)(nil); err != nil && !errors.As(err, &refused) {
			return action.Unclear, err
		}
		if err != nil || isShortLived(c) {
			return action.Unclear, nil // it may have existed before
		}
		return action.Unmoved, nil
	case live != nil && t.UID != "" && string(live.GetUID()) == t.UID && live.GetResourceVersion() == t.ResourceVersion:
		return action.Unmoved, nil
	}
	c, err := s.rebuild(ctx, e, t, stamp)
	if refused := (*operation.Fault)(nil); errors.As(err, &refused) {
		return action.Unclear, nil // it cannot be rebuilt from the present state
	}
	if err != nil {
		return action.Unclear, err
	}
	same := live != nil && string(live.GetUID()) == t.UID
	switch c.way {
	case removes, evicts:
		// It is deleted, no matter by which client.
		if !same || live.GetDeletionTimestamp() != nil {
			return action.Present, nil
		}
		return action.Unclear, nil
	case drains:
		pods, err := s.podsOn(ctx, t.Ref.Name, e.PodSelector)
		if err != nil {
			return action.Unclear, err
		}
		if pods, err = filterEvictable(e.Operation, t.Ref, pods); err != nil || len(pods) > 0 {
			return action.Unclear, nil
		}
	case creates, recreates:
		same = live != nil && !same
	}
	if same && provesWrite(live, c, a.StartedAt) {
		return action.Present, nil
	}
	return action.Unclear, nil
}

// provesWrite reports whether an object is as a call leaves it, and the cluster records that the assistant made it so.
func provesWrite(live *unstructured.Unstructured, c call, started *time.Time) bool {
	proofs := c.proofs
	if len(proofs) == 0 {
		proofs = []object{c.body}
	}
	return !slices.ContainsFunc(proofs, func(proof object) bool {
		return !satisfiesBody(live.Object, proof, false) || !writtenByUs(live, proof, started)
	})
}

// isShortLived reports whether an object that a call creates may already be gone.
func isShortLived(c call) bool {
	return valueAt(c.body, "spec", "ttlSecondsAfterFinished") != nil || c.copyOf == nil && ownerReferences(c.body) != nil
}

// rebuild returns the call as it was made, as far as its body is concerned.
func (s *Service) rebuild(ctx context.Context, e operation.Expanded, t operation.Target, stamp string) (call, error) {
	switch {
	case e.Verb == operation.Delete:
		return call{way: removes}, nil
	case e.Verb == operation.Evict:
		return call{way: evicts}, nil
	case e.Verb == operation.Undo && len(e.Sources) == 1:
		// A rollback gives its revision a new number.
		kept, err := s.readIf(ctx, e.Sources[0].Ref)
		if err != nil || kept == nil {
			return call{}, errors.Join(err, operation.Refuse(operation.NotFound, "revision", "The revision is gone."))
		}
		r := revision{ref: e.Sources[0].Ref, kept: *kept}
		if fingerprintOf(r) != e.Sources[0].Fingerprint {
			return call{}, operation.Refuse(operation.Conflict, "revision", "The revision has changed.")
		}
		return call{body: rollbackPatch(t.Ref, r)}, nil
	case e.PatchType == operation.JSONPatch:
		// Rebuilt from the present object, it would be another change.
		live, err := s.readIf(ctx, t.Ref)
		if err != nil || live == nil {
			return call{}, errors.Join(err, operation.Refuse(operation.NotFound, "", "%s is gone.", t.Ref))
		}
		steps, err := operation.PatchSteps(e.Patch)
		if err != nil {
			return call{}, err
		}
		proofs, ok := provingBodies(live.Object, steps)
		if !ok {
			return call{}, operation.Refuse(operation.InvalidArgument, "patch", "Whether the patch was made cannot be seen.")
		}
		return call{proofs: proofs}, nil
	}
	c, err := s.prepare(ctx, e.Operation, t.Ref, stamp)
	if err == nil && t.UID == "" && c.way != recreates {
		c.way = creates // an apply or replace of an absent object
	}
	return c, err
}

// writtenByUs reports whether the cluster records that the assistant wrote some of these fields
// after the action began. A write that only removes fields leaves no such record.
func writtenByUs(live *unstructured.Unstructured, body object, started *time.Time) bool {
	if started == nil {
		return false
	}
	for _, m := range live.GetManagedFields() {
		if m.Manager != FieldManager || m.Time == nil || m.FieldsV1 == nil || m.Time.Time.Before(started.Add(-maxSkew)) {
			continue
		}
		var fields object
		if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields); err == nil && ownsValue(fields, body) {
			return true
		}
	}
	return false
}

// ownsValue reports whether any value of a body is at a path in the fields.
func ownsValue(fields object, body any) bool {
	switch body := body.(type) {
	case object:
		for key, value := range body {
			inner, ok := fields["f:"+key].(object)
			if ok && value != nil && (len(inner) == 0 || ownsValue(inner, value)) {
				return true
			}
		}
	case []any:
		for _, item := range body {
			entry, ok := item.(object)
			if !ok || entry["$patch"] != nil {
				continue
			}
			for key, inner := range fields {
				inner, ok := inner.(object)
				if ok && key == `k:{"name":`+quoteJSON(textAt(entry, "name"))+`}` && ownsValue(inner, entry) {
					return true
				}
			}
		}
	}
	return false
}

func quoteJSON(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(raw)
}
