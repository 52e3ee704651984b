// Package tower is `svc control-tower`: it serves the evidence API on this machine.
package tower

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/store"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
)

// Variables of the environment that the tower reads.
const (
	tokenEnv     = "SVC_CONTROL_TOWER_TOKEN"
	accessLogEnv = "SVC_HTTP_ACCESS_LOG"
)

// Commands are those of this package.
func Commands(e *command.Env) []*cli.Command {
	return []*cli.Command{towerCommand(e)}
}

func towerCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "control-tower", Category: "Runs and evidence", Usage: "serve the evidence API and its page on this machine", ArgsUsage: "[REPORT]",
		Description: "Prints an address that opens the page once, with the token; Enter prints another. The page opens on REPORT,\n" +
			"or on a sample. Programs and server read the shared token from $" + tokenEnv + "; if it is\n" +
			"unset, a random token is generated and never shown. Ctrl-C waits for requests to finish; a second\n" +
			"Ctrl-C stops at once.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "no-browser", Usage: "print the address only", DisableDefaultText: true},
			&cli.StringFlag{Name: "port", Usage: "`N`, 0 for any free port", DefaultText: strconv.Itoa(evidenceapi.DefaultPort)},
			&cli.StringFlag{Name: "product-spine-store", Usage: "serve the store at `PATH`, which is made or migrated if need be"},
			&cli.StringFlag{Name: "request-timeout", Usage: "`SECONDS` for head, body and answer, 0.1 to 300", DefaultText: "10.0"},
			&cli.StringFlag{Name: "max-concurrent-requests", Usage: "`N` requests at once, 1 to 1024", DefaultText: "16"},
			&cli.StringFlag{Name: "max-sse-clients", Usage: "`N` event streams at once, 1 to 64", DefaultText: "8"},
		},
		Action: e.Action(command.Envelope, func(c *cli.Context) error { return runTower(e, c) }),
	}
}

func runTower(e *command.Env, c *cli.Context) error {
	cfg, err := readConfig(e, c)
	if err != nil {
		return err
	}
	if cfg.StorePath != "" {
		if err := store.Create(c.Context, cfg.StorePath, store.WriterOptions{}); err != nil {
			f := command.FaultOf(err)
			fmt.Fprintf(e.Stderr, "warning: the store cannot be prepared, its reads will answer store_error: %s\n", command.Clean(f.Message))
		}
	}
	abort, done := secondSignal()
	defer done()
	cfg.Abort = abort
	cfg.Started = func(t evidenceapi.Tower) { e.Launch("control-tower", t.URL, t.Launch, !c.Bool("no-browser")) }
	log := slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := evidenceapi.Run(c.Context, cfg, log); err != nil {
		return command.Failf("control_tower_failed", "%w", err)
	}
	return nil
}

// readConfig validates everything before anything listens, and reports all errors together.
func readConfig(e *command.Env, c *cli.Context) (evidenceapi.Config, error) {
	args, err := command.Arguments(c, "[REPORT]")
	if err != nil {
		return evidenceapi.Config{}, err
	}
	var environ, faults []string
	for _, name := range []string{tokenEnv, accessLogEnv} {
		if v, ok := e.Variable(name); ok {
			environ = append(environ, name+"="+v)
		}
	}
	cfg, err := evidenceapi.LoadConfig(environ)
	if err != nil {
		faults = append(faults, err.Error())
		cfg.Token = ""
	}
	if cfg.AccessLog != nil {
		cfg.AccessLog = e.Stderr
	}
	number := func(option string, into *int) {
		if !c.IsSet(option) {
			return
		}
		n, err := strconv.Atoi(c.String(option))
		if err != nil {
			faults = append(faults, "--"+option+" must be an integer")
			return
		}
		if *into = n; n == 0 && option != "port" {
			*into = -1 // 0 would select the default, which the user did not request
		}
	}
	number("port", &cfg.Port)
	number("max-concurrent-requests", &cfg.MaxConcurrentRequests)
	number("max-sse-clients", &cfg.MaxStreams)
	if c.IsSet("request-timeout") {
		if cfg.RequestTimeout, err = evidenceapi.Seconds(c.String("request-timeout")); err != nil {
			faults = append(faults, "--request-timeout "+err.Error())
		}
	}
	cfg.StorePath, cfg.Version = c.String("product-spine-store"), e.Version
	if c.IsSet("product-spine-store") && cfg.StorePath == "" {
		faults = append(faults, "--product-spine-store needs a path")
	}
	if err := cfg.Check(); err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return cfg, command.Usagef("%s", strings.ReplaceAll(strings.Join(faults, "\n"), "\n", "; "))
	}
	if args[0] != "" {
		if cfg.Report, err = command.ReadRegular(args[0]); err != nil {
			return cfg, err
		}
		if !utf8.Valid(cfg.Report) {
			return cfg, command.Failf(command.InvalidUTF8, "%s is not UTF-8", args[0])
		}
	}
	return cfg, nil
}

// secondSignal returns a channel that the second signal closes; the first one ends the command's context.
func secondSignal() (abort <-chan struct{}, done func()) {
	signals, closed := make(chan os.Signal, 2), make(chan struct{})
	end := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for range 2 {
			select {
			case <-signals:
			case <-end:
				return
			}
		}
		close(closed)
	})
	return closed, func() {
		signal.Stop(signals)
		close(end)
		waiting.Wait()
	}
}
