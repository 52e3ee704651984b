// Command assistant serves the cluster assistant, migrates its schema, or answers about a recorded cluster.
package main

import (
	"context"
	"log/slog"
	"os"

	"k8s.io/klog/v2"

	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/assistant"
)

func main() {
	os.Exit(startup.Main(startup.Program[assistant.Config]{
		Name: "assistant", AddrVar: "ASSISTANT_ADDR", Addr: "127.0.0.1:18004",
		LoadConfig: assistant.LoadConfig,
		LogLevel:   func(c assistant.Config) string { return c.LogLevel },
		Migrate:    assistant.Migrate,
		Commands:   assistant.Commands(),
		Run: func(ctx context.Context, cfg assistant.Config, log *slog.Logger) error {
			klog.SetSlogLogger(log) // client-go's own lines become the log's
			return assistant.Run(ctx, cfg, log)
		},
	}))
}
