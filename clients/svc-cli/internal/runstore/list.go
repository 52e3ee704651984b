package runstore

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

func limitFlag() cli.Flag {
	return &cli.StringFlag{Name: "limit", Usage: "at most `N` on the page, 1 to 200", DefaultText: strconv.Itoa(store.DefaultLimit)}
}

func cursorFlag() cli.Flag {
	return &cli.StringFlag{Name: "cursor", Usage: "`CURSOR` of the page: the next_cursor of the page before"}
}

func projectFlag() cli.Flag {
	return &cli.StringFlag{Name: "project-id", Usage: "only of project `ID`"}
}

// readWindow reads --limit and --cursor as the API reads them.
func readWindow(c *cli.Context) (store.Window, error) {
	w := store.Window{Limit: store.DefaultLimit, Cursor: optionValue(c, "cursor")}
	if s := optionValue(c, "limit"); s != nil {
		n, err := strconv.Atoi(*s)
		if err != nil || len(*s) > 9 || strings.Trim(*s, "0123456789") != "" || n == 0 {
			n = -1 // which the store refuses in the words it has for every bad limit
		}
		w.Limit = n
	}
	if w.Cursor != nil && strings.TrimSpace(*w.Cursor) == "" {
		return w, command.Failf(string(store.InvalidCursor), "the cursor is blank; leave the option out to begin at the first page")
	}
	return w, nil
}

// printPage prints one page: the document, or a table and the cursor of the page after it.
func printPage[T, D any](e *command.Env, c *cli.Context, w store.Window, p store.Page[T], item func(T) (D, error), none string,
	header []string, row func(T) []string) error {
	if command.WantsJSON(c) {
		items := make([]D, len(p.Items))
		for i, it := range p.Items {
			var err error
			if items[i], err = item(it); err != nil {
				return err
			}
		}
		return e.JSON(document.NewList(items, w.Limit, p.Next))
	}
	rows := make([][]string, len(p.Items))
	for i, it := range p.Items {
		rows[i] = row(it)
	}
	if err := e.Table(header, rows); err != nil {
		return err
	}
	if len(rows) == 0 && e.Terminal {
		e.Printf("%s\n", none)
	}
	if p.Next != "" {
		e.Printf("next_cursor: %s\n", p.Next)
	}
	return nil
}

func sameItem[T any](v T) (T, error) { return v, nil }

func listRuns(e *command.Env, c *cli.Context) error {
	if _, err := command.Arguments(c); err != nil {
		return err
	}
	w, err := readWindow(c)
	if err != nil {
		return err
	}
	return withReader(c, func(ctx context.Context, r *store.Reader) error {
		p, err := r.Runs(ctx, store.RunQuery{Window: w, State: optionValue(c, "state"), ProjectID: optionValue(c, "project-id")})
		if err != nil {
			return err
		}
		return printPage(e, c, w, p, func(r store.Run) (spine.Run, error) { return r.Projection, nil }, "No runs.",
			[]string{"run", "state", "project", "work unit", "attempts", "evidence"}, func(r store.Run) []string {
				p := r.Projection
				return []string{p.RunID, string(p.State), p.ProjectID, p.WorkUnit.ID, strconv.Itoa(len(p.Attempts)), textOrEmpty(p.EvidenceReportDigest)}
			})
	})
}

func workUnitCommand(e *command.Env) *cli.Command {
	return &cli.Command{Name: "work-unit", Category: runs, Usage: "list and show what the runs of a work unit add up to", Subcommands: []*cli.Command{
		{
			Name: "list", Usage: "list work units by id",
			Flags:  slices.Concat([]cli.Flag{storeFlag(), limitFlag(), cursorFlag(), projectFlag()}, command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return listWorkUnits(e, c) }),
		},
		{
			Name: "status", Usage: "show the revisions of a work unit", ArgsUsage: "WORK_UNIT_ID",
			Flags:  slices.Concat([]cli.Flag{storeFlag()}, command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return workUnitStatus(e, c) }),
		},
	}}
}

func listWorkUnits(e *command.Env, c *cli.Context) error {
	if _, err := command.Arguments(c); err != nil {
		return err
	}
	w, err := readWindow(c)
	if err != nil {
		return err
	}
	return withReader(c, func(ctx context.Context, r *store.Reader) error {
		p, err := r.WorkUnits(ctx, store.WorkUnitQuery{Window: w, ProjectID: optionValue(c, "project-id")})
		if err != nil {
			return err
		}
		return printPage(e, c, w, p, sameItem[spine.WorkUnit], "No work units.", []string{"work unit", "runs", "revisions"},
			func(u spine.WorkUnit) []string {
				return []string{u.ID, strconv.FormatInt(u.RunCount, 10), strconv.Itoa(len(u.Revisions))}
			})
	})
}

func workUnitStatus(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "WORK_UNIT_ID")
	if err != nil {
		return err
	}
	return withReader(c, func(ctx context.Context, r *store.Reader) error {
		u, err := r.WorkUnit(ctx, args[0])
		if err != nil {
			return err
		}
		if command.WantsJSON(c) {
			return e.JSON(struct {
				WorkUnit spine.WorkUnit `json:"work_unit"`
			}{u})
		}
		e.Printf("work_unit: %s\nruns: %d\n", u.ID, u.RunCount)
		rows := make([][]string, len(u.Revisions))
		for i, v := range u.Revisions {
			rows[i] = []string{strconv.FormatInt(v.Version, 10), strconv.FormatInt(v.RunCount, 10), v.SourceRevision, v.Digest}
		}
		return e.Table([]string{"version", "runs", "source revision", "digest"}, rows)
	})
}

func projectCommand(e *command.Env) *cli.Command {
	return &cli.Command{Name: "project", Category: runs, Usage: "show what the runs of a project add up to", Subcommands: []*cli.Command{{
		Name: "status", Usage: "count a project's runs by state", ArgsUsage: "PROJECT_ID",
		Flags:  slices.Concat([]cli.Flag{storeFlag()}, command.JSONFlags()),
		Action: e.Action(command.Envelope, func(c *cli.Context) error { return projectStatus(e, c) }),
	}}}
}

func projectStatus(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "PROJECT_ID")
	if err != nil {
		return err
	}
	return withReader(c, func(ctx context.Context, r *store.Reader) error {
		p, err := r.Project(ctx, args[0])
		if err != nil {
			return err
		}
		if command.WantsJSON(c) {
			return e.JSON(struct {
				Project spine.Project `json:"project"`
			}{p})
		}
		e.Printf("project: %s\nruns: %d\nwork_units: %d\n", p.ProjectID, p.RunCount, p.WorkUnitCount)
		var rows [][]string
		for _, s := range spine.States() {
			if n := p.RunsByState[s]; n > 0 {
				rows = append(rows, []string{string(s), strconv.FormatInt(n, 10)})
			}
		}
		return e.Table([]string{"state", "runs"}, rows)
	})
}

// parseEnvelope returns an event as the document that the API serves.
func parseEnvelope(ev store.Event) (canon.Value, error) { return canon.Parse(ev.Envelope) }
