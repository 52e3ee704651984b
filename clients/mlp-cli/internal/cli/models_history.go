package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func modelsHistoryCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "history", Usage: "which version held an alias when, and who moved it", ArgsUsage: "<model>", Flags: append(listFlags(50), aliasFlag("all")),
		Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			if err := oneOf("--alias", c.String("alias"), aliases...); err != nil {
				return err
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return modelsHistory(c.Context, env, strings.ToUpper(a[0]), c.String("alias"), o)
		}}
}

func modelsAtCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "at", Usage: "which version of a model, or of each model, held an alias at a time, and who had moved it", ArgsUsage: "[model] <time>", Flags: []cli.Flag{aliasFlag("Production")},
		Action: func(c *cli.Context) error {
			names := []string{"model", "time"}
			if c.NArg() < 2 {
				names = names[1:]
			}
			a, err := readArguments(c, names...)
			if err != nil {
				return err
			}
			when := a[len(a)-1]
			if err := oneOf("--alias", c.String("alias"), aliases...); err != nil {
				return err
			}
			alias := aliasOrProduction(c.String("alias"))
			at, err := parseTime(when, env.Now())
			if err != nil {
				return err
			}
			if at.After(env.Now()) {
				return fault.Usage("%s is in the future: which version it will be is not known yet", when)
			}
			if len(a) == 1 {
				return allModelsAt(c.Context, env, alias, at)
			}
			return modelsAt(c.Context, env, strings.ToUpper(a[0]), alias, at)
		}}
}

func aliasFlag(otherwise string) cli.Flag {
	return &cli.StringFlag{Name: "alias", Usage: strings.Join(aliases, ", ") + " (default " + otherwise + ")"}
}

func aliasOrProduction(alias string) string {
	if alias == "" {
		return "Production"
	}
	return alias
}

// approvalOf finds the approval that started a run; nil when none did.
func (e *Env) approvalOf(ctx context.Context, model string, run *string) (*string, error) {
	if run == nil {
		return nil, nil
	}
	cp, err := e.controlPlaneClient()
	if err != nil {
		return nil, err
	}
	var found *string
	_, _, err = readItems(0, func(limit *int, cursor *string) ([]controlplane.Run, *string, error) {
		page, err := decode[controlplane.RunList](cp.ListRuns(ctx, &controlplane.ListRunsParams{Model: &model, Limit: limit, Cursor: cursor}))
		for _, r := range page.Items {
			if r.FlowRunId == *run {
				if r.ApprovalId != nil {
					found = new(r.ApprovalId.String())
				}
				return nil, nil, nil
			}
		}
		return nil, page.NextCursor, err
	})
	return found, err
}

func modelsHistory(ctx context.Context, env *Env, model, alias string, o listOptions) error {
	list, more, err := env.aliasHistory(ctx, model, alias, o.fetch())
	if err != nil {
		return err
	}
	if len(list) == 0 {
		if err := env.refuseUnknownModel(ctx, model); err != nil {
			return err
		}
	}
	g := output.Grid{Columns: []string{"Alias", "Version", "Previous", "From", "To", "By", "Via"}, Doc: list, Spare: []string{"Previous", "Via"},
		Empty: "No version of " + model + " has held " + orAny(alias) + "."}
	for _, h := range list {
		g.Rows = append(g.Rows, []any{h.Alias, h.Version, h.PreviousVersion, h.From, h.To, h.Actor, string(h.Via)})
	}
	return env.printList(o, g, more)
}

func orAny(alias string) string {
	if alias == "" {
		return "any alias"
	}
	return alias
}

func modelsAt(ctx context.Context, env *Env, model, alias string, at time.Time) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	page, err := decode[controlplane.AliasHistory](cp.ListAliasHistory(ctx, &controlplane.ListAliasHistoryParams{Model: &model, Alias: &alias, At: &at}))
	if err != nil {
		return err
	}
	// An alias that was removed is held by no version.
	if len(page.Items) == 0 || page.Items[0].Version == nil {
		if err := env.refuseUnknownModel(ctx, model); err != nil {
			return err
		}
		return fault.New("no_holder", "no version of %s was %s at %s", model, alias, at.UTC().Format(time.RFC3339)).
			WithHint("see what has been: mlp models history %s", model)
	}
	h := page.Items[0]
	var promotion any
	if h.PromotionId != nil {
		promotion = h.PromotionId.String()
	}
	return env.Printer().Print(output.Grid{Columns: []string{"Field", "Value"}, Doc: h, Rows: [][]any{
		{"Model", h.Model}, {"Alias", h.Alias}, {"Version", h.Version}, {"Previous version", h.PreviousVersion}, {"From", h.From}, {"To", h.To},
		{"Moved by", h.Actor}, {"Via", string(h.Via)}, {"Promotion", promotion}, {"Digest", h.Digest},
	}})
}

// allModelsAt shows what each model's alias held: what was in Production on that day. The API
// answers for one model at a time, so the whole history of the alias is read.
func allModelsAt(ctx context.Context, env *Env, alias string, at time.Time) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	list, _, err := readItems(0, func(limit *int, cursor *string) ([]controlplane.AliasHolder, *string, error) {
		page, err := decode[controlplane.AliasHistory](cp.ListAliasHistory(ctx, &controlplane.ListAliasHistoryParams{Alias: &alias, Limit: limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	if err != nil {
		return err
	}
	held := []controlplane.AliasHolder{}
	for _, h := range list {
		if !h.From.After(at) && (h.To == nil || h.To.After(at)) && h.Version != nil {
			held = append(held, h)
		}
	}
	slices.SortFunc(held, func(a, b controlplane.AliasHolder) int { return strings.Compare(a.Model, b.Model) })
	g := output.Grid{Columns: []string{"Model", "Alias", "Version", "Previous", "From", "To", "By", "Via"}, Doc: held, Spare: []string{"Alias", "Previous", "Via"},
		Empty: "No version of any model was " + alias + " at " + at.UTC().Format(time.RFC3339) + "."}
	for _, h := range held {
		g.Rows = append(g.Rows, []any{h.Model, h.Alias, h.Version, h.PreviousVersion, h.From, h.To, h.Actor, string(h.Via)})
	}
	return env.Printer().Print(g)
}
