package inference

import (
	"context"
	"log/slog"

	"github.com/mlp-platform/platform/services/inference/internal/busapp"
)

// BridgeConfig is everything the bus bridge can be told.
type BridgeConfig = busapp.Config

// LoadBridgeConfig reads environ (os.Environ); the error lists every fault.
func LoadBridgeConfig(environ []string) (BridgeConfig, error) { return busapp.LoadConfig(environ) }

// RunBridge serves the message bus until ctx ends. It keeps no state; docs/bus.md describes it.
func RunBridge(ctx context.Context, cfg BridgeConfig, log *slog.Logger) error {
	return busapp.Run(ctx, cfg, log)
}
