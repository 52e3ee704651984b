package gatecmd

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
)

// Category groups the commands in the help of svc.
const Category = "Gates"

// Commands are the gate commands, the editor apart.
func Commands(e *command.Env) []*cli.Command {
	return []*cli.Command{audit(e), dependence(e), marginalReport(e), benchmark(e), synthesis(e)}
}

// outputFlags are those of every report.
func outputFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "out", Usage: "write the report to `FILE` instead of printing it"},
		&cli.BoolFlag{Name: "pretty", Usage: "indent the report"},
	}, command.JSONFlags...)
}
