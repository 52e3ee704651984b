// Package cli is the mlp command line: its commands, what they may touch, and how they fail.
package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/service"
)

// Main runs mlp and returns its exit code.
func Main(ctx context.Context, env *Env, line []string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills, should the first not end the command
	if env.HTTP == nil {
		env.HTTP = httpClient()
	}
	// The format is wanted for the fault of a wrong line too, so it is read before the line is checked.
	env.Format = formatOf(line)
	env = env.cleanStreams()
	env.interrupted = func() bool { return ctx.Err() != nil }
	app := newApp(env)
	if env.OutTTY && env.OutWidth > 0 {
		help := &helpWriter{out: env.Out, width: env.OutWidth}
		defer help.flush()
		app.Writer = help
	}
	arranged, err := arrangeLine(app, joinConditions(line))
	if err == nil {
		err = usageFault(app.RunContext(ctx, arranged))
	}
	if err != nil && ctx.Err() != nil && !isInterrupted(err) && !errors.Is(err, context.Canceled) {
		err = fault.New("interrupted", "interrupted: %v", err)
	}
	return env.fail(err)
}

func isInterrupted(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Code == "interrupted"
}

// formatOf reads --output and --json where they are allowed: before the subcommand.
func formatOf(line []string) output.Format {
	for i, a := range line {
		if i == 0 {
			continue
		}
		name, value, joined := argv.Split(a)
		switch {
		case !strings.HasPrefix(a, "-"):
			return output.Table
		case name == "json":
			return output.JSON
		case name == "output" || name == "o":
			if !joined && i+1 < len(line) {
				value = line[i+1]
			}
			if f := output.Format(value); slices.Contains(output.Formats, f) {
				return f
			}
			return output.Table
		case slices.Contains([]string{"context", "c", "fields", "jq"}, name):
			if !joined && i+1 < len(line) {
				return formatOf(append([]string{""}, line[min(i+2, len(line)):]...))
			}
		}
	}
	return output.Table
}

func httpClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = newDialer(2 * time.Second)
	t.MaxIdleConnsPerHost = 64 // serve benchmark keeps many connections to one host
	return &http.Client{
		Transport: graceTransport{t, 3 * time.Second},
		Timeout:   10 * time.Second,
		// A redirect would carry the bearer to an address that was not configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newApp(env *Env) *cli.App {
	app := &cli.App{
		Name:                 "mlp",
		Usage:                "operate the model platform from a terminal",
		UsageText:            "mlp [global options] command [command options] [arguments]",
		Version:              service.Version,
		HideVersion:          true, // -v is --verbose here, and -V the version
		HideHelpCommand:      true,
		Reader:               env.In,
		Writer:               env.Out,
		ErrWriter:            env.Err,
		EnableBashCompletion: false,
		ExitErrHandler:       func(*cli.Context, error) {}, // Main maps errors to exit codes
		OnUsageError:         usageError,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "table, json, yaml or csv"},
			&cli.BoolFlag{Name: "json", Usage: "same as --output json; must precede the subcommand"},
			&cli.StringFlag{Name: "fields", Usage: "with --json: only these fields of the objects, separated by commas"},
			&cli.StringFlag{Name: "jq", Usage: "with --json: the results of this jq expression, one a line"},
			&cli.StringFlag{Name: "context", Aliases: []string{"c"}, Usage: "named configuration context"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "skip confirmations"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only results and errors"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "also show request ids"},
			&cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "show the version"},
			cli.HelpFlag, // urfave/cli adds it only where no command is named help
			&cli.BoolFlag{Name: "install-completion", Usage: "install completion for $SHELL (bash, zsh, fish)"},
			&cli.BoolFlag{Name: "show-completion", Usage: "print the completion script for $SHELL"},
		},
		Commands: allCommands(env),
	}
	app.Action = func(c *cli.Context) error {
		switch {
		case c.Bool("version"):
			return env.showVersion()
		case c.Bool("install-completion"):
			return installCompletion(env)
		case c.Bool("show-completion"):
			return showCompletion(env)
		}
		if c.Args().Present() {
			return unknownWord(c.Args().First(), app.Commands, []string{"mlp"})
		}
		return cli.ShowAppHelp(c)
	}
	hideFalse(app.Flags)
	app.Before = func(c *cli.Context) error { return env.globals(c) }
	for _, c := range app.Commands {
		prepareCommand(env, c, "mlp")
	}
	return app
}

// prepareCommand gives every leaf the options that also stand after it, and every group a plain help.
func prepareCommand(env *Env, c *cli.Command, path string) {
	path += " " + c.Name
	c.OnUsageError = usageError
	c.HideHelpCommand = true
	if len(c.Subcommands) > 0 {
		for _, s := range c.Subcommands {
			prepareCommand(env, s, path)
		}
		if c.Action == nil {
			c.Action = func(ctx *cli.Context) error {
				if ctx.Args().Present() {
					return unknownWord(ctx.Args().First(), c.Subcommands, strings.Fields(path))
				}
				return cli.ShowSubcommandHelp(ctx)
			}
			return
		}
		// A group with an action is a command too, such as audit.
	}
	addExample(c, path)
	c.Flags = append(c.Flags,
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "skip confirmations"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only results and errors"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "also show request ids"},
	)
	hideFalse(c.Flags)
	run := c.Action
	c.Action = func(ctx *cli.Context) error {
		env.command = strings.TrimPrefix(path, "mlp ")
		env.Yes = env.Yes || ctx.Bool("yes")
		env.Quiet = env.Quiet || ctx.Bool("quiet")
		env.Verbose = env.Verbose || ctx.Bool("verbose")
		err := run(ctx)
		env.recordChange(ctx, err)
		return err
	}
}

// hideFalse keeps "(default: false)" out of the help of switches: every switch is off unless given.
func hideFalse(flags []cli.Flag) {
	for _, f := range flags {
		if b, ok := f.(*cli.BoolFlag); ok && !b.Value && f != cli.HelpFlag { // the library's text is empty already, and all runs share it
			b.DisableDefaultText = true
		}
	}
}

func usageError(_ *cli.Context, err error, _ bool) error {
	return fault.Usage("%s", err.Error())
}

func (e *Env) globals(c *cli.Context) error {
	f := output.Format(c.String("output"))
	if c.Bool("json") {
		if c.IsSet("output") && f != output.JSON {
			return fault.Usage("--json and --output %s contradict each other", f)
		}
		f = output.JSON
	}
	if !slices.Contains(output.Formats, f) {
		return fault.Usage("--output must be one of table, json, yaml, csv; not %q", string(f))
	}
	if c.String("fields") != "" || c.String("jq") != "" {
		if f != output.JSON {
			return fault.Usage("--fields and --jq are for JSON").WithHint("for example: mlp --json --jq '.[].name' models list")
		}
		var err error
		if e.selection, err = output.NewSelection(c.String("fields"), c.String("jq")); err != nil {
			return fault.Usage("--jq: %v", err)
		}
	}
	e.Format = f
	e.Context = c.String("context")
	e.Yes, e.Quiet, e.Verbose = c.Bool("yes"), c.Bool("quiet"), c.Bool("verbose")
	return nil
}

// readArguments checks the number of positionals of a command.
func readArguments(c *cli.Context, names ...string) ([]string, error) {
	shown := make([]string, len(names))
	for i, n := range names {
		if shown[i] = n; n[0] != '[' {
			shown[i] = "<" + n + ">"
		}
	}
	got, err := argv.Arguments(c, shown...)
	return got, usageFault(err)
}

// formatNames returns the values of --output.
func formatNames() []string {
	names := make([]string, len(output.Formats))
	for i, f := range output.Formats {
		names[i] = string(f)
	}
	return names
}

// oneOf checks an option with a closed set of values; empty means unset.
func oneOf(option, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return fault.Usage("%s must be one of %s; not %q", option, strings.Join(allowed, ", "), value)
}

// listNames lists names of which there may be hundreds: the first five, and how many more there are.
func listNames(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// watch repeats run until the context ends, clearing the screen between rounds on a terminal.
func (e *Env) watch(ctx context.Context, every time.Duration, run func() error) error {
	if e.Format == output.YAML || e.Format == output.CSV {
		return fault.Usage("--watch does not go with --output %s", e.Format).WithHint("a document a line for each round: mlp --json %s --watch", e.command)
	}
	if every < time.Second {
		return fault.Usage("--interval must be at least 1 second")
	}
	e.compact = e.Format == output.JSON
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if e.OutTTY && !e.compact {
			if err := printable.WriteControl(e.Out, "\x1b[H\x1b[2J"); err != nil {
				return err
			}
		}
		if err := run(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // Ctrl-C is how watching ends
		case <-tick.C:
		}
	}
}

// watchFlags returns the options of commands that can repeat.
func watchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "watch", Usage: "repeat until Ctrl-C"},
		&cli.IntFlag{Name: "interval", Value: 5, Usage: "seconds between rounds of --watch"},
	}
}

// maybeWatch runs once, or repeatedly under --watch.
func (e *Env) maybeWatch(c *cli.Context, run func() error) error {
	if !c.Bool("watch") {
		return run()
	}
	return e.watch(c.Context, time.Duration(c.Int("interval"))*time.Second, run)
}
