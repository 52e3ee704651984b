package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// approvalDetail is the document of approvals show. Either promotion and gate are known, or the diff is; diff_error is
// why there is none.
type approvalDetail struct {
	approval
	Promotion *controlplane.Promotion    `json:"promotion"`
	Gate      *controlplane.Gate         `json:"gate"`
	Diff      *controlplane.ApprovalDiff `json:"diff"`
	DiffError *string                    `json:"diff_error"`
}

func approvalsShow(ctx context.Context, env *Env, subject string) error {
	s, err := env.approvalSubject(ctx, subject)
	if err != nil {
		return err
	}
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	doc := approvalDetail{approval: *s.approval, Promotion: s.promotion}
	if p := s.promotion; p != nil {
		gate, err := decode[controlplane.Gate](cp.GetGate(ctx, p.Model, &controlplane.GetGateParams{Version: &p.Version, From: &p.From, To: &p.To}))
		if err != nil {
			return err
		}
		doc.Gate = &gate
	} else {
		// A notice may name a commit that the repository does not hold: the record is still to be seen.
		diff, err := decode[controlplane.ApprovalDiff](cp.GetApprovalDiff(ctx, s.Id))
		switch f := fault.From(err); {
		case err == nil:
			doc.Diff = &diff
		case f.Status == 404:
			doc.DiffError = &f.Message
		default:
			return err
		}
	}
	record := recordGrid(doc)
	if env.Format != output.Table {
		return env.Printer().Print(record)
	}
	if doc.Gate != nil {
		return env.Printer().Print(record, checksGrid(doc.Gate.Checks, s.Status == controlplane.ApprovalStatusPending))
	}
	if err := env.Printer().Print(record); err != nil {
		return err
	}
	return env.printDiff(doc)
}

// recordGrid formats a record as fields and values.
func recordGrid(d approvalDetail) output.Grid {
	g := output.Grid{Columns: []string{"Field", "Value"}, Doc: d}
	add := func(field string, value any) { g.Rows = append(g.Rows, []any{field, value}) }
	add("ID", d.Id.String())
	add("Model", d.ModelId)
	add("Kind", string(d.Kind))
	add("Status", styledStatus(string(d.Status)))
	if p := d.Promotion; p != nil {
		add("Version", p.Version)
		add("Alias", p.From+" → "+p.To)
		add(p.To+" when asked", p.PreviousVersion)
	} else {
		add("Commit", d.CommitSha)
		add("Message", d.CommitMsg)
		add("Dataset", d.DatasetName)
		add("Files", d.ChangedFiles)
	}
	add("Requested by", d.RequestedBy)
	add("Requested", output.Ago(d.RequestedAt))
	add("Expires", d.ExpiresAt)
	add("First approver", d.FirstApprover)
	if d.ResolvedAt != nil {
		add("Decided by", d.ResolvedBy)
		add("Decided", output.Ago(*d.ResolvedAt))
		add("Reason", d.RejectReason)
	}
	return g
}

// checksGrid lists the checks of a gate. The approval itself is one of them, and fails while it is pending.
func checksGrid(checks []controlplane.Check, pending bool) output.Grid {
	g := output.Grid{Title: "Checks", Columns: []string{"Check", "Result", "Detail"}, Empty: "No checks."}
	for _, c := range checks {
		result := output.Styled{Value: "pass", Style: output.Good}
		switch {
		case !c.Pass && pending && c.Name == "approval":
			result = output.Styled{Value: "asked for", Style: output.Warn}
		case !c.Pass:
			result = output.Styled{Value: "fail", Style: output.Bad}
		}
		g.Rows = append(g.Rows, []any{c.Name, result, c.Detail})
	}
	return g
}

// printDiff prints the patches as git does, coloured on a terminal that shows colour.
func (e *Env) printDiff(d approvalDetail) error {
	var b strings.Builder
	b.WriteByte('\n')
	switch {
	case d.DiffError != nil:
		fmt.Fprintf(&b, "No diff: %s\n", output.Clean(*d.DiffError))
	case len(d.Diff.Files) == 0:
		fmt.Fprintln(&b, "No file of the model has changed.")
	default:
		from := "the first commit"
		if d.Diff.FromCommit != nil {
			from = shortSHA(*d.Diff.FromCommit)
		}
		fmt.Fprintf(&b, "%s..%s\n", output.Clean(from), output.Clean(shortSHA(d.Diff.ToCommit)))
		for _, f := range d.Diff.Files {
			fmt.Fprintf(&b, "\n%s  %s  +%d -%d\n", f.Status, output.Clean(f.Path), f.Additions, f.Deletions)
			if f.Patch != nil {
				e.writePatch(&b, *f.Patch)
			}
		}
		if d.Diff.Truncated {
			fmt.Fprintln(&b, "\nThe diff is longer than is shown; see the model repository.")
		}
	}
	_, err := fmt.Fprint(e.Out, b.String())
	return err
}

func (e *Env) writePatch(b *strings.Builder, patch string) {
	for line := range strings.SplitSeq(strings.TrimRight(patch, "\n"), "\n") {
		// A tab is the only control character that a patch may keep: its lines are other people's text.
		line = strings.ReplaceAll(output.Clean(strings.ReplaceAll(line, "\t", "    ")), "\n", " ")
		if e.Color() {
			switch {
			case strings.HasPrefix(line, "+"):
				line = text.FgGreen.Sprint(line)
			case strings.HasPrefix(line, "-"):
				line = text.FgRed.Sprint(line)
			case strings.HasPrefix(line, "@@"):
				line = text.Faint.Sprint(line)
			}
		}
		b.WriteString(line + "\n")
	}
}
