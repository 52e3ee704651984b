// Command platform runs the whole platform in one process, and talks to a running one.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/standalone"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := &cli.App{
		Name:            "platform",
		Usage:           "the whole model platform in one process",
		Version:         service.Version,
		HideHelpCommand: true,
		Description: "Without a command it starts: embedded Postgres and NATS, a tracker and an orchestrator that speak\n" +
			"their products' REST protocols, inference and control plane. State is kept in PLATFORM_DATA_DIR (.data).",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return fmt.Errorf("unknown command %q; see: platform --help", c.Args().First())
			}
			return withConfig(func(cfg standalone.Config) error { return standalone.Run(c.Context, cfg) })
		},
		Commands: []*cli.Command{
			{Name: "env", Usage: `print the addresses and tokens as export lines: eval "$(bin/platform env)"`, Action: func(c *cli.Context) error {
				return withConfig(func(cfg standalone.Config) error { return standalone.PrintEnv(cfg, os.Stdout) })
			}},
			{Name: "status", Usage: "what runs, where, and whether it is ready", Flags: []cli.Flag{
				&cli.BoolFlag{Name: "json", Usage: "one JSON document"},
			}, Action: func(c *cli.Context) error {
				return withConfig(func(cfg standalone.Config) error { return standalone.Status(c.Context, cfg, os.Stdout, c.Bool("json")) })
			}},
			{Name: "stop", Usage: "ask the running platform to end cleanly, and wait for it", Action: func(c *cli.Context) error {
				return withConfig(func(cfg standalone.Config) error { return standalone.Stop(c.Context, cfg, os.Stdout) })
			}},
		},
	}
	if err := app.RunContext(ctx, os.Args); err != nil {
		fmt.Fprintf(os.Stderr, "platform: %v\n", err)
		os.Exit(1)
	}
}

func withConfig(do func(standalone.Config) error) error {
	cfg, err := standalone.LoadConfig(os.Environ())
	if err != nil {
		return err
	}
	return do(cfg)
}
