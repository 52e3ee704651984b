package change

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// atOnce limits the objects read in parallel.
const atOnce = 8

// plan expands, dry-runs and judges the operations. A non-nil scope, which may be empty, means
// that they are being proposed.
func (s *Service) plan(ctx context.Context, ops []operation.Operation, c guard.Case, scope *string) (action.Plan, error) {
	ctx, warnings := cluster.Warnings(ctx)
	p, changed, err := s.planned(ctx, ops, c, scope)
	if err != nil {
		return action.Plan{}, cluster.Fail(err)
	}
	p.Command = kubectlLine(p.Operations)
	if scope != nil && !changed && p.Verdict.Answer != guard.Refuse {
		return action.Plan{}, operation.Refuse(operation.InvalidArgument, "", "Nothing would change: the cluster is so already.")
	}
	for _, w := range warnings() {
		p.Verdict.Notes = append(p.Verdict.Notes, "The server warns: "+w)
	}
	// Notes quote values, both new ones and those from logs.
	for i, note := range p.Verdict.Notes {
		p.Verdict.Notes[i] = redact.Text(note)
	}
	return p, nil
}

func (s *Service) planned(ctx context.Context, ops []operation.Operation, c guard.Case, scope *string) (p action.Plan, changed bool, err error) {
	ops = slices.Clone(ops)
	for i, o := range ops {
		ops[i] = operation.Normalize(o)
		p.Operations = append(p.Operations, operation.Expanded{Operation: ops[i]})
		if v := s.Policy.Precheck(c.Role, ops[i]); v.Answer == guard.Refuse {
			return refusedPlan(p, v), false, nil
		}
	}
	within := ""
	if scope != nil {
		within = *scope
	}
	all := make([]chosen, len(ops))
	for i, o := range ops {
		if all[i], err = s.choose(ctx, o, within); err != nil {
			return p, false, err
		}
		p.Operations[i] = operation.Expanded{Operation: all[i].op, Targets: make([]operation.Target, len(all[i].refs))}
		for j, ref := range all[i].refs {
			p.Operations[i].Targets[j].Ref = ref
		}
	}
	if v := s.Policy.Reach(c.Role, p.Operations); v.Answer == guard.Refuse {
		return refusedPlan(p, v), false, nil
	}
	uid, err := s.Cluster.UID(ctx)
	if err != nil {
		return p, false, err
	}
	var notes []string
	stamp := s.Now().UTC().Format(time.RFC3339)
	namespaces := madeNamespaces(all)
	for i := range p.Operations {
		seen, err := s.look(ctx, all[i], stamp, namespaces)
		if err != nil {
			return p, false, err
		}
		e := &p.Operations[i]
		told, err := s.expand(ctx, e, seen, &c, stamp)
		if err != nil {
			return p, false, err
		}
		notes = append(notes, told...)
		for _, r := range seen {
			changed = changed || r.after == nil || r.call.live == nil || r.call.way == drains || r.call.way == recreates || !sameWanted(r.call.live.Object, r.after)
		}
	}
	c.Operations = p.Operations
	p.Digest = operation.Digest(uid, p.Operations)
	p.Verdict = s.Policy.Judge(c)
	p.Verdict.Notes = append(p.Verdict.Notes, notes...)
	p.Diff = diffChanges(c.Changes)
	return p, changed, nil
}

// refusedPlan is the plan of operations that were refused before being examined.
func refusedPlan(p action.Plan, v guard.Verdict) action.Plan {
	p.Verdict, p.Digest = v, operation.Digest("", p.Operations)
	return p
}

// madeNamespaces returns the namespaces that the action itself creates: objects in them cannot
// be dry-run.
func madeNamespaces(all []chosen) map[string]bool {
	made := map[string]bool{}
	for _, c := range all {
		for _, ref := range c.refs {
			if ref.Group == "" && ref.Kind == "Namespace" && c.op.Manifest != "" {
				made[ref.Name] = true
			}
		}
	}
	return made
}

// look dry-runs an operation on each of its objects.
func (s *Service) look(ctx context.Context, c chosen, stamp string, made map[string]bool) ([]rehearsal, error) {
	seen, faults := make([]rehearsal, len(c.refs)), make([]error, len(c.refs))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, ref := range c.refs {
		g.Go(func() error {
			if seen[i], faults[i] = s.rehearse(ctx, c.op, ref, stamp, made[ref.Namespace]); faults[i] != nil {
				faults[i] = callError(ref, faults[i])
			}
			return nil
		})
	}
	_ = g.Wait() // faults has the errors; the first object's is returned, whichever came first
	for _, err := range faults {
		if err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// expand adds to an operation the state that was read of its objects.
func (s *Service) expand(ctx context.Context, e *operation.Expanded, seen []rehearsal, c *guard.Case, stamp string) (notes []string, err error) {
	for i, r := range seen {
		if seen[i].removes, err = s.removed(ctx, r); err != nil {
			return nil, err
		}
		e.Targets[i] = bindTarget(e.Operation, e.Targets[i].Ref, r.call.live)
		e.Sources = append(e.Sources, r.call.sources...)
		e.NoDryRun = e.NoDryRun || r.unrehearsed
		for _, known := range r.call.known {
			c.Known = append(c.Known, guard.SpecTexts(known)...)
		}
		change := guard.Change{Ref: e.Targets[i].Ref, After: r.after, CopyOf: r.call.copyOf, Removes: seen[i].removes}
		if r.call.live != nil {
			change.Before = r.call.live.Object
			// Values of an earlier revision are not new.
			if !c.OriginJudged && podSpecs[kindOfRef(change.Ref)] != nil && r.after != nil {
				old, err := s.revisions(ctx, r.call.live, change.Ref)
				if err != nil {
					return nil, err
				}
				for _, o := range old {
					c.Known = append(c.Known, guard.SpecTexts(o.kept.Object)...)
				}
			}
		}
		c.Changes = append(c.Changes, change)
	}
	switch e.Verb {
	case operation.Restart:
		e.At = stamp
	case operation.Undo:
		if n := revisionOf(seen); n > 0 {
			e.Revision = n // "the previous revision" would be another one after the next rollout
		}
	}
	e.Affected, notes, err = s.affected(ctx, *e, seen)
	return notes, err
}

func revisionOf(seen []rehearsal) int64 {
	if len(seen) == 0 {
		return 0
	}
	return seen[0].call.revision
}

// rehearsal is the result of a dry run.
type rehearsal struct {
	call        call
	after       object // nil: the object is gone
	unrehearsed bool
	removes     []operation.Ref // objects that a controller deletes as a result
}

// maxMoves limits how often a call is rebuilt because its object got another version with the
// same wanted state.
const maxMoves = 5

// rehearse dry-runs a call on the server.
func (s *Service) rehearse(ctx context.Context, op operation.Operation, ref operation.Ref, stamp string, made bool) (r rehearsal, err error) {
	for range maxMoves {
		if r.call, err = s.prepare(ctx, op, ref, stamp); err != nil {
			return r, err
		}
		var after *unstructured.Unstructured
		after, err = s.dryRun(ctx, r.call)
		switch {
		case err == nil && after != nil:
			r.after = after.Object
			return r, nil
		case err == nil:
			return r, nil
		case isConflict(err) && r.call.live != nil:
			continue
		case cannotDryRun(err) || made && r.call.way == creates && absentNamespace(err):
			r.unrehearsed = true
			r.after, err = computeLocally(r.call)
			return r, err
		}
		return r, err
	}
	return r, fmt.Errorf("read it in peace: %w", err)
}

// dryRun makes the call without effect. The object is nil if it would be deleted.
func (s *Service) dryRun(ctx context.Context, c call) (*unstructured.Unstructured, error) {
	if c.way == recreates {
		gone := c
		gone.way = removes
		if _, err := s.send(ctx, gone, true); err != nil {
			return nil, err
		}
		c.way = updates // the closest that the server can dry-run
		after, err := s.send(ctx, c, true)
		if err != nil && !isConflict(err) {
			return nil, errUndryable{err}
		}
		return after, err
	}
	after, err := s.send(ctx, c, true)
	if err != nil || c.sub != "scale" {
		return after, err
	}
	// The server returned a Scale, not the object.
	whole := c.live.DeepCopy()
	return whole, unstructured.SetNestedField(whole.Object, numberAt(after.Object, "spec", "replicas"), "spec", "replicas")
}
