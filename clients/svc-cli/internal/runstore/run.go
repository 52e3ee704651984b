package runstore

import (
	"context"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

func runCommand(e *command.Env) *cli.Command {
	return &cli.Command{Name: "run", Category: runs, Usage: "create, import, list, show and cancel runs", Subcommands: []*cli.Command{
		{
			Name: "create", Usage: "keep a proposed run; nothing is dispatched", ArgsUsage: "PROJECTION",
			Flags: slices.Concat([]cli.Flag{
				storeFlag(), keyFlag(), command.SigningFlag(),
				&cli.StringFlag{Name: "created-at", Usage: "`TIME` of the creation, ISO 8601 with zone (default now)"},
			}, command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return createRun(e, c) }),
		},
		{
			Name: "import-evidence", Usage: "keep a run together with its evidence report", ArgsUsage: "SOURCE",
			Description: "SOURCE is an evidence report, or a folder that local-loop wrote, whose run record is kept too.\n" +
				"The run is the one of --projection, or is made from the report, --project-id and --source-revision.",
			Flags: slices.Concat([]cli.Flag{
				storeFlag(), keyFlag(), command.SigningFlag(),
				&cli.StringFlag{Name: "projection", Usage: "`FILE` of the run"},
				&cli.StringFlag{Name: "project-id", Usage: "`ID` of the project"},
				&cli.StringFlag{Name: "source-revision", Usage: "the work unit's `REV`, 40 or 64 hex digits"},
				&cli.StringFlag{Name: "state", Usage: "evidence_ready or awaiting_human_decision", DefaultText: string(spine.AwaitingHumanDecision)},
				&cli.StringFlag{Name: "created-at", Usage: "`TIME` of the creation, ISO 8601 with zone (default now)"},
			}, command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return importEvidence(e, c) }),
		},
		{
			Name: "list", Usage: "list runs by id",
			Flags: slices.Concat([]cli.Flag{
				storeFlag(), limitFlag(), cursorFlag(),
				&cli.StringFlag{Name: "state", Usage: "only runs in `STATE`"},
				projectFlag(),
			}, command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return listRuns(e, c) }),
		},
		{
			Name: "status", Usage: "show the state of a run", ArgsUsage: "RUN_ID",
			Flags:  slices.Concat([]cli.Flag{storeFlag()}, command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return runStatus(e, c) }),
		},
		{
			Name: "evidence", Usage: "show the report that a run retains, once its digest is checked", ArgsUsage: "RUN_ID",
			Flags:  slices.Concat([]cli.Flag{storeFlag()}, command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return runEvidence(e, c) }),
		},
		{
			Name: "cancel", Usage: "record that a run is cancelled; a provider's work continues", ArgsUsage: "RUN_ID",
			Flags: slices.Concat([]cli.Flag{
				storeFlag(), command.SigningFlag(),
				&cli.StringFlag{Name: "updated-at", Usage: "`TIME` of the cancellation, ISO 8601 with zone (default now)"},
			}, command.JSONFlags()),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return cancelRun(e, c) }),
		},
	}}
}

func keyFlag() cli.Flag {
	return &cli.StringFlag{Name: "idempotency-key", Usage: "`KEY` under which a repeat is recognised, 1 to 256 characters"}
}

func createRun(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "PROJECTION")
	if err != nil {
		return err
	}
	if err := requireOptions(c, "store", "idempotency-key"); err != nil {
		return err
	}
	at, err := timeOf(c, "created-at")
	if err != nil {
		return err
	}
	projection, err := readProjection(args[0])
	if err != nil {
		return err
	}
	return withWriter(e, c, func(ctx context.Context, w *store.Writer) error {
		out, err := w.CreateRun(ctx, store.CreateRun{Projection: projection, IdempotencyKey: c.String("idempotency-key"), At: at})
		if err != nil {
			return err
		}
		if command.WantsJSON(c) {
			return e.JSON(describeWrite(out))
		}
		e.Printf("%s: %s state=%s\n", writeVerb(out, "created"), out.Projection.RunID, out.Projection.State)
		return nil
	})
}

func writeVerb(out store.Written, done string) string {
	if out.Replayed {
		return "replayed"
	}
	return done
}

// describeWrite returns the API's document of a run, and the outcome of this
// write.
func describeWrite(out store.Written) document.RunDetail {
	d := runDetail(out.Run)
	d.Created, d.Replayed = out.Created, out.Replayed
	return d
}

func runDetail(r store.Run) document.RunDetail {
	return document.RunDetail{Run: r.Projection, IdempotencyKey: r.IdempotencyKey, CreateRequestDigest: r.CreateRequestDigest}
}

func readProjection(path string) (spine.Run, error) {
	v, err := command.ReadDocument(path)
	if err != nil {
		return spine.Run{}, err
	}
	return spine.ParseRun(v)
}

// timeOf reads an option that names an instant; zero is now.
func timeOf(c *cli.Context, option string) (time.Time, error) {
	if !c.IsSet(option) {
		return time.Time{}, nil
	}
	at, err := spine.ParseTime(c.String(option))
	if err == nil && at.IsZero() {
		return at, command.Failf(string(store.InvalidTimestamp), "--%s: the first instant of year 1 means no time; use a later one", option)
	}
	return at, err
}

// requireOptions refuses a line that lacks an option.
func requireOptions(c *cli.Context, options ...string) error {
	for _, o := range options {
		if !c.IsSet(o) {
			return command.Usagef("missing option --%s; see: %s --help", o, c.Command.HelpName)
		}
	}
	return nil
}

func runStatus(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "RUN_ID")
	if err != nil {
		return err
	}
	return withReader(c, func(ctx context.Context, r *store.Reader) error {
		run, err := r.Run(ctx, args[0])
		if err != nil {
			return err
		}
		if command.WantsJSON(c) {
			return e.JSON(runDetail(run))
		}
		e.Printf("run: %s\nstate: %s\nproject: %s\nwork_unit: %s\nmerge_authority: no\n", run.Projection.RunID,
			run.Projection.State, run.Projection.ProjectID, run.Projection.WorkUnit.ID)
		return nil
	})
}

func cancelRun(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "RUN_ID")
	if err != nil {
		return err
	}
	at, err := timeOf(c, "updated-at")
	if err != nil {
		return err
	}
	return withWriter(e, c, func(ctx context.Context, w *store.Writer) error {
		out, err := w.CancelRun(ctx, args[0], at)
		if err != nil {
			return err
		}
		if command.WantsJSON(c) {
			return e.JSON(runDetail(out.Run))
		}
		e.Printf("cancelled: %s\nprovider_execution_terminated: no\nmerge_authority: no\n", out.Projection.RunID)
		return nil
	})
}

func runEvidence(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "RUN_ID")
	if err != nil {
		return err
	}
	return withReader(c, func(ctx context.Context, r *store.Reader) error {
		found, err := r.Evidence(ctx, args[0])
		if err != nil {
			return err
		}
		read, err := readStored(found)
		if err != nil {
			return err
		}
		if command.WantsJSON(c) {
			return e.JSON(document.EvidenceDetail{RunID: found.RunID, EvidenceReportDigest: found.Digest, EvidenceReport: read})
		}
		e.Printf("run: %s\nevidence_report_digest: %s\nattempts: %d\nhuman_decision: %s\n", found.RunID, found.Digest,
			len(read.Attempts), read.HumanDecision.Status)
		return nil
	})
}
