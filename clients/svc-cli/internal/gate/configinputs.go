package gate

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/evidence/canon"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/configdir"
)

// ConfigInputs are the files beside a config.
type ConfigInputs struct {
	folder *configdir.Folder
	out    Outputs
}

// Admit checks the files that a config names, before any of them is read.
func (in *ConfigInputs) Admit(names ...string) error {
	paths := make([]string, len(names))
	for i, n := range names {
		paths[i] = in.folder.Path(n)
	}
	if err := in.out.apartFrom(paths...); err != nil {
		return err
	}
	return in.folder.Distinct(names...)
}

// Read reads a file that the config names.
func (in *ConfigInputs) Read(name string) (canon.Value, error) { return in.folder.Read(name) }

// ReportOnConfig reads the command's config, makes the report and writes it.
func ReportOnConfig(e *command.Env, c *cli.Context, report func(canon.Value, *ConfigInputs) (any, error)) error {
	args, err := command.Arguments(c, "CONFIG")
	if err != nil {
		return err
	}
	out, err := readOutputs(c)
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
	r, err := report(doc, &ConfigInputs{folder: folder, out: out})
	if err != nil {
		return err
	}
	return out.Write(e, r, nil)
}
