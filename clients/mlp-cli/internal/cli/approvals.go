package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

type approval = controlplane.Approval

func approvalsCommand(env *Env) *cli.Command {
	decide := []cli.Flag{
		&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Usage: "why; kept in the record"},
		&cli.BoolFlag{Name: "dry-run", Usage: "show what would happen, change nothing"},
	}
	return &cli.Command{Name: "approvals", Usage: "changes that wait for a decision", Subcommands: []*cli.Command{
		{Name: "list", Usage: "pending approvals, newest first", Flags: append(watchFlags(), &cli.BoolFlag{Name: "all", Usage: "decided ones too"}),
			Action: func(c *cli.Context) error {
				if _, err := readArguments(c); err != nil {
					return err
				}
				return env.maybeWatch(c, func() error { return approvalsList(c.Context, env, c.Bool("all")) })
			}},
		{Name: "approve", Usage: "approve the pending change of a model; training starts at once", ArgsUsage: "<model>",
			Flags: append([]cli.Flag{
				&cli.StringFlag{Name: "dataset", Aliases: []string{"d"}, Usage: "train on this dataset (default: the first declared)"},
				&cli.BoolFlag{Name: "follow", Usage: "watch the run to its end"},
			}, decide...),
			Action: func(c *cli.Context) error {
				a, err := readArguments(c, "model")
				if err != nil {
					return err
				}
				return approvalsDecide(c.Context, env, decision{model: a[0], approve: true, reason: c.String("reason"),
					dataset: c.String("dataset"), dryRun: c.Bool("dry-run"), follow: c.Bool("follow")})
			}},
		{Name: "reject", Usage: "reject the pending change of a model", ArgsUsage: "<model>", Flags: decide,
			Action: func(c *cli.Context) error {
				a, err := readArguments(c, "model")
				if err != nil {
					return err
				}
				return approvalsDecide(c.Context, env, decision{model: a[0], reason: c.String("reason"), dryRun: c.Bool("dry-run")})
			}},
	}}
}

// readPages reads a bare array page by page (X-Next-Cursor), at most limit pages of 500.
func readPages[T any](ctx context.Context, s *remote, path string, query url.Values) ([]T, error) {
	query.Set("limit", "500")
	all := []T{}
	for {
		var page []T
		header, err := s.do(ctx, "GET", path+"?"+query.Encode(), nil, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		cursor := header.Get("X-Next-Cursor")
		if cursor == "" {
			return all, nil
		}
		query.Set("cursor", cursor)
	}
}

func (e *Env) approvals(ctx context.Context, status string) ([]approval, error) {
	r, err := e.Config()
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	if status != "" {
		q.Set("status", status)
	}
	list, err := readPages[approval](ctx, e.controlPlane(r), "/approvals", q)
	for i := range list {
		if list[i].ChangedFiles == nil {
			list[i].ChangedFiles = []string{} // null for none; mlp's lists are arrays
		}
	}
	return list, err
}

func approvalsList(ctx context.Context, env *Env, all bool) error {
	status := "pending"
	if all {
		status = ""
	}
	list, err := env.approvals(ctx, status)
	if err != nil {
		return err
	}
	return env.Printer().Print(approvalGrid(list, all))
}

func approvalGrid(list []approval, all bool) output.Grid {
	g := output.Grid{Columns: []string{"ID", "Model", "Kind", "Commit", "Message", "Status", "Requested By", "Age"}, Doc: list,
		Empty: "Nothing is pending."}
	if all {
		g.Empty = "No approvals yet. A change notice (POST /api/changes) makes one."
	}
	for _, a := range list {
		g.Rows = append(g.Rows, []any{a.Id.String(), a.ModelId, string(a.Kind), shortSHA(a.CommitSha), a.CommitMsg, styledStatus(string(a.Status)), a.RequestedBy, output.Age(a.RequestedAt)})
	}
	return g
}

func shortSHA(sha string) string {
	if len(sha) > 10 {
		return sha[:10]
	}
	return sha
}

func styledStatus(s string) output.Styled {
	style := output.Plain
	switch strings.ToUpper(s) {
	case "APPROVED", "COMPLETED", "OK", "PASS", "READY":
		style = output.Good
	case "PENDING", "APPROVING", "WARNING", "DEGRADED", "WARN", "RUNNING", "SCHEDULED":
		style = output.Warn
	case "REJECTED", "FAILED", "CRASHED", "CRITICAL", "CORRUPT", "DOWN", "FAIL", "UNREACHABLE", "REFUSED":
		style = output.Bad
	case "EXPIRED", "CANCELLED", "NO_BASELINE", "INSUFFICIENT":
		style = output.Dim
	}
	return output.Styled{Value: s, Style: style}
}

type decision struct {
	model, reason, dataset  string
	approve, dryRun, follow bool
}

// pendingFor finds the one pending retrain approval of a model.
func (e *Env) pendingFor(ctx context.Context, model string) (*approval, error) {
	list, err := e.approvals(ctx, "pending")
	if err != nil {
		return nil, err
	}
	for i := range list {
		if strings.EqualFold(list[i].ModelId, model) && list[i].Kind != controlplane.ApprovalKindPromotion {
			return &list[i], nil
		}
	}
	return nil, fault.New("no_pending_approval", "no change of %s is pending", strings.ToUpper(model)).WithHint("see what is pending: mlp approvals list")
}

func approvalsDecide(ctx context.Context, env *Env, d decision) error {
	a, err := env.pendingFor(ctx, d.model)
	if err != nil && !d.dryRun {
		return err
	}
	verb := "reject"
	if d.approve {
		verb = "approve"
	}
	if d.dryRun {
		check := Check{Name: "pending approval", Pass: err == nil}
		would := map[string]any{"action": verb, "reason": nullIfEmpty(d.reason)}
		if err == nil {
			check.Detail = a.Id.String()
			would["approval_id"], would["commit_sha"], would["fires_training"] = a.Id, a.CommitSha, d.approve
		} else {
			check.Detail = err.Error()
		}
		return env.DryRun(strings.ToUpper(d.model), would, []Check{check})
	}
	env.Talk("%s  %s  %s\nrequested by %s, %s ago; %d changed file(s)", a.ModelId, shortSHA(a.CommitSha), output.Clean(a.CommitMsg),
		output.Clean(a.RequestedBy), output.Since(env.Now().Sub(a.RequestedAt)), len(a.ChangedFiles))
	question := fmt.Sprintf("Approve and train %s now?", a.ModelId)
	if !d.approve {
		question = fmt.Sprintf("Reject the change of %s?", a.ModelId)
	}
	yes, err := env.Confirm(ctx, question, d.approve)
	if err != nil || !yes {
		return err
	}
	r, err := env.Config()
	if err != nil {
		return err
	}
	cp := env.controlPlane(r)
	var reason, dataset *string
	if d.reason != "" {
		reason = &d.reason
	}
	if d.dataset != "" {
		dataset = &d.dataset
	}
	path := "/approve/" + escapeSegment(a.ModelId)
	var body any = controlplane.ApproveRequest{ApprovalId: &a.Id, DatasetName: dataset, Reason: reason}
	if !d.approve {
		body = controlplane.DecisionReason{Reason: reason}
		// By id: what was shown is what gets rejected.
		path = "/approvals/" + escapeSegment(a.Id.String()) + "/reject"
	}
	var res controlplane.ApproveResult // a rejection's answer is the same without a run
	if err := cp.post(ctx, path, body, &res); err != nil {
		var f *fault.Error
		if errors.As(err, &f) && f.Code == "approval_changed" {
			if now, e := env.pendingFor(ctx, d.model); e == nil {
				return fault.New("approval_changed", "the pending change of %s is now %s: %s", now.ModelId, shortSHA(now.CommitSha), now.CommitMsg).
					WithHint("look at it, then decide again: mlp approvals %s %s", verb, now.ModelId)
			}
		}
		return err
	}
	if d.follow && res.FlowRunId != nil {
		return env.follow(ctx, cp, map[string]any{"model_id": res.ModelId, "approval_id": res.ApprovalId, "status": res.Status, "status_url": res.StatusUrl}, *res.FlowRunId)
	}
	doc := map[string]any{"model_id": res.ModelId, "approval_id": res.ApprovalId, "status": res.Status, "flow_run_id": res.FlowRunId, "status_url": res.StatusUrl}
	if d.approve && res.FlowRunId != nil {
		return env.done(doc, "%s approved; training run %s started", res.ModelId, *res.FlowRunId)
	}
	return env.done(doc, "%s %s", res.ModelId, res.Status)
}
