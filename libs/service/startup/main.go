package startup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/service"
)

// Exit codes of every binary.
const (
	ExitOK     = 0
	ExitFailed = 1 // it could not start, or ended with an error
	ExitUsage  = 2 // wrong arguments
)

// Program is one service's binary: `<name> serve` (the default), `migrate`, `health [URL]`,
// `version`, `help`, and its own commands.
type Program[C any] struct {
	Name string
	// AddrVar is the variable with the address served, Addr its default: the address that `health`
	// queries.
	AddrVar, Addr string
	LoadConfig    func(environ []string) (C, error)
	LogLevel      func(C) string
	// Migrate brings the schema up to date; nil where the service has none.
	Migrate func(context.Context, C) error
	Run     func(context.Context, C, *slog.Logger) error
	// Commands are further ones; they return an exit code.
	Commands []Command
}

// Command is one further verb of a binary.
type Command struct {
	Name, Usage string // Usage follows the name: "verify FILE  checks an exported ledger"
	Run         func(args []string, stdin io.Reader, stdout, stderr io.Writer) int
}

// Main runs the program with the process's own arguments, streams and signals and returns the exit
// code for os.Exit.
func Main[C any](p Program[C]) int {
	ctx := context.Background()
	if len(os.Args) < 2 || p.command(os.Args[1]) == nil { // a command has nothing to drain: the first signal ends it
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the process without a drain
	}
	return p.Execute(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
}

// command is the further verb of a name, or nil.
func (p Program[C]) command(name string) *Command {
	for i := range p.Commands {
		if p.Commands[i].Name == name {
			return &p.Commands[i]
		}
	}
	return nil
}

// Execute is Main with everything passed in.
func (p Program[C]) Execute(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// Errors contain text from dependencies and files.
	stdout, stderr = printable.NewWriter(stdout), printable.NewWriter(stderr)
	verb := "serve"
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	if c := p.command(verb); c != nil {
		return c.Run(args, stdin, stdout, stderr)
	}
	switch verb {
	case "-h", "--help":
		verb = "help"
	case "-v", "--version":
		verb = "version"
	}
	allowed := 0
	if verb == "health" {
		allowed = 1
	}
	known := slices.Contains([]string{"serve", "health", "version", "help"}, verb) || verb == "migrate" && p.Migrate != nil
	if !known || len(args) > allowed {
		fmt.Fprintf(stderr, "%s: unknown arguments %q; usage: %s\n", p.Name, strings.Join(append([]string{verb}, args...), " "), p.synopsis())
		return ExitUsage
	}
	var err error
	switch verb {
	case "help":
		p.printHelp(stdout)
	case "version":
		fmt.Fprintf(stdout, "%s %s\n", p.Name, service.Version)
	case "health":
		return p.reportHealth(ctx, args, environ, stdout, stderr)
	default:
		err = p.serveOrMigrate(ctx, verb, environ, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return ExitFailed
	}
	return ExitOK
}

func (p Program[C]) serveOrMigrate(ctx context.Context, verb string, environ []string, stderr io.Writer) error {
	cfg, err := p.LoadConfig(environ)
	if err != nil {
		return fmt.Errorf("cannot start:\n%w", err)
	}
	if verb == "migrate" {
		return p.Migrate(ctx, cfg)
	}
	err = p.Run(ctx, cfg, service.NewLogger(stderr, p.LogLevel(cfg)))
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // it was stopped before it had started
	}
	return err
}

func (p Program[C]) synopsis() string {
	verbs := []string{"serve"}
	if p.Migrate != nil {
		verbs = append(verbs, "migrate")
	}
	verbs = append(verbs, "health [URL]")
	for _, c := range p.Commands {
		verbs = append(verbs, c.Name)
	}
	return p.Name + " [" + strings.Join(append(verbs, "version", "help"), " | ") + "]"
}

func (p Program[C]) printHelp(w io.Writer) {
	fmt.Fprintf(w, "usage: %s\n\n", p.synopsis())
	fmt.Fprintf(w, "  serve         serve until SIGTERM; the default\n")
	if p.Migrate != nil {
		fmt.Fprintf(w, "  migrate       bring the database schema up to date, then exit\n")
	}
	fmt.Fprintf(w, "  health [URL]  exit 0 if the service is ready, else 1; default http://%s/readyz\n", loopbackAddr(p.Addr))
	for _, c := range p.Commands {
		fmt.Fprintf(w, "  %s %s\n", c.Name, c.Usage)
	}
	fmt.Fprintf(w, "  version       print the version\n\nConfiguration comes from the environment; docs/%s.md lists every variable.\nExit codes: 0 done, 1 failed, 2 wrong arguments.\n", p.Name)
}

func (p Program[C]) reportHealth(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	target := "http://" + loopbackAddr(p.Addr)
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, p.AddrVar+"="); ok && v != "" {
			target = "http://" + loopbackAddr(v)
		}
	}
	if len(args) == 1 {
		target = args[0]
	}
	return ReportHealth(p.Name, CheckHealth(ctx, target), stdout, stderr)
}

// ReportHealth prints the result of a health check of the named program and returns its exit code.
func ReportHealth(program string, err error, stdout, stderr io.Writer) int {
	if err == nil {
		fmt.Fprintln(stdout, "ok")
		return ExitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", program, err)
	var wrong *usageError
	if errors.As(err, &wrong) {
		return ExitUsage
	}
	return ExitFailed
}
