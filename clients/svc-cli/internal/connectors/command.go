package connectors

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// Category of the help that holds the commands about connectors.
const Category = "Connectors and readiness"

// CheckedAtFlag sets the time of a check, so that an answer can be repeated to the byte.
func CheckedAtFlag() cli.Flag {
	return &cli.StringFlag{Name: "checked-at", Usage: "`TIME` of the check, ISO 8601 with its zone", DefaultText: "now"}
}

// CheckedAt is the time that the flag names, or now.
func CheckedAt(e *command.Env, c *cli.Context) (time.Time, error) {
	if !c.IsSet("checked-at") {
		return e.Now(), nil
	}
	return spine.ParseTime(c.String("checked-at"))
}

// Commands are `svc connections …`.
func Commands(e *command.Env) []*cli.Command {
	sub := func(name, usage, args string, run func(*cli.Context) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, ArgsUsage: args, Action: e.Action(command.Verdict, run), Flags: append(flags, command.JSONFlags()...)}
	}
	storeFlag := &cli.StringFlag{Name: "store", Usage: "the store's `FILE`"}
	return []*cli.Command{{
		Name: "connections", Category: Category, Usage: "connector metadata: check, keep and probe it offline",
		Subcommands: []*cli.Command{
			sub("validate", "check a profile", "PROFILE", func(c *cli.Context) error { return validateProfile(e, c) }),
			sub("list", "list the connectors of a profile", "PROFILE", func(c *cli.Context) error { return listProfile(e, c) }),
			sub("import", "keep the connectors of a profile in a store, all or none; one that is there is replaced", "PROFILE",
				func(c *cli.Context) error { return importInto(e, c) }, storeFlag, command.SigningFlag()),
			sub("stored", "list the connectors that a store keeps", "", func(c *cli.Context) error { return showStored(e, c) }, storeFlag),
			sub("probe", "probe the connectors of a profile with the offline fakes", "PROFILE", func(c *cli.Context) error { return probeAll(e, c) }, CheckedAtFlag()),
		},
	}}
}

// LoadArgument loads the profile that is a command's only argument.
func LoadArgument(c *cli.Context) ([]Connector, error) {
	args, err := command.Arguments(c, "PROFILE")
	if err != nil {
		return nil, err
	}
	return Load(args[0])
}

// Records returns the records that a store keeps of connectors.
func Records(all []Connector) []spine.Connection {
	out := make([]spine.Connection, len(all))
	for i, c := range all {
		out[i] = c.Connection
	}
	return out
}

type listing struct {
	Count       int                `json:"count"`
	Connections []spine.Connection `json:"connections"`
}

func validateProfile(e *command.Env, c *cli.Context) error {
	all, err := LoadArgument(c)
	if err != nil {
		return err
	}
	if command.WantsJSON(c) {
		return e.JSON(struct {
			Valid bool `json:"valid"`
			listing
		}{true, listing{len(all), Records(all)}})
	}
	e.Printf("valid: %d\n", len(all))
	return nil
}

func listProfile(e *command.Env, c *cli.Context) error {
	all, err := LoadArgument(c)
	if err != nil {
		return err
	}
	return showConnections(e, c, Records(all))
}

func showConnections(e *command.Env, c *cli.Context, all []spine.Connection) error {
	if command.WantsJSON(c) {
		return e.JSON(listing{len(all), all})
	}
	rows := make([][]string, len(all))
	for i, r := range all {
		rows[i] = []string{r.ID, r.Kind, r.Driver, strconv.FormatBool(r.Enabled), strings.Join(r.CapabilityTiers, ","), r.MaxRisk}
	}
	return e.Table([]string{"ID", "KIND", "DRIVER", "ENABLED", "TIERS", "MAX RISK"}, rows)
}

func importInto(e *command.Env, c *cli.Context) (err error) {
	all, err := LoadArgument(c)
	if err != nil {
		return err
	}
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
	err = w.ImportConnections(c.Context, Records(all), e.Now())
	if closed := w.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if command.WantsJSON(c) {
		return e.JSON(struct {
			Imported    int                `json:"imported"`
			Connections []spine.Connection `json:"connections"`
			Store       string             `json:"store"`
		}{len(all), Records(all), path})
	}
	e.Printf("imported: %d\n", len(all))
	return nil
}

func showStored(e *command.Env, c *cli.Context) error {
	if _, err := command.Arguments(c); err != nil {
		return err
	}
	path, err := storePath(c)
	if err != nil {
		return err
	}
	r := store.NewReader(path, store.CommandWait)
	defer func() { _ = r.Close() }() // it only read
	all, err := readAll(c.Context, r)
	if err != nil {
		return err
	}
	return showConnections(e, c, all)
}

func storePath(c *cli.Context) (string, error) {
	path := c.String("store")
	if path == "" {
		return "", command.Usagef("missing option --store FILE; see: %s --help", c.Command.HelpName)
	}
	return path, nil
}

func readAll(ctx context.Context, r *store.Reader) ([]spine.Connection, error) {
	all, w := []spine.Connection{}, store.Window{Limit: store.MaxLimit}
	for {
		page, err := r.Connections(ctx, w)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		w.Cursor = &page.Next
	}
}

func probeAll(e *command.Env, c *cli.Context) error {
	at, err := CheckedAt(e, c)
	if err != nil {
		return err
	}
	all, err := LoadArgument(c)
	if err != nil {
		return err
	}
	found := Inspect(all, at)
	if command.WantsJSON(c) {
		return e.JSON(struct {
			CheckedAt   string       `json:"checked_at"`
			Connections []Inspection `json:"connections"`
		}{spine.FormatTime(at), found})
	}
	rows := make([][]string, len(found))
	for i, f := range found {
		status, reason := f.Outcome()
		rows[i] = []string{f.ConnectionID, f.Kind, f.Driver, string(status), reason}
	}
	return e.Table([]string{"ID", "KIND", "DRIVER", "STATUS", "REASON"}, rows)
}
