package cli

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

var guardedStates = []string{"pending", "applied", "rejected", "expired", "superseded"}

func guardedCommand(env *Env) *cli.Command {
	decide := func(name, usage string, approve bool) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, ArgsUsage: "<change>", Flags: []cli.Flag{
			&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Usage: "why; kept in the record"}, dryRunFlag(),
		}, Action: func(c *cli.Context) error {
			a, err := readArguments(c, "change")
			if err != nil {
				return err
			}
			return decideGuarded(c.Context, env, a[0], approve, c.String("reason"), c.Bool("dry-run"))
		}}
	}
	return &cli.Command{Name: "guarded-changes", Usage: "changes of policies and settings that need a second person", Subcommands: []*cli.Command{
		{Name: "list", Usage: "changes that wait for a second person, newest first", Flags: slices.Concat(watchFlags(), arrangeFlags(50), []cli.Flag{
			&cli.StringFlag{Name: "state", Value: "pending", Usage: strings.Join(guardedStates, ", ")},
			&cli.BoolFlag{Name: "all", Usage: "of every state"},
		}), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			state := c.String("state")
			if err := oneOf("--state", state, guardedStates...); err != nil {
				return err
			}
			if c.Bool("all") {
				state = ""
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return env.maybeWatch(c, func() error { return listGuarded(c.Context, env, state, o) })
		}},
		{Name: "show", Usage: "what would change: each setting before and after", ArgsUsage: "<change>", Action: func(c *cli.Context) error {
			a, err := readArguments(c, "change")
			if err != nil {
				return err
			}
			change, err := env.findGuarded(c.Context, a[0])
			if err != nil {
				return err
			}
			return env.Printer().Print(guardedGrid(change), settingsGrid(change))
		}},
		decide("approve", "approve another person's change", true),
		decide("reject", "reject a change; the setting stays as it is", false),
	}}
}

// guardedChanges reads the changes of a state, of every state if it is empty.
func (e *Env) guardedChanges(ctx context.Context, state string, limit int) ([]controlplane.GuardedChange, bool, error) {
	cp, err := e.controlPlaneClient()
	if err != nil {
		return nil, false, err
	}
	params := controlplane.ListGuardedChangesParams{}
	if state != "" {
		params.State = new(controlplane.ListGuardedChangesParamsState(state))
	}
	return readItems(limit, func(limit *int, cursor *string) ([]controlplane.GuardedChange, *string, error) {
		params.Limit, params.Cursor = limit, cursor
		page, err := decode[controlplane.GuardedChangeList](cp.ListGuardedChanges(ctx, &params))
		return page.Items, page.NextCursor, err
	})
}

func listGuarded(ctx context.Context, env *Env, state string, o listOptions) error {
	list, more, err := env.guardedChanges(ctx, state, o.fetch())
	if err != nil {
		return err
	}
	g := output.Grid{Columns: []string{"ID", "Kind", "Target", "State", "Requested By", "Age", "Expires"}, Doc: list, Spare: []string{"Expires", "Requested By", "Age"},
		Empty: "No change waits for a second person."}
	switch state {
	case "":
		g.Empty = "No change has needed a second person."
	case string(controlplane.GuardedChangeStatePending):
	default:
		g.Empty = "No change is " + state + "."
	}
	for _, c := range list {
		g.Rows = append(g.Rows, []any{c.Id.String(), string(c.Kind), c.Target, styledStatus(string(c.State)), c.RequestedBy, output.Age(c.RequestedAt), c.ExpiresAt})
	}
	return env.printList(o, g, more)
}

// findGuarded finds a change by its id; the API has no route for one.
func (e *Env) findGuarded(ctx context.Context, id string) (controlplane.GuardedChange, error) {
	none := controlplane.GuardedChange{}
	wanted, err := uuid.Parse(id)
	if err != nil {
		return none, fault.New("bad_change", "%q is not a valid id of a change", id).WithHint("see the changes: mlp guarded-changes list")
	}
	list, _, err := e.guardedChanges(ctx, "", 0)
	if err != nil {
		return none, err
	}
	for _, c := range list {
		if c.Id == wanted {
			return c, nil
		}
	}
	return none, fault.New("unknown_change", "there is no guarded change %s", id).WithHint("see the changes: mlp guarded-changes list --all")
}

func guardedGrid(c controlplane.GuardedChange) output.Grid {
	g := output.Grid{Columns: []string{"Field", "Value"}, Doc: c, Rows: [][]any{
		{"ID", c.Id.String()}, {"Kind", string(c.Kind)}, {"Target", c.Target}, {"State", styledStatus(string(c.State))},
		{"Requested by", c.RequestedBy}, {"Requested", output.Ago(c.RequestedAt)}, {"Expires", c.ExpiresAt}, {"First approver", c.FirstApprover},
		{"Decided by", c.DecidedBy}, {"Reason", c.Reason},
	}}
	if c.PersonUnknown {
		g.Rows = append(g.Rows, []any{"Approvals needed", "2: it came through the environment, author unknown"})
	}
	return g
}

// settingsGrid lists the differences of a change, member by member where both sides are objects.
func settingsGrid(c controlplane.GuardedChange) output.Grid {
	g := output.Grid{Title: "Change", Columns: []string{"Setting", "Before", "After"}, Empty: "Nothing would change."}
	before, _ := c.Old.(map[string]any)
	after, _ := c.New.(map[string]any)
	if before == nil && after == nil {
		g.Rows = [][]any{{c.Target, jsonCell(c.Old), jsonCell(c.New)}}
		return g
	}
	names := map[string]bool{}
	for k := range before {
		names[k] = true
	}
	for k := range after {
		names[k] = true
	}
	for _, k := range sortedKeys(names) {
		if !reflect.DeepEqual(before[k], after[k]) {
			g.Rows = append(g.Rows, []any{k, jsonCell(before[k]), jsonCell(after[k])})
		}
	}
	return g
}

// jsonCell shows a value of any type as JSON, and a text as it is.
func jsonCell(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return v
	}
	data, err := output.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

func decideGuarded(ctx context.Context, env *Env, id string, approve bool, reason string, dryRun bool) error {
	verb := map[bool]string{true: "approve", false: "reject"}[approve]
	change, err := env.findGuarded(ctx, id)
	pending := err == nil && change.State == controlplane.GuardedChangeStatePending
	if dryRun {
		check := Check{Name: "the change waits", Pass: pending, Detail: string(change.State)}
		if err != nil {
			check.Detail = err.Error()
		}
		return env.DryRun(id, map[string]any{"action": verb, "kind": nullIfEmpty(string(change.Kind)), "target": nullIfEmpty(change.Target), "reason": nullIfEmpty(reason)}, []Check{check})
	}
	if err != nil {
		return err
	}
	if !pending {
		return fault.New("already_decided", "change %s is %s already", id, change.State).WithHint("see: mlp guarded-changes show %s", id)
	}
	if !env.Format.Structured() && !env.Quiet {
		if err := env.Printer().Print(settingsGrid(change)); err != nil {
			return err
		}
	}
	yes, err := env.Confirm(ctx, strings.ToUpper(verb[:1])+verb[1:]+" the change of "+change.Target+" by "+change.RequestedBy+"?", false)
	if err != nil || !yes {
		return err
	}
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	if approve {
		change, err = decode[controlplane.GuardedChange](cp.ApproveGuardedChange(ctx, change.Id, controlplane.ApproveGuardedChangeJSONRequestBody{Reason: optional(reason)}))
	} else {
		change, err = decode[controlplane.GuardedChange](cp.RejectGuardedChange(ctx, change.Id, controlplane.RejectGuardedChangeJSONRequestBody{Reason: optional(reason)}))
	}
	if err != nil {
		return err
	}
	doc := map[string]any{"id": change.Id, "kind": change.Kind, "target": change.Target, "state": change.State, "decided_by": change.DecidedBy}
	switch change.State {
	case controlplane.GuardedChangeStatePending:
		return env.done(doc, "the first of two approvals is given; another person must approve change %s too", id)
	case controlplane.GuardedChangeStateApplied:
		return env.done(doc, "the change of %s is in force", change.Target)
	}
	return env.done(doc, "the change of %s is %s", change.Target, change.State)
}
