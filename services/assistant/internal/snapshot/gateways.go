package snapshot

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
)

// gateways reads the Gateway API of all namespaces, where the cluster serves it: a route, its gateway and its backends may each
// be in another one. Elsewhere no call is made. Where the cluster did not say what it serves, the kinds count as not read.
func (r *reading) gateways(ctx context.Context, show Show, served []cluster.Resource) error {
	s := r.into
	var http, grpc, tls []gatewayapi.Route
	var kinds []kind
	r.into.GatewayKinds = map[string]bool{}
	for plural, add := range map[string]func(cluster.Resource) kind{
		"gateways":        func(k cluster.Resource) kind { return readCustom(r, k, &s.Gateways) },
		"gatewayclasses":  func(k cluster.Resource) kind { return readCustom(r, k, &s.GatewayClasses) },
		"httproutes":      func(k cluster.Resource) kind { return readCustom(r, k, &http) },
		"grpcroutes":      func(k cluster.Resource) kind { return readCustom(r, k, &grpc) },
		"tlsroutes":       func(k cluster.Resource) kind { return readCustom(r, k, &tls) },
		"referencegrants": func(k cluster.Resource) kind { return readCustom(r, k, &s.ReferenceGrants) },
	} {
		at := slices.IndexFunc(served, func(k cluster.Resource) bool {
			return k.Group == gatewayapi.Group && k.Resource == plural && k.Can("list")
		})
		if at < 0 {
			if served == nil || r.cluster.Unlisted(gatewayapi.Group) {
				r.miss(plural)
			}
			continue
		}
		r.into.GatewayKinds[plural] = true
		kinds = append(kinds, add(served[at]))
	}
	if len(kinds) == 0 {
		return nil
	}
	slices.SortFunc(kinds, func(a, b kind) int { return rankGatewayKind(a.name) - rankGatewayKind(b.name) })
	g := r.everywhere(kinds...)
	done := show(g.op)
	r.start(ctx, g)
	<-g.done
	done(g.result())
	s.Routes = slices.Concat(http, grpc, tls)
	return g.lost()
}

// rankGatewayKind orders the kinds from where traffic enters to where it goes.
func rankGatewayKind(plural string) int {
	return slices.Index([]string{"gatewayclasses", "gateways", "httproutes", "grpcroutes", "tlsroutes", "referencegrants"}, plural)
}

// customList is a list of custom resources, in types of this service.
type customList[T any] struct {
	metav1.ListMeta
	items []T
}

// readCustom reads custom resources of all namespaces. One that has not the form of its type is left out, and its kind counts as
// not read whole.
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
