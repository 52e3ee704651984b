//go:build e2e

package eval

import (
	"context"
	"embed"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlp-platform/platform/e2e/kube"
)

//go:embed gatewayapi/*.yaml
var gatewayKinds embed.FS

// serveGatewayAPI makes the cluster serve the Gateway API, and waits until it does.
func (c *cluster) serveGatewayAPI(ctx context.Context) error {
	files, err := gatewayKinds.ReadDir("gatewayapi")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := gatewayKinds.ReadFile("gatewayapi/" + file.Name())
		if err != nil {
			return err
		}
		if err := c.apply(ctx, &Scenario{}, string(text)); err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	c.shared = nil // they stay: no scenario changes them
	return kube.Until(func() error {
		if err := c.discover(); err != nil {
			return err
		}
		for _, kind := range []string{"GatewayClass", "Gateway", "HTTPRoute"} {
			if _, err := c.mapper.RESTMapping(schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: kind}, "v1"); err != nil {
				return err
			}
		}
		return nil
	})
}
