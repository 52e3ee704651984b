package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func modelsRollbackCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "rollback", Usage: "give an alias back to a version that held it before", ArgsUsage: "<model> [version]", Flags: []cli.Flag{
		aliasFlag("Production"),
		&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Required: true, Usage: "why; kept in the record"},
		followFlag("wait until the alias has moved, even if the tracker does not answer at once"),
		dryRunFlag(),
	}, Action: func(c *cli.Context) error {
		a, err := readArguments(c, "model", "[version]")
		if err != nil {
			return err
		}
		if err := oneOf("--alias", c.String("alias"), aliases...); err != nil {
			return err
		}
		return modelsRollback(c.Context, env, rollbackOptions{model: strings.ToUpper(a[0]), version: a[1], alias: aliasOrProduction(c.String("alias")), reason: c.String("reason"), follow: c.Bool("follow")}, c.Bool("dry-run"))
	}}
}

type rollbackOptions struct {
	model, version, alias, reason string
	follow                        bool
}

// aliasHistory lists who held an alias of a model, or any of its aliases, newest first; limit 0 is all.
func (e *Env) aliasHistory(ctx context.Context, model, alias string, limit int) (list []controlplane.AliasHolder, more bool, err error) {
	cp, err := e.controlPlaneClient()
	if err != nil {
		return nil, false, err
	}
	return readItems(limit, func(limit *int, cursor *string) ([]controlplane.AliasHolder, *string, error) {
		page, err := decode[controlplane.AliasHistory](cp.ListAliasHistory(ctx, &controlplane.ListAliasHistoryParams{Model: &model, Alias: optional(alias), Limit: limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
}

// formerHolder finds the version that a rollback would give the alias to: the named one if it held the alias
// before, else the one before the present holder.
func (e *Env) formerHolder(ctx context.Context, o rollbackOptions) (now, to string, err error) {
	history, _, err := e.aliasHistory(ctx, o.model, o.alias, 0)
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
	// The version that was shown is named, so that a concurrent rollback cannot change what this one does.
	res, err := decode[controlplane.Rollback](cp.RollbackAlias(ctx, o.model, o.alias, controlplane.RollbackRequest{Reason: o.reason, Version: &to}))
	if err != nil {
		return err
	}
	doc := map[string]any{"id": res.Id, "model": res.Model, "alias": res.Alias, "version": res.Version, "previous_version": res.PreviousVersion, "state": res.State}
	if res.State == controlplane.Moving && o.follow {
		return env.followRollback(ctx, doc, o, now, res)
	}
	if res.State == controlplane.Moving {
		return env.done(doc, "%s of %s goes back to version %s as soon as the tracker answers", res.Alias, res.Model, res.Version)
	}
	return env.done(doc, "%s of %s: version %s instead of %s (%s)", res.Alias, res.Model, res.Version, derefString(res.PreviousVersion), res.State)
}

// failedMove returns why the control plane gave up a rollback, once its ledger records it. A ledger that cannot be
// read is not an error: the rollback is followed by the history of the alias.
func (e *Env) failedMove(ctx context.Context, move controlplane.Rollback) (reason string, failed bool) {
	cp, err := e.controlPlaneClient()
	if err != nil {
		return "", false
	}
	since := time.Unix(move.Id.Time().UnixTime()).UTC() // when the control plane planned it, by its own clock
	page, err := decode[controlplane.AuditEventList](cp.ListAuditEvents(ctx, &controlplane.ListAuditEventsParams{Model: &move.Model, Action: new("alias.moved"), Since: &since}))
	if err != nil {
		return "", false
	}
	for _, entry := range page.Items {
		var of struct{ Alias, Version, Reason string }
		if entry.Outcome == controlplane.AuditOutcomeFailed && json.Unmarshal(entry.Details, &of) == nil && of.Alias == move.Alias && of.Version == move.Version {
			return of.Reason, true
		}
	}
	return "", false
}

// followRollback waits until the alias has left the version that it was taken from, or the move has failed for good.
func (e *Env) followRollback(ctx context.Context, doc map[string]any, o rollbackOptions, from string, move controlplane.Rollback) error {
	holder, to := from, move.Version
	var reason string
	var failed bool
	show, stop := e.spinner(ctx, "the rollback of "+o.model)
	err := poll(ctx, func() (bool, error) {
		show(string(controlplane.Moving))
		history, _, err := e.aliasHistory(ctx, o.model, o.alias, 1)
		if err == nil && len(history) > 0 {
			holder = derefString(history[0].Version)
		}
		if err == nil && holder == from {
			reason, failed = e.failedMove(ctx, move)
		}
		return holder != from || failed, err
	})
	stop()
	see := "mlp models history " + o.model + " --alias " + o.alias
	switch {
	case errors.Is(err, context.Canceled):
		return fault.New("interrupted", "stopped watching; the rollback of %s to version %s continues", o.model, to).WithHint("see it with: %s", see)
	case err != nil:
		return fault.New("not_followed", "how the rollback of %s ended is not known: %v", o.model, err).WithHint("see it with: %s", see)
	case failed:
		return fault.New("rollback_failed", "the rollback of %s to version %s failed; %s stays with version %s: %s", o.model, to, o.alias, from, reason).WithHint("see what was done: mlp audit --model %s", o.model)
	case holder != to:
		return fault.New("alias_moved", "%s of %s went to version %s instead of %s", o.alias, o.model, holder, to).WithHint("see who moved it: %s", see)
	}
	doc["state"] = controlplane.Moved
	return e.done(doc, "%s of %s: version %s instead of %s", o.alias, o.model, to, from)
}
