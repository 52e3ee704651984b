package gatecmd

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/evidence/canon"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/configdir"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginalbench"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginalsynth"
)

func benchmark(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-marginal-benchmark", Category: Category, Usage: "compare ways to choose the next verifier", ArgsUsage: "CONFIG",
		Description: "Each strategy chooses on the design matrix; the choices are frozen and then measured on the holdout\n" +
			"matrix. CONFIG names both by paths within its folder.",
		Flags: outputFlags(),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			return withConfig(c, func(doc canon.Value, in *inputs) (any, error) {
				cfg, err := marginalbench.ReadConfig(doc)
				if err != nil {
					return nil, err
				}
				if err := in.named(cfg.Design, cfg.Holdout); err != nil {
					return nil, err
				}
				return marginalbench.Run(c.Context, cfg, in.folder.Read, marginalbench.Options{Version: e.Version, Progress: progress(e)})
			}, e)
		}),
	}
}

func synthesis(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-marginal-synthesis", Category: Category, Usage: "put the reports of several benchmarks side by side", ArgsUsage: "CONFIG",
		Description: "CONFIG names two or more reports of gate-marginal-benchmark by paths within its folder.",
		Flags:       outputFlags(),
		Action: e.Action(command.Envelope, func(c *cli.Context) error {
			return withConfig(c, func(doc canon.Value, in *inputs) (any, error) {
				cfg, err := marginalsynth.ReadConfig(doc)
				if err != nil {
					return nil, err
				}
				if err := in.named(cfg.Reports...); err != nil {
					return nil, err
				}
				return marginalsynth.Run(c.Context, cfg, in.folder.Read, e.Version)
			}, e)
		}),
	}
}

// inputs are the files beside a config.
type inputs struct {
	folder *configdir.Folder
	out    outputs
}

// named checks the files that a config names, before any of them is read.
func (in *inputs) named(names ...string) error {
	paths := make([]string, len(names))
	for i, n := range names {
		paths[i] = in.folder.Path(n)
	}
	if err := in.out.apartFrom(paths...); err != nil {
		return err
	}
	return in.folder.Distinct(names...)
}

// withConfig reads the command's config, makes the report and writes it.
func withConfig(c *cli.Context, report func(canon.Value, *inputs) (any, error), e *command.Env) error {
	args, err := command.Arguments(c, "CONFIG")
	if err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	if err := out.apartFrom(args[0]); err != nil {
		return err
	}
	doc, err := command.ReadDocument(args[0])
	if err != nil {
		return err
	}
	folder, err := configdir.Open(args[0])
	if err != nil {
		return err
	}
	defer folder.Close()
	r, err := report(doc, &inputs{folder: folder, out: out})
	if err != nil {
		return err
	}
	return out.write(e, r, nil)
}
