package runstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

func fixturesCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "fixtures", Category: tools, Usage: "write every sample input, and a sample store", ArgsUsage: "DIR",
		Description: "The files are the same bytes each time. DIR and the store must be absent or empty.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "store", Usage: "also make a store with sample runs, evidence and connectors at `PATH`"},
		}, command.JSONFlags()),
		Action: e.Action(command.Envelope, func(c *cli.Context) error { return writeFixtures(e, c) }),
	}
}

func writeFixtures(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "DIR")
	if err != nil {
		return err
	}
	dir, path := args[0], c.String("store")
	if c.IsSet("store") && path == "" {
		return command.Usagef("--store needs a path")
	}
	if err := emptyFolder(dir); err != nil {
		return err
	}
	if err := emptyFile(path); err != nil {
		return err
	}
	files := samples.List()
	for _, name := range files {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return command.Failf(command.OutputWriteError, "%w", err)
		}
		if err := command.WriteFile(target, samples.File(name)); err != nil {
			return err
		}
	}
	if path != "" {
		if err := store.WriteFixtures(c.Context, path); err != nil {
			return err
		}
	}
	if command.WantsJSON(c) {
		doc := struct {
			Files []string `json:"files"`
			Store *string  `json:"store"`
		}{Files: files}
		if path != "" {
			doc.Store = &path
		}
		return e.JSON(doc)
	}
	e.Printf("written: %s files=%d\n", command.Clean(dir), len(files))
	if path != "" {
		e.Printf("store: %s\n", command.Clean(path))
	}
	return nil
}

const targetNotEmpty = "target_not_empty"

func emptyFolder(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return command.Failf(command.OutputWriteError, "%w", err)
	case len(entries) > 0:
		return command.Failf(targetNotEmpty, "%s is not empty; name a folder that is, or one that does not exist", path)
	}
	return nil
}

func emptyFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case path == "" || errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return command.Failf(command.OutputWriteError, "%w", err)
	case !info.Mode().IsRegular() || info.Size() > 0:
		return command.Failf(targetNotEmpty, "%s is there already; name a file that is not", path)
	}
	return nil
}
