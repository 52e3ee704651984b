package snapshot

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
)

// custom is a kind of custom resource.
type custom struct {
	group, plural string
	read          func(*reading, cluster.Resource) kind
}

func newCustom[T any, P interface {
	*T
	metav1.Object
}](group, plural string, to *[]T) custom {
	return custom{group, plural, func(r *reading, k cluster.Resource) kind { return readCustom[T, P](r, k, to) }}
}

// customs reads those of the kinds that the cluster serves, in all namespaces, as one shown call, and returns which
// these are, by plural. For others no call is made. If the served kinds are unknown, these count as unread.
func (r *reading) customs(ctx context.Context, show Show, served []cluster.Resource, all ...custom) (map[string]bool, error) {
	there := map[string]bool{}
	var kinds []kind
	for _, c := range all {
		at := slices.IndexFunc(served, func(k cluster.Resource) bool {
			return k.Group == c.group && k.Resource == c.plural && k.Can("list")
		})
		if at < 0 {
			if served == nil || r.cluster.Unlisted(c.group) {
				r.miss(c.plural)
			}
			continue
		}
		there[c.plural] = true
		kinds = append(kinds, c.read(r, served[at]))
	}
	if len(kinds) == 0 {
		return there, nil
	}
	g := r.everywhere(kinds...)
	done := show(g.op)
	r.start(ctx, g)
	<-g.done
	done(g.result())
	return there, g.lost()
}

// customList is a list of custom resources, as types of this service.
type customList[T any] struct {
	metav1.ListMeta
	items []T
}

// readCustom reads custom resources of all namespaces. It skips one that does not fit its type, and marks its kind as
// incomplete.
func readCustom[T any, P interface {
	*T
	metav1.Object
}](r *reading, k cluster.Resource, to *[]T) kind {
	client := r.cluster.Dynamic().Resource(k.GVR())
	list := func(namespace string) lister[*customList[T]] {
		return func(ctx context.Context, o metav1.ListOptions) (*customList[T], error) {
			read := client.List
			if namespace != "" && k.Namespaced {
				read = client.Namespace(namespace).List
			}
			found, err := read(ctx, o)
			if err != nil {
				return nil, err
			}
			l := &customList[T]{ListMeta: metav1.ListMeta{Continue: found.GetContinue(), RemainingItemCount: found.GetRemainingItemCount()}, items: make([]T, 0, len(found.Items))}
			for i := range found.Items {
				item, err := decodeCustom[T](&found.Items[i])
				if err != nil {
					r.miss(k.Resource)
					continue
				}
				l.items = append(l.items, item)
			}
			return l, nil
		}
	}
	return readWide[T, P](r, k.Resource, list, func(l *customList[T]) []T { return l.items }, to)
}

func decodeCustom[T any](o *unstructured.Unstructured) (item T, err error) {
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &item)
	return item, err
}
