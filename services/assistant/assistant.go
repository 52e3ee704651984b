// Package assistant answers questions about a Kubernetes cluster, and changes in it what a person approved.
package assistant

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/assistant/internal/app"
	"github.com/mlp-platform/platform/services/assistant/internal/diagnose"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpbridge"
)

// Config is everything the assistant can be told.
type Config = app.Config

// LoadConfig reads environ (os.Environ); the error lists every fault.
func LoadConfig(environ []string) (Config, error) { return app.LoadConfig(environ) }

// Migrate brings the assistant's schema up to date.
func Migrate(ctx context.Context, cfg Config) error { return app.Migrate(ctx, cfg) }

// Schema is the service's schema with every migration that this program knows.
func Schema() postgres.Schema { return app.Schema() }

// Run serves until ctx ends. It returns nil after an orderly stop.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error { return app.Run(ctx, cfg, log) }

// Events are all that this service publishes.
func Events() outbox.Catalogue { return event.Declared }

// Commands are those of the binary that need neither database nor listener.
func Commands() []startup.Command {
	run := func(verb string) func([]string, io.Reader, io.Writer, io.Writer) int {
		return func(args []string, _ io.Reader, stdout, stderr io.Writer) int {
			return diagnose.Run(verb, args, stdout, stderr)
		}
	}
	return []startup.Command{
		{Name: "diagnose", Usage: "diagnose --from PATH [--namespace NS] [--output json] [QUESTION…]  answers about a recorded cluster", Run: run("diagnose")},
		{Name: "mcp", Usage: "mcp  offers the tools of the assistant at ASSISTANT_URL over stdin and stdout, with ASSISTANT_KEY", Run: func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return mcpbridge.Run(args, os.Getenv, stdin, stdout, stderr)
		}},
		{Name: "evaluate", Usage: "evaluate --recorded DIR [--output json]  measures answers about recordings whose cause is known", Run: run("evaluate")},
	}
}
