package steward

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/loopback"
)

// siteCommands are `svc steward-report-ui` and `svc steward-history-ui`.
func siteCommands(e *command.Env) []*cli.Command {
	ui := func(name, usage, args string, port int, page func(*cli.Context) ([]byte, error)) *cli.Command {
		return &cli.Command{
			Name: name, Category: Category, Usage: usage, ArgsUsage: args,
			Flags: []cli.Flag{
				&cli.IntFlag{Name: "port", Usage: "`PORT` on 127.0.0.1; 0 takes any free one", Value: port},
				&cli.BoolFlag{Name: "no-browser", Usage: "print the address and open nothing", DisableDefaultText: true},
			},
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return serveSite(e, c, page) }),
		}
	}
	return []*cli.Command{
		ui("steward-report-ui", "show a steward's report in the browser", "INPUT", 8766, func(c *cli.Context) ([]byte, error) {
			args, err := command.Arguments(c, "INPUT")
			if err != nil {
				return nil, err
			}
			r, err := Load(args[0])
			if err != nil {
				return nil, err
			}
			return reportPage(r)
		}),
		ui("steward-history-ui", "show the history of one repository's reports in the browser", "PATH...", 8767, func(c *cli.Context) ([]byte, error) {
			h, err := LoadHistory(c)
			if err != nil {
				return nil, err
			}
			return historyPage(h)
		}),
	}
}

// serveSite serves the page until the command is stopped, which is its only successful
// end.
func serveSite(e *command.Env, c *cli.Context, page func(*cli.Context) ([]byte, error)) error {
	made, err := page(c)
	if err != nil {
		return err
	}
	l, err := loopback.Listen(c.Int("port"))
	if err != nil {
		return command.Failf("port_unavailable", "%w", err)
	}
	address := fmt.Sprintf("http://%s/", l.Addr())
	e.Printf("%s: %s\n", c.Command.Name, address)
	if !c.Bool("no-browser") && e.OpenBrowser != nil {
		if err := e.OpenBrowser(address); err != nil {
			fmt.Fprintf(e.Stderr, "warning: %s\n", command.Clean(err.Error()))
		}
	}
	return site{name: "svc-" + c.Command.Name, version: e.Version, page: made}.server().Serve(c.Context, l)
}
