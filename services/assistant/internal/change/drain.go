package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

const (
	// maxTold limits the pods named in one sentence.
	maxTold = 10
	// drainPause separates two rounds of evictions: budgets permit more as new pods become
	// ready.
	drainPause = 2 * time.Second
)

// drained names the pods that a drain evicts, and notes the budgets that block some of them
// now. If the drain needs a flag that was not given, it returns a *operation.Fault.
func (s *Service) drained(ctx context.Context, op operation.Operation, c call) ([]operation.Ref, []string, error) {
	pods, err := s.podsOn(ctx, c.ref.Name, op.PodSelector)
	if err != nil {
		return nil, nil, err
	}
	pods, err = filterEvictable(op, c.ref, pods)
	if err != nil {
		return nil, nil, err
	}
	notes, err := s.held(ctx, pods)
	return refsOf(podRef("", ""), pods), notes, err
}

// filterEvictable returns the pods that a drain evicts: not those of the node itself; those of
// daemon sets, with local data or without an owner only on request.
func filterEvictable(op operation.Operation, node operation.Ref, pods []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	stays := map[string][]string{}
	const daemon, local, alone = "belong to daemon sets: ask to ignore these", "have local data: ask to delete it", "have no owner that would make them again: ask with force"
	kept := slices.DeleteFunc(slices.Clone(pods), func(p unstructured.Unstructured) bool {
		if _, mirror := p.GetAnnotations()[corev1.MirrorPodAnnotationKey]; mirror {
			return true
		}
		name := p.GetNamespace() + "/" + p.GetName()
		owner := metav1.GetControllerOf(&p)
		if owner != nil && owner.Kind == "DaemonSet" {
			if !op.IgnoreDaemonSets {
				stays[daemon] = append(stays[daemon], name)
			}
			return true
		}
		if phase := textAt(p.Object, "status", "phase"); phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) {
			return false
		}
		if owner == nil && !op.Force {
			stays[alone] = append(stays[alone], name)
		}
		if !op.DeleteEmptyDirData && slices.ContainsFunc(objectsAt(p.Object, "spec", "volumes"), func(v object) bool { return v["emptyDir"] != nil }) {
			stays[local] = append(stays[local], name)
		}
		return false
	})
	for _, why := range []string{daemon, local, alone} {
		if names := stays[why]; len(names) > 0 {
			return nil, operation.Refuse(operation.InvalidArgument, "", "%s cannot be drained so: %s %s.", node, listSomeNames(names), why)
		}
	}
	return kept, nil
}

func listSomeNames(names []string) string {
	if len(names) > maxTold {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxTold], ", "), len(names)-maxTold)
	}
	return strings.Join(names, ", ")
}

// held notes the disruption budgets that currently block all of these pods.
func (s *Service) held(ctx context.Context, pods []unstructured.Unstructured) (notes []string, err error) {
	r, err := s.Cluster.Resolve(ctx, "poddisruptionbudgets.v1.policy")
	if err != nil {
		return nil, err
	}
	looked := map[string]bool{}
	for _, p := range pods {
		if looked[p.GetNamespace()] {
			continue
		}
		looked[p.GetNamespace()] = true
		budgets, err := s.list(ctx, r.Ref(p.GetNamespace(), ""), metav1.ListOptions{}, maxAffected)
		if err != nil {
			return nil, err
		}
		for _, b := range budgets {
			if numberAt(b.Object, "status", "disruptionsAllowed") > 0 {
				continue
			}
			if names := chosenBy(b, pods); len(names) > 0 {
				notes = append(notes, fmt.Sprintf("The disruption budget %s/%s lets no pod go now; it holds %s.", b.GetNamespace(), b.GetName(), listSomeNames(names)))
			}
		}
	}
	return notes, nil
}

func chosenBy(budget unstructured.Unstructured, pods []unstructured.Unstructured) []string {
	chooses, ok := valueAt(budget.Object, "spec", "selector").(object)
	if !ok {
		return nil
	}
	var by metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(chooses, &by); err != nil {
		return nil
	}
	match, err := metav1.LabelSelectorAsSelector(&by)
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range pods {
		if p.GetNamespace() == budget.GetNamespace() && match.Matches(labels.Set(p.GetLabels())) {
			names = append(names, p.GetName())
		}
	}
	return names
}

// remaining are the pods that a round of evictions left.
type remaining struct {
	pods []string
	why  string // the text of the last refusal
}

// note takes the state after a round. One that was cut short knows less than the one before.
func (r *remaining) note(now remaining, err error) {
	if err == nil || len(r.pods) == 0 {
		*r = now
	}
}

// drain closes the node and evicts its pods, round after round until none is left or
// the time is up. named are those that the approver saw.
func (s *Service) drain(ctx context.Context, op operation.Operation, c call, named []operation.Ref) (string, error) {
	if _, err := s.send(ctx, c, false); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	evicted := map[operation.Ref]bool{}
	var r remaining
	for {
		now, err := s.evictRound(ctx, op, c.ref, named, evicted)
		r.note(now, err)
		if err == nil && len(r.pods) > 0 {
			err = waitFor(ctx, drainPause)
		}
		told := fmt.Sprintf("%s was cordoned and %d pods were evicted.", c.ref, len(evicted))
		switch {
		case err == nil && len(r.pods) == 0:
			return told, nil
		case err == nil:
		case errors.Is(err, context.Canceled):
			return told, err
		default:
			return told, unfinishedDrainError(c.ref, r, err)
		}
	}
}

// unfinishedDrainError describes an incomplete drain. The node stays cordoned: draining it
// again continues where this one ended.
func unfinishedDrainError(node operation.Ref, r remaining, err error) error {
	var text []string
	if len(r.pods) > 0 {
		text = append(text, "These are still there: "+listSomeNames(r.pods)+".")
	}
	switch {
	case r.why != "":
		text = append(text, r.why)
	case !errors.Is(err, context.DeadlineExceeded):
		text = append(text, errorSentence(node, err))
	default:
		text = append(text, fmt.Sprintf("Its %s are over.", drainTime))
	}
	return operation.Refuse(operation.TimedOut, "", "%s The node stays cordoned.", strings.Join(text, " "))
}

// waitFor waits, or returns an error if ctx ends first.
func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// evictRound requests the eviction of every remaining pod once.
func (s *Service) evictRound(ctx context.Context, op operation.Operation, node operation.Ref, named []operation.Ref, evicted map[operation.Ref]bool) (left remaining, err error) {
	pods, err := s.podsOn(ctx, node.Name, op.PodSelector)
	if err != nil {
		return left, err
	}
	if pods, err = filterEvictable(op, node, pods); err != nil {
		return left, err
	}
	for i := range pods {
		p := &pods[i]
		ref := podRef(p.GetNamespace(), p.GetName())
		// The approver has not seen this pod, and its namespace is never written otherwise.
		if slices.Contains(s.Policy.Protected, ref.Namespace) && !slices.Contains(named, ref) {
			left.why = ref.String() + " came after the approval and is in a protected namespace, so it stays."
			left.pods = append(left.pods, ref.Namespace+"/"+ref.Name)
			continue
		}
		left.pods = append(left.pods, ref.Namespace+"/"+ref.Name)
		if p.GetDeletionTimestamp() != nil {
			continue // already terminating
		}
		_, err := s.send(ctx, call{way: evicts, ref: ref, live: p, grace: op.GracePeriod}, false)
		switch {
		case err == nil:
			evicted[ref] = true
		case ctx.Err() != nil:
			return left, ctx.Err()
		case apierrors.IsNotFound(err), isConflict(err): // gone, or looked at again in the next round
		default:
			// A budget may free up, and a lost answer shows in the next round: the uid
			// keeps a second eviction from hitting another pod.
			left.why = errorSentence(ref, err)
		}
	}
	return left, nil
}
