package runstore

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controltower/schemas"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

func schemaCommand(e *command.Env) *cli.Command {
	return &cli.Command{Name: "schema", Category: tools, Usage: "list and show the JSON Schemas of the documents", Subcommands: []*cli.Command{
		{
			Name: "list", Usage: "list the schemas by name", Flags: command.JSONFlags(),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return listSchemas(e, c) }),
		},
		{
			Name: "show", Usage: "print a schema", ArgsUsage: "NAME", Flags: command.JSONFlags(),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return showSchema(e, c) }),
		},
	}}
}

func listSchemas(e *command.Env, c *cli.Context) error {
	if _, err := command.Arguments(c); err != nil {
		return err
	}
	type schema struct {
		Name string `json:"name"`
		ID   string `json:"id"`
	}
	var list []schema
	var rows [][]string
	for _, name := range schemas.Names() {
		v, err := parseSchema(name)
		if err != nil {
			return err
		}
		id, _ := v.Get("$id")
		s := schema{Name: name}
		s.ID, _ = id.(string)
		list, rows = append(list, s), append(rows, []string{s.Name, s.ID})
	}
	if command.WantsJSON(c) {
		return e.JSON(struct {
			Schemas []schema `json:"schemas"`
		}{list})
	}
	return e.Table([]string{"schema", "id"}, rows)
}

func parseSchema(name string) (*canon.Object, error) {
	text, ok := schemas.Get(name)
	if !ok {
		return nil, command.Failf("schema_not_found", "there is no schema %q; svc schema list names them", name)
	}
	v, err := canon.Parse(text, canon.ObjectRoot())
	if err != nil {
		return nil, err
	}
	return v.(*canon.Object), nil
}

func showSchema(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "NAME")
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(args[0], ".schema.json")
	v, err := parseSchema(name)
	if err != nil {
		return err
	}
	if command.WantsJSON(c) {
		return e.JSON(v)
	}
	text, _ := schemas.Get(name)
	_, err = e.Stdout.Write(text)
	return err
}
