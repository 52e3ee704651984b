package cli

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func modelsRollbackCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "rollback", Usage: "give an alias back to a version that held it before", ArgsUsage: "<model> [version]", Flags: []cli.Flag{
		aliasFlag("Production"),
		&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Required: true, Usage: "why; kept in the record"},
		&cli.BoolFlag{Name: "dry-run", Usage: "show what would happen, change nothing"},
	}, Action: func(c *cli.Context) error {
		a, err := readArguments(c, "model", "[version]")
		if err != nil {
			return err
		}
		if err := oneOf("--alias", c.String("alias"), aliases...); err != nil {
			return err
		}
		o := rollbackOptions{model: strings.ToUpper(a[0]), version: a[1], alias: c.String("alias"), reason: c.String("reason")}
		if o.alias == "" {
			o.alias = "Production"
		}
		return modelsRollback(c.Context, env, o, c.Bool("dry-run"))
	}}
}

type rollbackOptions struct{ model, version, alias, reason string }

// formerHolder finds the version that a rollback would give the alias to: the named one if it held the alias
// before, else the one before the present holder.
func (e *Env) formerHolder(ctx context.Context, o rollbackOptions) (now, to string, err error) {
	cp, err := e.controlPlaneClient()
	if err != nil {
		return "", "", err
	}
	history, _, err := readItems(0, func(limit *int, cursor *string) ([]controlplane.AliasHolder, *string, error) {
		page, err := decode[controlplane.AliasHistory](cp.ListAliasHistory(ctx, &controlplane.ListAliasHistoryParams{Model: &o.model, Alias: &o.alias, Limit: limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	if err != nil {
		return "", "", err
	}
	hint := "see who held it: mlp models history " + o.model + " --alias " + o.alias
	if len(history) == 0 || history[0].Version == nil {
		return "", "", fault.New("no_holder", "no version of %s is %s", o.model, o.alias).WithHint("%s", hint)
	}
	now = *history[0].Version
	for _, h := range history[1:] {
		if h.Version != nil && *h.Version != now && (o.version == "" || *h.Version == o.version) {
			return now, *h.Version, nil
		}
	}
	if o.version == "" {
		return now, "", fault.New("no_former_holder", "no version of %s was %s before version %s", o.model, o.alias, now).WithHint("%s", hint)
	}
	return now, "", fault.New("no_former_holder", "version %s of %s was not %s before", o.version, o.model, o.alias).WithHint("%s", hint)
}

func modelsRollback(ctx context.Context, env *Env, o rollbackOptions, dryRun bool) error {
	now, to, err := env.formerHolder(ctx, o)
	if dryRun {
		check := Check{Name: "former holder", Pass: err == nil, Detail: "version " + to + " held " + o.alias + " before"}
		if err != nil {
			check.Detail = err.Error()
		}
		return env.DryRun(o.model, map[string]any{"alias": o.alias, "from_version": nullIfEmpty(now), "to_version": nullIfEmpty(to), "reason": o.reason}, []Check{check})
	}
	if err != nil {
		return err
	}
	yes, err := env.Confirm(ctx, "Make version "+to+" of "+o.model+" "+o.alias+" again, instead of "+now+"?", false)
	if err != nil || !yes {
		return err
	}
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	// The version that was shown is named, so that another rollback meanwhile cannot change what this one does.
	res, err := decode[controlplane.Rollback](cp.RollbackAlias(ctx, o.model, o.alias, controlplane.RollbackRequest{Reason: o.reason, Version: &to}))
	if err != nil {
		return err
	}
	doc := map[string]any{"id": res.Id, "model": res.Model, "alias": res.Alias, "version": res.Version, "previous_version": res.PreviousVersion, "state": res.State}
	if res.State == controlplane.Moving {
		return env.done(doc, "%s of %s goes back to version %s as soon as the tracker answers", res.Alias, res.Model, res.Version)
	}
	return env.done(doc, "%s of %s: version %s instead of %s (%s)", res.Alias, res.Model, res.Version, derefString(res.PreviousVersion), res.State)
}
