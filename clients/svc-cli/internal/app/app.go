// Package app puts the commands of svc together.
package app

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/bootstrap"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/doctor"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal/benchmark"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal/synthesis"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/route"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/runstore"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/steward"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/tower"
	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/cli/completion"
	"github.com/mlp-platform/platform/libs/cli/printable"
)

// allCommands are all of svc's. The app's help groups them by their categories.
func allCommands(e *command.Env) []*cli.Command {
	return slices.Concat(
		connectors.Commands(e),
		doctor.Commands(e),
		route.Commands(e),
		bootstrap.Commands(e),
		steward.Commands(e),
		gate.Commands(e),
		marginal.Commands(e),
		benchmark.Commands(e),
		synthesis.Commands(e),
		localloop.Commands(e),
		runstore.Commands(e),
		tower.Commands(e),
	)
}

const description = `Runs are kept in a store, one SQLite file that --store names. svc does none
of a run's work, makes no decisions for people and merges nothing.

Exit code 0: done. 1: a check answered no. 2: an error, told on stderr, and
with --json on stdout too.`

// verdicts are the commands whose error document has the shape of a verdict.
var verdicts = []string{"connections", "doctor", "route", "init"}

// Main runs svc and returns its exit code.
func Main(ctx context.Context, e *command.Env, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills, should the first not end the command
	own := *e
	own.Stderr = printable.NewWriter(e.Stderr)
	if e.Terminal { // a document to a pipe is data
		own.Stdout = printable.NewWriter(e.Stdout)
	}
	out := command.NewOutput(own.Stdout)
	own.Stdout = out
	e = &own
	a := New(e)
	line, err := argv.Arrange(a, args)
	if err == nil {
		err = a.RunContext(ctx, line)
	}
	var wrong *argv.Fault
	if errors.As(err, &wrong) {
		err = command.Usagef("%s", wrong.Error())
	}
	if lost := out.Err(); lost != nil && !errors.Is(lost, syscall.EPIPE) && !isFault(err) {
		err = lost // a verdict that was not printed is no verdict
	}
	// Errors of an action are printed already; this prints those that came before one ran.
	err = e.End(shapeOf(args), wantsJSON(args), err)
	var exit *command.Exit
	if errors.As(err, &exit) {
		return exit.Code
	}
	return command.ExitDone
}

// isFault reports whether err is a fault, printed or not, and not the end of a command that did its work.
func isFault(err error) bool {
	var exit *command.Exit
	return err != nil && (!errors.As(err, &exit) || exit.Code == command.ExitFault)
}

// New makes the app.
func New(e *command.Env) *cli.App {
	a := &cli.App{
		Name:                 "svc",
		Usage:                "keep, show and check the evidence of runs",
		UsageText:            "svc command [arguments] [options]",
		Description:          description,
		Version:              e.Version,
		HideHelp:             true, // help is a flag of each command, not one that all share: see prepare
		HideVersion:          true,
		Reader:               e.Stdin,
		Writer:               e.Stdout,
		ErrWriter:            e.Stderr,
		ExitErrHandler:       func(*cli.Context, error) {}, // Main maps errors to exit codes
		OnUsageError:         usageError,
		EnableBashCompletion: false,
		Flags: []cli.Flag{
			helpFlag(),
			&cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "show the version", DisableDefaultText: true},
			&cli.BoolFlag{Name: "install-completion", Usage: "install completion for $SHELL (bash, zsh, fish)", DisableDefaultText: true},
			&cli.BoolFlag{Name: "show-completion", Usage: "print the completion script for $SHELL", DisableDefaultText: true},
		},
		Commands: append(allCommands(e), helpCommand(), versionCommand(), completeCommand(e)),
	}
	a.Action = func(c *cli.Context) error {
		switch {
		case c.Bool("version"):
			e.Printf("svc %s\n", e.Version)
			return nil
		case c.Bool("install-completion"):
			return installCompletion(e)
		case c.Bool("show-completion"):
			return showCompletion(e)
		}
		if c.Args().Present() {
			return argv.UnknownWord(c.Args().First(), a.Commands, []string{"svc"})
		}
		return cli.ShowAppHelp(c)
	}
	for _, c := range a.Commands {
		prepareCommand(c, "svc")
	}
	return a
}

// prepareCommand gives every command a separate help flag, so that two apps in one process share nothing, and every
// group its help.
func prepareCommand(c *cli.Command, path string) {
	path += " " + c.Name
	c.HideHelp = true
	c.OnUsageError = usageError
	c.Flags = append(c.Flags, helpFlag())
	for _, s := range c.Subcommands {
		prepareCommand(s, path)
	}
	if len(c.Subcommands) > 0 && c.Action == nil {
		c.Action = func(ctx *cli.Context) error {
			if ctx.Args().Present() {
				return argv.UnknownWord(ctx.Args().First(), c.Subcommands, strings.Fields(path))
			}
			return cli.ShowSubcommandHelp(ctx)
		}
	}
}

// aboutCategory is the place in the help of the commands that are about svc itself.
const aboutCategory = "svc itself"

func helpCommand() *cli.Command {
	c := argv.HelpCommand()
	c.Category = aboutCategory
	return c
}

func versionCommand() *cli.Command {
	c := argv.VersionCommand()
	c.Category = aboutCategory
	return c
}

func helpFlag() cli.Flag {
	return &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help", DisableDefaultText: true}
}

func usageError(_ *cli.Context, err error, _ bool) error {
	return command.Usagef("%s", err.Error())
}

// shapeOf returns the shape of the error document for a command line, which may be wrong.
func shapeOf(args []string) command.Shape {
	if len(args) > 1 && slices.Contains(verdicts, args[1]) {
		return command.Verdict
	}
	return command.Envelope
}

// wantsJSON reports whether a command line, which may be wrong, requests a document.
func wantsJSON(args []string) bool {
	for i, a := range args {
		name, value, joined := argv.Split(a)
		switch {
		case a == "--":
			return false
		case !strings.HasPrefix(a, "-"):
		case name == "json":
			return true
		case name == "output" && (joined && value == "json" || !joined && i+1 < len(args) && args[i+1] == "json"):
			return true
		}
	}
	return false
}

func completeCommand(e *command.Env) *cli.Command {
	return &cli.Command{Name: completion.CommandName, Hidden: true, Usage: "print completions", Action: func(c *cli.Context) error {
		candidates, q := completion.Candidates(c.App, c.Args().Slice())
		if f, ok := q.Option.(*cli.StringFlag); ok && f.Name == "output" && f.DefaultText == "text" { // other options take files and names
			for _, format := range []string{"text", "json"} {
				if strings.HasPrefix(format, q.Typed) {
					candidates = append(candidates, q.Prefix+format)
				}
			}
		}
		for _, s := range candidates {
			e.Printf("%s\n", s)
		}
		return nil
	}}
}

func showCompletion(e *command.Env) error {
	script, err := completion.Script("svc", e.Getenv("SHELL"))
	if err != nil {
		return shellFault(err)
	}
	e.Printf("%s", script)
	return nil
}

func installCompletion(e *command.Env) error {
	path, already, err := completion.Install("svc", e.Getenv("SHELL"), e.Getenv("HOME"))
	switch {
	case err != nil:
		return shellFault(err)
	case already:
		e.Printf("completion is already installed in %s\n", path)
	default:
		e.Printf("completion installed in %s; open a new shell to use it\n", path)
	}
	return nil
}

func shellFault(err error) error {
	if errors.Is(err, completion.ErrShell) {
		return command.Failf("unknown_shell", "%w; set SHELL, for example: SHELL=/bin/bash svc --show-completion", err)
	}
	return command.Failf("completion_unwritable", "%w", err)
}
