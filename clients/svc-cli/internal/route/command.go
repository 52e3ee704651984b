package route

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
)

// Commands are `svc route …`.
func Commands(e *command.Env) []*cli.Command {
	return []*cli.Command{{
		Name: "route", Category: connectors.Category, Usage: "which connectors may serve a piece of work",
		Subcommands: []*cli.Command{{
			Name: "explain", Usage: "explain it, connector by connector, offline; nothing is dispatched", ArgsUsage: "PROFILE DECISION",
			Flags: append([]cli.Flag{
				connectors.CheckedAtFlag(),
				&cli.StringSliceFlag{Name: "cost", Usage: "expected cost of a connector, `ID=USD`; may be given for each"},
				&cli.BoolFlag{Name: "auto-select", Usage: "select the best of the eligible"},
			}, command.JSONFlags()...),
			Action: e.Action(command.Verdict, func(c *cli.Context) error { return runExplain(e, c) }),
		}},
	}}
}

func runExplain(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "PROFILE", "DECISION")
	if err != nil {
		return err
	}
	at, err := connectors.CheckedAt(e, c)
	if err != nil {
		return err
	}
	all, err := connectors.Load(args[0])
	if err != nil {
		return err
	}
	decision, err := LoadDecision(args[1])
	if err != nil {
		return err
	}
	costs, err := ParseCosts(c.StringSlice("cost"), all)
	if err != nil {
		return err
	}
	answer := Explain(Question{
		Connectors: all, Probes: connectors.Inspect(all, at), Decision: decision, Costs: costs, At: at, Select: c.Bool("auto-select"),
	})
	if command.WantsJSON(c) {
		return e.JSON(answer)
	}
	for _, i := range answer.Eligible {
		e.Printf("eligible: %s (%s)\n", i.ConnectionID, i.SupportedTier)
	}
	for _, i := range answer.Ineligible {
		e.Printf("ineligible: %s (%s)\n", i.ConnectionID, command.Clean(strings.Join(i.Reasons, ", ")))
	}
	if answer.SelectedConnectionID == nil {
		e.Printf("selected: none\n")
		return nil
	}
	e.Printf("selected: %s (%s)\n", *answer.SelectedConnectionID, strings.Join(answer.SelectionReason, ", "))
	return nil
}
