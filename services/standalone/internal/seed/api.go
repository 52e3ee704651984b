package seed

import (
	"fmt"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
)

// newClients returns the clients of both services, each under its credential.
func newClients(o Options) (*controlplane.Client, *inference.Client, error) {
	cp, err := controlplane.NewClient(o.ControlPlane, controlplane.WithHTTPClient(o.HTTP), controlplane.WithRequestEditorFn(wire.Bearer(o.ControlPlaneToken)))
	if err != nil {
		return nil, nil, fmt.Errorf("client of the control plane: %w", err)
	}
	inf, err := inference.NewClient(o.Serving, inference.WithHTTPClient(o.HTTP), inference.WithRequestEditorFn(wire.Bearer(o.ServingToken)))
	if err != nil {
		return nil, nil, fmt.Errorf("client of inference: %w", err)
	}
	return cp, inf, nil
}
