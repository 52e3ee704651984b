package snapshot

import (
	"context"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
)

// gateways reads the Gateway API of all namespaces: a route, its gateway and its backends may each be in another one.
func (r *reading) gateways(ctx context.Context, show Show, served []cluster.Resource) (err error) {
	s := r.into
	var http, grpc, tls []gatewayapi.Route
	s.GatewayKinds, err = r.customs(ctx, show, served,
		// In the order from where traffic enters to where it goes.
		newCustom(gatewayapi.Group, "gatewayclasses", &s.GatewayClasses),
		newCustom(gatewayapi.Group, "gateways", &s.Gateways),
		newCustom(gatewayapi.Group, "httproutes", &http),
		newCustom(gatewayapi.Group, "grpcroutes", &grpc),
		newCustom(gatewayapi.Group, "tlsroutes", &tls),
		newCustom(gatewayapi.Group, "referencegrants", &s.ReferenceGrants),
	)
	s.Routes = slices.Concat(http, grpc, tls)
	return err
}
