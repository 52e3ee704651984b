package runstore

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

func storeCommand(e *command.Env) *cli.Command {
	return &cli.Command{Name: "store", Category: tools, Usage: "migrate a store, make signing keys", Subcommands: []*cli.Command{
		{
			Name: "migrate", Usage: "bring a store to this build's version", ArgsUsage: "PATH",
			Flags:  slices.Concat([]cli.Flag{command.SigningFlag()}, command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return migrateStore(e, c) }),
		},
		{
			Name: "keygen", Usage: "make a key that signs checkpoints, and print the public key", ArgsUsage: "FILE",
			Description: "FILE must not exist; it is made readable by its owner alone. Keep the public key elsewhere:\n" +
				"svc verify --public-key checks with it.",
			Flags:  command.JSONFlags(),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return generateKey(e, c) }),
		},
	}}
}

func migrateStore(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "PATH")
	if err != nil {
		return err
	}
	o, err := e.WriterOptions(c)
	if err != nil {
		return err
	}
	from, err := store.Migrate(c.Context, args[0], o)
	if err != nil {
		return err
	}
	if command.WantsJSON(c) {
		return e.JSON(struct {
			Store string `json:"store"`
			From  int    `json:"from_version"`
			To    int    `json:"to_version"`
		}{args[0], from, store.Version})
	}
	if from == store.Version {
		e.Printf("unchanged: %s version=%d\n", command.Clean(args[0]), store.Version)
		return nil
	}
	e.Printf("migrated: %s version=%d from=%d\n", command.Clean(args[0]), store.Version, from)
	return nil
}

func generateKey(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "FILE")
	if err != nil {
		return err
	}
	public, err := store.GenerateKey(args[0])
	if err != nil {
		return command.Failf(command.OutputWriteError, "cannot make a key: %w", err)
	}
	if command.WantsJSON(c) {
		err = e.JSON(struct {
			PublicKey string `json:"public_key"`
		}{public})
	} else {
		e.Printf("%s\n", public)
		err = e.Written()
	}
	if err != nil {
		// The public key is lost, so signatures of the private one could not be checked.
		_ = os.Remove(args[0])
		return command.Failf(command.OutputWriteError, "no key was made, since the public key could not be printed: %v", err)
	}
	return nil
}

func digestCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "digest", Category: tools, Usage: "print a document's canonical bytes and their digest", ArgsUsage: "[FILE]",
		Description: "Reads FILE, or standard input. Any JSON root will do.",
		Flags:       command.JSONFlags(),
		Action:      e.Action(command.Envelope, func(c *cli.Context) error { return digestDocument(e, c) }),
	}
}

func digestDocument(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "[FILE]")
	if err != nil {
		return err
	}
	var v canon.Value
	if args[0] == "" || args[0] == "-" {
		data, err := io.ReadAll(io.LimitReader(e.Stdin, canon.MaxFile+1))
		if err != nil {
			return command.Failf(command.InputReadError, "cannot read standard input: %w", err)
		}
		v, err = canon.Parse(data, canon.MaxBytes(canon.MaxFile))
		if err != nil {
			return err
		}
	} else if v, err = command.ReadValue(args[0]); err != nil {
		return err
	}
	c1, err := canon.C1(v)
	if err != nil {
		return err
	}
	if command.WantsJSON(c) {
		return e.JSON(struct {
			Canonical string `json:"canonical"`
			Bytes     int    `json:"bytes"`
			Digest    string `json:"digest"`
		}{string(c1), len(c1), canon.DigestBytes(c1)})
	}
	if e.Terminal {
		e.Printf("%s\n", command.Clean(string(c1)))
	} else if _, err := fmt.Fprintf(e.Stdout, "%s\n", c1); err != nil { // the bytes that have the digest: a pipe obeys none
		return err
	}
	e.Printf("%s\n", canon.DigestBytes(c1))
	return nil
}
