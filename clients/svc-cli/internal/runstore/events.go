package runstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

func eventsCommand(e *command.Env) *cli.Command {
	return &cli.Command{Name: "events", Category: runs, Usage: "list and follow the event log", Subcommands: []*cli.Command{
		{
			Name: "list", Usage: "list events by sequence",
			Flags:  slices.Concat([]cli.Flag{storeFlag(), limitFlag(), cursorFlag()}, eventFilterFlags(), command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return listEvents(e, c) }),
		},
		{
			Name: "follow", Usage: "print events as they come, one envelope a line, until Ctrl-C",
			Description: "From a store, or from a control tower, whose token $" + tokenEnv + " holds; there it resumes\n" +
				"by sequence when the server ends a stream.",
			Flags: slices.Concat([]cli.Flag{
				storeFlag(),
				&cli.StringFlag{Name: "url", Usage: "`URL` of a control tower, such as http://127.0.0.1:8770"},
				&cli.StringFlag{Name: "after", Usage: "begin after event `SEQ`, 0 for the whole log (default from now on)"},
				&cli.Int64Flag{Name: "max-events", Usage: "end after `N` events", DefaultText: "no end"},
			}, eventFilterFlags(), command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return runFollow(e, c) }),
		},
	}}
}

// tokenEnv is the variable that holds a control tower's token.
const tokenEnv = "SVC_CONTROL_TOWER_TOKEN"

func eventFilterFlags() []cli.Flag {
	return []cli.Flag{
		projectFlag(),
		&cli.StringFlag{Name: "run-id", Usage: "only of run `ID`"},
		&cli.StringFlag{Name: "work-unit-id", Usage: "only of work unit `ID`"},
		&cli.StringFlag{Name: "event-type", Usage: "only of `TYPE`: run.created or run.cancelled"},
	}
}

func eventFilter(c *cli.Context) store.EventFilter {
	return store.EventFilter{ProjectID: optionValue(c, "project-id"), RunID: optionValue(c, "run-id"),
		WorkUnitID: optionValue(c, "work-unit-id"), EventType: optionValue(c, "event-type")}
}

func listEvents(e *command.Env, c *cli.Context) error {
	if _, err := command.Arguments(c); err != nil {
		return err
	}
	w, err := readWindow(c)
	if err != nil {
		return err
	}
	return withReader(c, func(ctx context.Context, r *store.Reader) error {
		p, err := r.Events(ctx, store.EventQuery{Window: w, EventFilter: eventFilter(c)})
		if err != nil {
			return err
		}
		return printPage(e, c, w, p, parseEnvelope, "No events.", []string{"sequence", "time", "event", "run", "project", "work unit"},
			func(ev store.Event) []string {
				return []string{strconv.FormatInt(ev.Sequence, 10), ev.OccurredAt, ev.Type, ev.RunID, ev.ProjectID, ev.WorkUnitID}
			})
	})
}
