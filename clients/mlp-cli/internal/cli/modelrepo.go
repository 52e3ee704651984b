package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func modelrepoCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "modelrepo", Usage: "the watched model repository", Subcommands: []*cli.Command{
		{Name: "status", Usage: "which models are trained from the newest commit", Flags: append(watchFlags(), listFlags(0)...), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return env.maybeWatch(c, func() error { return modelrepoStatus(c.Context, env, o) })
		}},
		{Name: "events", Usage: "pushes that were seen, newest first", Flags: listFlags(10), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return modelrepoEvents(c.Context, env, o)
		}},
		{Name: "sync", Usage: "look for new commits now", Flags: []cli.Flag{reasonFlag(), dryRunFlag()}, Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			if err := noReason(c, "the control plane", "a poll"); err != nil {
				return err
			}
			return modelrepoSync(c.Context, env, c.Bool("dry-run"))
		}},
		{Name: "config", Usage: "how the repository is watched; with --set, change it", Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "set", Usage: "KEY=VALUE; may be repeated"}, reasonFlag(), dryRunFlag(),
		}, Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			if err := noReason(c, "the control plane", "this setting"); err != nil {
				return err
			}
			return modelrepoConfig(c.Context, env, c.StringSlice("set"), c.Bool("dry-run"))
		}},
	}}
}

func modelrepoStatus(ctx context.Context, env *Env, o listOptions) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	snap, err := decode[controlplane.FreshnessSnapshot](cp.GetFreshness(ctx))
	if err != nil {
		return err
	}
	rows := mapRows(snap.Models, func(m controlplane.Freshness) freshnessRow {
		return freshnessRow{m, m.ModelId, m.LatestModelrepoCommit, m.TrainedFromCommit}
	})
	g := output.Grid{Columns: []string{"Model", "Status", "Stale Since", "Latest Commit", "Trained From"}, Empty: "The repository declares no model."}
	for _, m := range snap.Models {
		g.Rows = append(g.Rows, []any{m.ModelId, styledStatus(strings.ToUpper(string(m.Status))), m.StaleSince, shortCommit(m.LatestModelrepoCommit), shortCommit(m.TrainedFromCommit)})
	}
	if err := o.arrange(&g, &rows); err != nil {
		return err
	}
	g.Doc = map[string]any{"models": rows, "last_event": snap.LastEvent}
	if e := snap.LastEvent; e != nil {
		g.Notes = []string{"", "last push " + output.Clean(shortSHA(e.CommitSha)) + ", " + output.Since(env.Now().Sub(e.Timestamp)) + " ago, by " + string(e.Source)}
	}
	return env.Printer().Print(g)
}

func shortCommit(sha *string) any {
	if sha == nil {
		return nil
	}
	return shortSHA(*sha)
}

func modelrepoEvents(ctx context.Context, env *Env, o listOptions) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	events, more, err := readItems(o.fetch(), func(limit *int, cursor *string) ([]controlplane.PushEvent, *string, error) {
		resp, err := cp.ListPushes(ctx, &controlplane.ListPushesParams{Limit: limit, Cursor: cursor})
		if err != nil {
			return nil, nil, err
		}
		next := optional(resp.Header.Get("X-Next-Cursor"))
		page, err := decode[[]controlplane.PushEvent](resp, nil)
		return page, next, err
	})
	if err != nil {
		return err
	}
	g := output.Grid{Columns: []string{"#", "Commit", "Branch", "Pushed By", "Time", "Source"},
		Doc:   mapRows(events, func(e controlplane.PushEvent) pushRow { return pushRow{e, e.Id, e.CommitSha, e.Timestamp} }),
		Empty: "No push was seen yet. Look for one with: mlp modelrepo sync"}
	for _, e := range events {
		g.Rows = append(g.Rows, []any{e.Id, shortSHA(e.CommitSha), e.Branch, e.PushedBy, e.Timestamp, string(e.Source)})
	}
	return env.printList(o, g, more)
}

func modelrepoSync(ctx context.Context, env *Env, dryRun bool) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	if dryRun {
		conf, err := decode[controlplane.ModelrepoConfig](cp.GetModelrepoConfig(ctx))
		check := Check{Name: "control plane answers", Pass: err == nil, Detail: "watches " + conf.WatchBranch}
		if err != nil {
			check.Detail = err.Error()
		}
		return env.DryRun("model repository", map[string]any{"action": "look for new commits", "branch": nullIfEmpty(conf.WatchBranch), "auto_retrain": conf.AutoRetrain}, []Check{check})
	}
	yes, err := env.Confirm(ctx, "Look for new commits now?", false)
	if err != nil || !yes {
		return err
	}
	bar := env.countBar("sync", 1)
	res, err := decode[controlplane.SyncResult](cp.SyncModelrepo(ctx))
	bar.end()
	if err != nil {
		return err
	}
	if res.Error != nil {
		f := fault.New("sync_failed", "the control plane cannot read the model repository: %s", *res.Error)
		f.Service = "control_plane"
		return f
	}
	stale := []string{}
	if res.ModelsMarkedStale != nil {
		stale = *res.ModelsMarkedStale
	}
	doc := map[string]any{"commit_sha": res.CommitSha, "new_commit": res.NewCommit, "models_marked_stale": stale}
	commit := derefString(res.CommitSha)
	if !res.NewCommit {
		return env.done(doc, "nothing new: %s is still the newest commit", shortSHA(commit))
	}
	return env.done(doc, "new commit %s; stale: %s", shortSHA(commit), orNone(stale))
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return listNames(list)
}

// modelrepoKeys are the settings, in the order in which they are shown.
var modelrepoKeys = []string{"auto_retrain", "gate", "poll_interval_seconds", "stale_scope", "watch_branch"}

func modelrepoConfig(ctx context.Context, env *Env, sets []string, dryRun bool) error {
	patch, err := parsePatch(sets)
	if err != nil {
		return err
	}
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	if dryRun {
		now, err := decode[map[string]any](cp.GetModelrepoConfig(ctx))
		check := Check{Name: "control plane answers", Pass: err == nil}
		if err != nil {
			check.Detail = err.Error()
		}
		return env.DryRun("model repository", map[string]any{"now": now, "set": patch}, []Check{check})
	}
	if len(patch) == 0 {
		conf, err := decode[map[string]any](cp.GetModelrepoConfig(ctx))
		if err != nil {
			return err
		}
		return env.Printer().Print(modelrepoConfigGrid(conf))
	}
	yes, err := env.Confirm(ctx, "Set "+strings.Join(sets, ", ")+"?", false)
	if err != nil || !yes {
		return err
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	var body controlplane.ModelrepoConfigPatch
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	conf, waits, err := decodeGuarded[map[string]any](cp.PutModelrepoConfig(ctx, body))
	if err != nil {
		return err
	}
	if waits != nil {
		return env.changeWaits(waits)
	}
	return env.Printer().Print(modelrepoConfigGrid(conf))
}

func modelrepoConfigGrid(conf map[string]any) output.Grid {
	g := output.Grid{Columns: []string{"Key", "Value"}, Doc: conf}
	for _, k := range modelrepoKeys {
		g.Rows = append(g.Rows, []any{k, conf[k]})
	}
	return g
}

// parsePatch reads KEY=VALUE. The control plane ignores keys that it does not know, so a slip would change nothing
// and say nothing: it is refused here.
func parsePatch(sets []string) (map[string]any, error) {
	patch := map[string]any{}
	for _, s := range sets {
		k, v, ok := strings.Cut(s, "=")
		if !ok || v == "" {
			return nil, fault.Usage("--set takes KEY=VALUE, not %q", s)
		}
		if !slices.Contains(modelrepoKeys, k) {
			return nil, fault.Usage("--set: there is no key %q; the keys are %s", k, strings.Join(modelrepoKeys, ", "))
		}
		switch k {
		case "auto_retrain":
			on, err := strconv.ParseBool(v)
			if err != nil {
				return nil, fault.Usage("--set: %s must be true or false, not %q", k, v)
			}
			patch[k] = on
		case "poll_interval_seconds":
			n, err := strconv.Atoi(v)
			if err != nil {
				return nil, fault.Usage("--set: %s must be a whole number, not %q", k, v)
			}
			patch[k] = n
		default:
			patch[k] = v
		}
	}
	return patch, nil
}
