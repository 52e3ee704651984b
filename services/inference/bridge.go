package inference

import (
	"context"
	"log/slog"

	"github.com/mlp-platform/platform/services/inference/internal/bus"
	"github.com/mlp-platform/platform/services/inference/internal/busapp"
	"github.com/mlp-platform/platform/services/inference/internal/direct"
)

// BridgeConfig holds all settings of the bus bridge.
type BridgeConfig = busapp.Config

// LinkBridge lets a bridge call the service of the same process without a connection between them.
func LinkBridge(service *Config, bridge *BridgeConfig) {
	service.Link = &direct.Link{}
	bridge.Link = service.Link
}

// LoadBridgeConfig reads environ (os.Environ); the error lists every fault.
func LoadBridgeConfig(environ []string) (BridgeConfig, error) { return busapp.LoadConfig(environ) }

// BusResults is the subject of the results of jobs.
const BusResults = bus.SubjectResults

// BusRequests are the subjects that the bridge serves, for the broker's permissions.
func BusRequests() []string {
	return []string{bus.SubjectInfer + "*", bus.SubjectVector + "*", bus.SubjectRetrain, bus.SubjectJobs}
}

// RunBridge serves the message bus until ctx ends. It keeps no state; docs/bus.md describes it.
func RunBridge(ctx context.Context, cfg BridgeConfig, log *slog.Logger) error {
	return busapp.Run(ctx, cfg, log)
}
