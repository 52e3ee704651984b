package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

type approval = controlplane.Approval

func approvalsCommand(env *Env) *cli.Command {
	decide := []cli.Flag{
		&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Usage: "why; kept in the record"},
		dryRunFlag(),
	}
	return &cli.Command{Name: "approvals", Usage: "changes and promotions that wait for a decision", Subcommands: []*cli.Command{
		{Name: "list", Usage: "pending approvals, newest first",
			Flags: slices.Concat(watchFlags(), arrangeFlags(0), []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "include decided records"}}),
			Action: func(c *cli.Context) error {
				if _, err := readArguments(c); err != nil {
					return err
				}
				o, err := env.readListOptions(c)
				if err != nil {
					return err
				}
				return env.maybeWatch(c, func() error { return approvalsList(c.Context, env, c.Bool("all"), o) })
			}},
		{Name: "show", Usage: "what would be approved: the version and its checks, or the diff of the change", ArgsUsage: "<model or id>",
			Action: func(c *cli.Context) error {
				a, err := readArguments(c, "model or id")
				if err != nil {
					return err
				}
				return approvalsShow(c.Context, env, a[0])
			}},
		{Name: "approve", Usage: "approve what is pending of a model: a change starts training, a promotion moves the alias", ArgsUsage: "<model or id>",
			Flags: append([]cli.Flag{
				&cli.StringFlag{Name: "dataset", Aliases: []string{"d"}, Usage: "train on this dataset (default: the first declared); not for promotions"},
				followFlag("watch the training run, or the promotion, to its end"),
			}, decide...),
			Action: func(c *cli.Context) error {
				a, err := readArguments(c, "model or id")
				if err != nil {
					return err
				}
				return approvalsDecide(c.Context, env, decision{subject: a[0], approve: true, reason: c.String("reason"),
					dataset: c.String("dataset"), dryRun: c.Bool("dry-run"), follow: c.Bool("follow")})
			}},
		{Name: "reject", Usage: "reject what is pending of a model", ArgsUsage: "<model or id>", Flags: decide,
			Action: func(c *cli.Context) error {
				a, err := readArguments(c, "model or id")
				if err != nil {
					return err
				}
				return approvalsDecide(c.Context, env, decision{subject: a[0], reason: c.String("reason"), dryRun: c.Bool("dry-run")})
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

// listedApproval is an approval with the version that a promotion would move.
type listedApproval struct {
	approval
	Promotion *listedPromotion `json:"promotion"` // null for a change
}

type listedPromotion struct {
	Version         string  `json:"version"`
	From            string  `json:"from"`
	To              string  `json:"to"`
	PreviousVersion *string `json:"previous_version"`
}

// withPromotions adds the version of each promotion among the approvals, by one list of promotions.
func (e *Env) withPromotions(ctx context.Context, list []approval, status string) ([]listedApproval, error) {
	out := make([]listedApproval, len(list))
	wanted := map[uuid.UUID]int{}
	for i, a := range list {
		out[i] = listedApproval{approval: a}
		if a.PromotionId != nil {
			wanted[*a.PromotionId] = i
		}
	}
	if len(wanted) == 0 {
		return out, nil
	}
	cp, err := e.controlPlaneClient()
	if err != nil {
		return nil, err
	}
	var state *controlplane.PromotionState
	if status == "pending" {
		state = new(controlplane.PromotionStatePending)
	}
	_, _, err = readItems(0, func(limit *int, cursor *string) ([]controlplane.Promotion, *string, error) {
		page, err := decode[controlplane.PromotionList](cp.ListPromotions(ctx, &controlplane.ListPromotionsParams{State: state, Limit: limit, Cursor: cursor}))
		for _, p := range page.Items {
			if i, ok := wanted[p.Id]; ok {
				out[i].Promotion = &listedPromotion{p.Version, p.From, p.To, p.PreviousVersion}
				delete(wanted, p.Id)
			}
		}
		if len(wanted) == 0 {
			return nil, nil, err
		}
		return nil, page.NextCursor, err
	})
	return out, err
}

func approvalsList(ctx context.Context, env *Env, all bool, o listOptions) error {
	status := "pending"
	if all {
		status = ""
	}
	list, err := env.approvals(ctx, status)
	if err != nil {
		return err
	}
	shown, err := env.withPromotions(ctx, list, status)
	if err != nil {
		return err
	}
	return env.printList(o, approvalGrid(shown, all, env.Now()), false)
}

func approvalGrid(list []listedApproval, all bool, now time.Time) output.Grid {
	g := output.Grid{Columns: []string{"ID", "Model", "Kind", "Commit", "Message", "Status", "Requested By", "Age"},
		Doc: mapRows(list, func(a listedApproval) approvalRow {
			return approvalRow{a, a.ModelId, a.CommitSha, a.message(), int64(now.Sub(a.RequestedAt).Seconds())}
		}),
		Spare: []string{"Commit", "Requested By", "ID"}, // a decision takes the model as well
		Empty: "Nothing is pending."}
	if all {
		g.Empty = "No approvals yet. A change notice (POST /api/changes) makes one."
	}
	for _, a := range list {
		g.Rows = append(g.Rows, []any{a.Id.String(), a.ModelId, string(a.Kind), shortSHA(a.CommitSha), a.message(), styledStatus(string(a.Status)), a.RequestedBy, output.Age(a.RequestedAt)})
	}
	return g
}

// message returns a change's commit message, or what a promotion would do.
func (a listedApproval) message() string {
	if a.Promotion == nil {
		return a.CommitMsg
	}
	return describeMove(a.Promotion.Version, a.Promotion.From, a.Promotion.To, a.Promotion.PreviousVersion)
}

func describeMove(version, from, to string, previous *string) string {
	s := fmt.Sprintf("version %s: %s → %s", version, from, to)
	if previous != nil {
		s += ", which was " + *previous + " when it was requested"
	}
	return s
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
	case "APPROVED", "COMPLETED", "OK", "PASS", "READY", "PROMOTED", "CURRENT", "ACKNOWLEDGED", "HEALTHY":
		style = output.Good
	case "PENDING", "APPROVING", "WARNING", "DEGRADED", "WARN", "RUNNING", "SCHEDULED", "STALE", "DENIED", "CANCELLING", "FIRING", "STARTING":
		style = output.Warn
	case "REJECTED", "FAILED", "CRASHED", "CRITICAL", "CORRUPT", "DOWN", "FAIL", "UNREACHABLE", "UNEXPECTED", "REFUSED", "ERROR", "UNHEALTHY":
		style = output.Bad
	case "EXPIRED", "SUPERSEDED", "CANCELLED", "RESOLVED", "NO_BASELINE", "INSUFFICIENT":
		style = output.Dim
	}
	return output.Styled{Value: s, Style: style}
}
