// Package runstore is the commands over a store: runs, the views derived from them, the event log and its verification.
// They print the pages and documents that the API serves.
package runstore

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// Categories of the help.
const (
	runs  = "Runs and evidence"
	tools = "Store and tools"
)

// Commands are those of this package.
func Commands(e *command.Env) []*cli.Command {
	return []*cli.Command{
		runCommand(e),
		workUnitCommand(e),
		projectCommand(e),
		eventsCommand(e),
		verifyCommand(e),
		storeCommand(e),
		digestCommand(e),
		fixturesCommand(e),
		schemaCommand(e),
	}
}

func storeFlag() cli.Flag {
	return &cli.StringFlag{Name: "store", Usage: "the store's `FILE`"}
}

func storePath(c *cli.Context) (string, error) {
	path := c.String("store")
	if path == "" {
		return "", command.Usagef("missing option --store FILE; see: %s --help", c.Command.HelpName)
	}
	return path, nil
}

// withReader runs a command over a store that it cannot change.
func withReader(c *cli.Context, run func(context.Context, *store.Reader) error) error {
	path, err := storePath(c)
	if err != nil {
		return err
	}
	r := store.NewReader(path, store.CommandWait)
	defer r.Close()
	err = run(c.Context, r)
	if notice := r.Notice(); notice != "" {
		fmt.Fprintln(c.App.ErrWriter, "warning: "+notice)
	}
	return err
}

// withWriter runs a command that changes the store, which is created or migrated if necessary.
func withWriter(e *command.Env, c *cli.Context, run func(context.Context, *store.Writer) error) error {
	path, err := storePath(c)
	if err != nil {
		return err
	}
	o, err := e.WriterOptions(c)
	if err != nil {
		return err
	}
	w, err := store.OpenWriter(c.Context, path, o)
	if err != nil {
		return err
	}
	if err := run(c.Context, w); err != nil {
		w.Close()
		return err
	}
	return w.Close()
}

// optionValue returns the value of an option, or nil if it was not given: an empty filter is a fault, an absent one is
// not.
func optionValue(c *cli.Context, name string) *string {
	if !c.IsSet(name) {
		return nil
	}
	v := c.String(name)
	return &v
}

func textOrEmpty(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
