package diagnose

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/service/startup"
)

// discard drops log lines: the answer has all that a terminal user needs.
var discard = slog.New(slog.DiscardHandler)

// errUsage marks an error in the command line.
var errUsage = errors.New("usage")

// Run carries out "diagnose …" and "evaluate …" and returns an exit code: 0 answered, 1 failed, 2 wrong arguments.
func Run(verb string, args []string, stdout, stderr io.Writer) int {
	err := newApp(stdout, stderr).Run(append([]string{"assistant", verb}, args...))
	switch {
	case err == nil:
		return startup.ExitOK
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "assistant %s: %v; see assistant %s --help\n", verb, err, verb)
		return startup.ExitUsage
	}
	fmt.Fprintf(stderr, "assistant %s: %v\n", verb, err)
	return startup.ExitFailed
}

func newApp(stdout, stderr io.Writer) *cli.App {
	output := &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "text or json", Value: "text"}
	app := &cli.App{
		Name: "assistant", Writer: stdout, ErrWriter: stderr, HideHelp: true, // the library's flag is shared by all apps of a process
		ExitErrHandler: func(*cli.Context, error) {}, // main alone exits
		OnUsageError:   func(_ *cli.Context, err error, _ bool) error { return fmt.Errorf("%w: %w", errUsage, err) },
		Commands: []*cli.Command{
			{
				Name: "diagnose", Usage: "answer a question about a recorded cluster", ArgsUsage: "[QUESTION…]",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "from", Usage: "directory or archive (tar, tar.gz, tar.xz, zip) with the recording"},
					&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "namespace the question is about (default: all)"}, output,
				},
				Action: runDiagnose,
			},
			{
				Name: "evaluate", Usage: "ask about each recording of a folder that has a truth.json or truth.yaml, and judge the first finding",
				Flags:  []cli.Flag{&cli.StringFlag{Name: "recorded", Usage: "folder with one recording in each subfolder"}, output},
				Action: runEvaluate,
			},
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError, c.HideHelp = app.OnUsageError, true
		c.Flags = append(c.Flags, &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help", DisableDefaultText: true})
	}
	return app
}

func runDiagnose(c *cli.Context) error {
	if c.String("from") == "" {
		return fmt.Errorf("%w: --from must name a directory or an archive", errUsage)
	}
	if err := checkOutput(c); err != nil {
		return err
	}
	a, err := Ask(c.Context, Options{From: c.String("from"), Namespace: c.String("namespace"), Question: strings.Join(c.Args().Slice(), " ")})
	if err != nil {
		return err
	}
	if c.String("output") == "json" {
		return printJSON(c.App.Writer, a)
	}
	for _, file := range a.NotRead {
		fmt.Fprintf(c.App.ErrWriter, "not read: %s\n", file)
	}
	_, err = fmt.Fprintln(c.App.Writer, a.Text)
	return err
}

func checkOutput(c *cli.Context) error {
	if output := c.String("output"); output != "text" && output != "json" && output != "table" {
		return fmt.Errorf("%w: --output is text or json, not %q", errUsage, output)
	}
	return nil
}

func printJSON(to io.Writer, value any) error {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
