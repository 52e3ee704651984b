package runstore

import (
	"context"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// The files that an import reads of a local loop's folder.
const (
	loopReport = "evidence-report.json"
	loopRecord = "run-record.json"
)

func importEvidence(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "SOURCE")
	if err != nil {
		return err
	}
	in, err := importRequest(c, args[0])
	if err != nil {
		return err
	}
	return withWriter(e, c, func(ctx context.Context, w *store.Writer) error {
		out, err := w.ImportEvidence(ctx, in)
		if err != nil {
			return err
		}
		if command.WantsJSON(c) {
			return e.JSON(describeWrite(out))
		}
		e.Printf("%s: %s state=%s evidence=%s\n", writeVerb(out, "imported"), out.Projection.RunID, out.Projection.State,
			textOrEmpty(out.Projection.EvidenceReportDigest))
		return nil
	})
}

func importRequest(c *cli.Context, source string) (in store.ImportEvidence, err error) {
	if err := requireOptions(c, "store", "idempotency-key"); err != nil {
		return in, err
	}
	built := c.IsSet("project-id") || c.IsSet("source-revision")
	switch {
	case c.IsSet("projection") && built:
		return in, command.Usagef("--projection brings the run's project and revision; leave out --project-id and --source-revision")
	case !c.IsSet("projection") && !built:
		return in, command.Usagef("name the run with --projection FILE, or with --project-id ID and --source-revision REV")
	case built:
		if err := requireOptions(c, "project-id", "source-revision"); err != nil {
			return in, err
		}
	}
	in = store.ImportEvidence{ProjectID: c.String("project-id"), SourceRevision: c.String("source-revision"),
		State: spine.State(c.String("state")), IdempotencyKey: c.String("idempotency-key")}
	if c.IsSet("state") && !report.Importable(in.State) {
		return in, command.Failf(spine.InvalidState, "a run with a report is evidence_ready or awaiting_human_decision, not %q", c.String("state"))
	}
	if in.At, err = timeOf(c, "created-at"); err != nil {
		return in, err
	}
	if c.IsSet("projection") {
		projection, err := readProjection(c.String("projection"))
		if err != nil {
			return in, err
		}
		if c.IsSet("state") && projection.State != in.State {
			return in, command.Failf(spine.InvalidState, "the projection is in state %s, not %s", projection.State, in.State)
		}
		in.Projection = &projection
	}
	in.Report, in.SourceRunRecord, err = readSource(source)
	return in, err
}

// readSource reads a report, or a local loop's folder: its report and the record that the report was made from.
func readSource(source string) (canon.Value, *canon.Object, error) {
	info, err := os.Stat(source)
	if err != nil || !info.IsDir() {
		v, err := command.ReadDocument(source)
		return v, nil, err
	}
	found, err := command.ReadDocument(filepath.Join(source, loopReport))
	if err != nil {
		return nil, nil, err
	}
	record, err := command.ReadDocument(filepath.Join(source, loopRecord))
	if err != nil {
		return nil, nil, err
	}
	return found, record.(*canon.Object), nil
}

// readStored reads a report that the store checked.
func readStored(found store.Evidence) (*report.Report, error) { return report.Read(found.Report) }
