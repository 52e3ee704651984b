package bootstrap

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
)

// Commands are `svc init`.
func Commands(e *command.Env) []*cli.Command {
	return []*cli.Command{{
		Name: "init", Category: connectors.Category, Usage: "plan a repository's bootstrap; apply mode is not available",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "github", Usage: "for a repository on GitHub"},
			&cli.BoolFlag{Name: "dry-run", Usage: "plan only; required"},
			&cli.StringFlag{Name: "idkmesh-ref", Usage: "`REF` of svc to pin: an existing release tag or a commit of 40 lower-case hex digits"},
			&cli.StringFlag{Name: "default-branch", Usage: "`BRANCH` that people integrate into", Value: "main"},
		}, command.JSONFlags()...),
		Action: e.Action(command.Verdict, func(c *cli.Context) error { return runPlan(e, c) }),
	}}
}

func runPlan(e *command.Env, c *cli.Context) error {
	if _, err := command.Arguments(c); err != nil {
		return err
	}
	switch {
	case !c.Bool("github"):
		return command.Failf(NoForge, "svc init needs --github: no other forge is supported")
	case !c.Bool("dry-run"):
		return command.Failf(ApplyMode, "svc init needs --dry-run: apply mode is not available")
	}
	answer, err := New(c.String("idkmesh-ref"), c.String("default-branch"))
	if err != nil {
		return err
	}
	if command.WantsJSON(c) {
		return e.JSON(answer)
	}
	e.Printf("svc ref: %s (existence not verified: no request was made)\n", answer.Plan.SvcRef)
	e.Printf("default branch: %s\n", answer.Plan.DefaultBranch)
	e.Printf("files: %d\n", len(answer.Plan.Files))
	for _, f := range answer.Plan.Files {
		e.Printf("- %s (%s, %s, %s)\n", f.Path, f.Ownership, f.OverwritePolicy, f.ExecutionEffect)
	}
	e.Printf("rendered: %d\n", len(answer.RenderedConfigFiles))
	for _, f := range answer.RenderedConfigFiles {
		e.Printf("- %s %s %d bytes\n", f.Path, f.ContentDigest, f.SizeBytes)
	}
	e.Printf("owner actions: %d\n", len(answer.Plan.OwnerActions))
	for _, a := range answer.Plan.OwnerActions {
		e.Printf("- %s: %s\n", a.Code, a.Summary)
	}
	e.Printf("file writes: no\n")
	e.Printf("GitHub mutations: no\n")
	e.Printf("secret access: no\n")
	return nil
}
