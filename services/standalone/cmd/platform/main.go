// Command platform runs the whole platform in one process, and talks to a running one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/standalone"
	"github.com/mlp-platform/platform/services/standalone/internal/app"
)

const usage = `usage: platform [serve | env | password [viewer] | status [--json] | doctor [--json] | stop | backup FILE | restore FILE | health [URL] | version | help]

  serve              start everything and serve until Ctrl-C or SIGTERM; the default
  env                print the addresses and tokens as export lines: eval "$(platform env)"
  password [viewer]  print the dashboard's password for admins, or for viewers
  status [--json]    what runs, where, and whether it is ready
  doctor [--json]    examine the installation, running or stopped: what is wrong, where, and the command that mends it
  stop               ask the running platform to end, and wait for it
  backup FILE        write the data directory of a stopped platform to one file, with every secret
  restore FILE       fill an empty data directory from such a file, after checking every digest
  health [URL]       exit 0 if all its services are ready, or the one at URL, else 1
  version            print the version

serve starts embedded Postgres and NATS, a tracker and an orchestrator that speak their products' REST
protocols, inference, control plane, evidence API, assistant and dashboard. State is kept in PLATFORM_DATA_DIR (.data).
Configuration comes from the environment; docs/standalone.md lists every variable.
Exit codes: 0 done, 1 failed, 2 wrong arguments.
`

func main() {
	if code, asked := inference.ServeTrial(os.Args[1:]); asked {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(runCommand(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// arguments lists the arguments that each command takes.
var arguments = map[string]func(args []string) bool{
	"serve":    noArguments,
	"env":      noArguments,
	"password": func(args []string) bool { return len(args) == 0 || slices.Equal(args, []string{"viewer"}) },
	"status":   maybeJSON,
	"doctor":   maybeJSON,
	"stop":     noArguments,
	"backup":   oneArgument,
	"restore":  oneArgument,
	"health":   func(args []string) bool { return len(args) <= 1 },
	"version":  noArguments,
	"help":     noArguments,
}

func noArguments(args []string) bool { return len(args) == 0 }

func maybeJSON(args []string) bool { return len(args) == 0 || slices.Equal(args, []string{"--json"}) }

func oneArgument(args []string) bool { return len(args) == 1 && args[0] != "" }

// runCommand runs one command and returns the exit code.
func runCommand(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	// Errors contain text of files and other services. The console escapes the output of serve itself.
	stdout, stderr = printable.NewWriter(stdout), printable.NewWriter(stderr)
	verb := "serve"
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "-h", "--help":
		verb = "help"
	case "-v", "--version":
		verb = "version"
	}
	if accepts, known := arguments[verb]; !known || !accepts(args) {
		synopsis, _, _ := strings.Cut(usage, "\n")
		fmt.Fprintf(stderr, "platform: unknown arguments %q; %s\n", strings.Join(append([]string{verb}, args...), " "), synopsis)
		return startup.ExitUsage
	}
	switch verb {
	case "help":
		fmt.Fprint(stdout, usage)
		return startup.ExitOK
	case "version":
		fmt.Fprintf(stdout, "platform %s\n", service.Version)
		return startup.ExitOK
	}
	if verb == "health" && len(args) == 1 { // needs no configuration
		return startup.ReportHealth("platform", startup.CheckHealth(ctx, args[0]), stdout, stderr)
	}
	if verb == "doctor" { // examines the configuration too
		if err := app.Doctor(ctx, environ, stdout, len(args) == 1); errors.Is(err, app.ErrUnsound) {
			return startup.ExitFailed
		} else if err != nil {
			fmt.Fprintf(stderr, "platform: %v\n", err)
			return startup.ExitFailed
		}
		return startup.ExitOK
	}
	cfg, err := standalone.LoadConfig(environ)
	if err == nil {
		switch verb {
		case "serve":
			err = standalone.Run(ctx, cfg)
		case "env":
			err = app.PrintEnv(cfg, stdout)
		case "password":
			err = app.PrintPassword(cfg, stdout, len(args) == 1)
		case "status":
			err = app.Status(ctx, cfg, stdout, len(args) == 1)
		case "stop":
			err = app.Stop(ctx, cfg, stdout)
		case "backup":
			err = app.Backup(ctx, cfg, args[0], stdout)
		case "restore":
			err = app.Restore(ctx, cfg, args[0], stdout)
		case "health":
			return startup.ReportHealth("platform", app.CheckHealth(ctx, cfg), stdout, stderr)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "platform: %v\n", err)
		return startup.ExitFailed
	}
	return startup.ExitOK
}
