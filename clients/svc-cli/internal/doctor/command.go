package doctor

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/governance"
)

// Commands are `svc doctor`.
func Commands(e *command.Env) []*cli.Command {
	return []*cli.Command{{
		Name: "doctor", Category: connectors.Category, Usage: "readiness of connectors, or governance of a repository, offline",
		ArgsUsage: "PROFILE | --github OBSERVATION --operation OP",
		Description: "With PROFILE: every connector of the profile is probed by its offline fake. FAIL exits 1.\n" +
			"With --github: an observation of a repository is judged for an operation. FAIL and UNKNOWN exit 1.",
		Flags: append([]cli.Flag{
			connectors.CheckedAtFlag(),
			&cli.StringFlag{Name: "github", Usage: "judge the governance `OBSERVATION` in this file"},
			&cli.StringFlag{Name: "operation", Usage: "`OP` to judge it for: " + strings.Join(governance.Operations(), ", ")},
			&cli.StringFlag{Name: "workflow", Usage: "take the observation's workflow_source from the workflow in `FILE` (YAML)"},
		}, command.JSONFlags()...),
		Action: e.Action(command.Verdict, func(c *cli.Context) error {
			if c.IsSet("github") {
				return checkGovernance(e, c)
			}
			return checkReadiness(e, c)
		}),
	}}
}

func checkReadiness(e *command.Env, c *cli.Context) error {
	for _, name := range []string{"operation", "workflow"} {
		if c.IsSet(name) {
			return command.Usagef("--%s goes with --github OBSERVATION", name)
		}
	}
	at, err := connectors.CheckedAt(e, c)
	if err != nil {
		return err
	}
	all, err := connectors.LoadArgument(c)
	if err != nil {
		return err
	}
	answer := Judge(connectors.Inspect(all, at), at)
	if command.WantsJSON(c) {
		err = e.JSON(answer)
	} else {
		e.Printf("doctor: %s\n", answer.Status)
		for _, i := range answer.Connections {
			e.Printf("- %s: %s (%s)\n", i.ConnectionID, i.State, i.Reason)
		}
	}
	if err == nil && answer.Status == Fail {
		return command.No
	}
	return err
}

func checkGovernance(e *command.Env, c *cli.Context) error {
	if c.Args().Present() {
		return command.Usagef("give a PROFILE or --github OBSERVATION, not both")
	}
	if c.IsSet("checked-at") {
		return command.Usagef("--checked-at goes with a PROFILE; an observation has its own time")
	}
	operation, err := governance.ParseOperation(c.String("operation"))
	if err != nil {
		return err
	}
	observed, err := governance.LoadObservation(c.String("github"))
	if err != nil {
		return err
	}
	if c.IsSet("workflow") {
		source, err := governance.LoadWorkflow(c.String("workflow"))
		if err != nil {
			return err
		}
		observed.WorkflowSource = &source
	}
	report := governance.Judge(observed, operation)
	if command.WantsJSON(c) {
		err = e.JSON(report)
	} else {
		e.Printf("github governance: %s\n", report.Status)
		e.Printf("repository: %s\n", command.Clean(report.Repository))
		e.Printf("operation: %s\n", report.Operation)
		for _, g := range report.Guards {
			e.Printf("- %s: %s (%s; %s)\n", g.Code, g.Outcome, g.Level, command.Clean(g.Reason))
		}
		for _, code := range report.NotApplicable {
			e.Printf("- %s: not applicable\n", code)
		}
		e.Printf("automatic_admin_mutation: no\n")
		e.Printf("ruleset_proves_independent_review: no\n")
	}
	if err == nil && (report.Status == governance.Fail || report.Status == governance.Unknown) {
		return command.No
	}
	return err
}
