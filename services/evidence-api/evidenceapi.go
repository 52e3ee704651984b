package evidenceapi

import (
	"context"
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/services/evidence-api/internal/app"
)

// Defaults of what can be chosen.
const (
	DefaultPort               = app.DefaultPort
	DefaultRequestTimeout     = app.DefaultRequestTimeout
	DefaultConcurrentRequests = app.DefaultConcurrentRequests
	DefaultStreams            = app.DefaultStreams
)

// Version is the build's version; the linker sets it.
var Version = "dev"

// Config is the complete configuration of the server.
type Config = app.Config

// Token is the secret that callers present. It prints as [redacted].
type Token = app.Token

// Tower is where a started server is reached.
type Tower = app.Tower

// LoadConfig reads environ (os.Environ); the error lists every fault.
func LoadConfig(environ []string) (Config, error) {
	cfg, err := app.LoadConfig(environ)
	cfg.Version = Version
	return cfg, err
}

// Seconds reads a duration as flags and variables give it: decimal seconds above 0.
func Seconds(text string) (time.Duration, error) { return app.Seconds(text) }

// Run serves until ctx ends, then drains and returns nil. The server never writes: its
// caller creates or migrates the store first.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if cfg.Version == "" {
		cfg.Version = Version
	}
	return app.Run(ctx, cfg, log)
}
