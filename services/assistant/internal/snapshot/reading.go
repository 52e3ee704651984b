package snapshot

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// atOnce limits the kinds read in parallel.
const atOnce = 8

// reading is one snapshot in progress.
type reading struct {
	cluster   *cluster.Cluster
	policy    guard.Policy
	namespace string
	into      *engine.Snapshot
	slots     chan struct{}

	mu     sync.Mutex
	unread map[string]bool // guarded by mu
}

// kind is one kind of object: read fetches it, and returns the number of objects.
type kind struct {
	name string // plural
	read func(ctx context.Context) (n int, whole bool, err error)
	rows func() []string // rows to show after the read; nil: the number
}

// group is the kinds of one shown call.
type group struct {
	op    operation.Operation
	kinds []kind

	done     chan struct{}
	outcomes []outcome
	err      error // the first of its kinds
}

// start reads a group's kinds; its channel closes when all have been read.
func (r *reading) start(ctx context.Context, g *group) {
	g.done, g.outcomes = make(chan struct{}), make([]outcome, len(g.kinds))
	errs := make([]error, len(g.kinds))
	var working sync.WaitGroup
	for i, k := range g.kinds {
		working.Go(func() {
			select {
			case r.slots <- struct{}{}:
			case <-ctx.Done():
				errs[i] = ctx.Err()
				g.outcomes[i] = outcome{name: k.name, err: ctx.Err()}
				r.miss(k.name)
				return
			}
			defer func() { <-r.slots }()
			n, whole, err := k.read(ctx)
			if err != nil || !whole {
				r.miss(k.name)
			}
			errs[i], g.outcomes[i] = err, outcome{name: k.name, n: n, whole: whole, err: err}
			if err == nil && k.rows != nil {
				g.outcomes[i].rows = k.rows()
			}
		})
	}
	go func() {
		working.Wait()
		for _, err := range errs {
			if err != nil && (g.err == nil || isUnreachable(err)) {
				g.err = err
			}
		}
		close(g.done)
	}()
}

// miss records that a kind is incomplete.
func (r *reading) miss(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unread[kind] = true
}

// isUnreachable distinguishes a cluster that does not respond from one that refuses.
func isUnreachable(err error) bool {
	var fail *turn.Fail
	return errors.As(cluster.Fail(err), &fail) && fail.Failure == fault.ClusterUnreachable
}

// has reports whether a kind is in the group.
func (g *group) has(name string) bool {
	return slices.ContainsFunc(g.kinds, func(k kind) bool { return k.name == name })
}

// lost returns the reason to stop reading: the cluster does not respond, or not even the pods arrived in time.
func (g *group) lost() error {
	if g.err != nil && (isUnreachable(g.err) || g.has("pods") && errors.Is(g.err, context.DeadlineExceeded)) {
		return cluster.Fail(g.err)
	}
	return nil
}

// readWide reads a kind in all namespaces, since a rule or a Service elsewhere may matter here. An account without the
// right gets the namespace in question.
func readWide[T any, P interface {
	*T
	metav1.Object
}, L paged](r *reading, name string, list func(namespace string) lister[L], items func(L) []T, to *[]T) kind {
	return kind{name, func(ctx context.Context) (int, bool, error) {
		found, whole, err := readAllPages(ctx, list(""), items, metav1.ListOptions{})
		if apierrors.IsForbidden(err) && r.namespace != "" {
			found, _, err = readAllPages(ctx, list(r.namespace), items, metav1.ListOptions{})
			whole = false
		}
		*to = filterVisible[T, P](r, found)
		return len(*to), whole, err
	}, func() []string { return rowsOf[T, P](*to) }}
}

// readScoped reads a kind in the namespace in question, or in all.
func readScoped[T any, P interface {
	*T
	metav1.Object
}, L paged](r *reading, name string, list func(namespace string) lister[L], items func(L) []T, to *[]T) kind {
	return kind{name, func(ctx context.Context) (int, bool, error) {
		found, whole, err := readAllPages(ctx, list(r.namespace), items, metav1.ListOptions{})
		*to = filterVisible[T, P](r, found)
		return len(*to), whole, err
	}, func() []string { return rowsOf[T, P](*to) }}
}

// preview matches a manifest in an alpha or beta version, which may have been removed; only these manifests are parsed,
// and most objects in clusters are in stable versions.
var preview = regexp.MustCompile(`"apiVersion":\s*"[a-z0-9./-]*(alpha|beta)[0-9]+"`)

// filterVisible removes objects in hidden namespaces, and fields that no rule reads.
func filterVisible[T any, P interface {
	*T
	metav1.Object
}](r *reading, list []T) []T {
	kept := list[:0]
	for i := range list {
		if r.isVisible(P(&list[i])) {
			kept = append(kept, list[i])
		}
	}
	clear(list[len(kept):])
	for i := range kept {
		o := P(&kept[i])
		o.SetManagedFields(nil)
		if notes := o.GetAnnotations(); notes[corev1.LastAppliedConfigAnnotation] != "" {
			if text := notes[corev1.LastAppliedConfigAnnotation]; preview.MatchString(text) {
				notes[corev1.LastAppliedConfigAnnotation] = redact.Text(text)
			} else {
				delete(notes, corev1.LastAppliedConfigAnnotation)
			}
			o.SetAnnotations(notes)
		}
	}
	return kept
}
