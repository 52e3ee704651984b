package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// joinConditions converts --if-METRIC-OP VALUE to --if=METRIC-OP=VALUE, since no flag library can know such names
// beforehand. Only pipeline promote has such options.
func joinConditions(line []string) []string {
	at := -1
	for i := 0; i+1 < len(line); i++ {
		if line[i] == "pipeline" && line[i+1] == "promote" {
			at = i + 2
			break
		}
	}
	if at < 0 {
		return line
	}
	out := append([]string{}, line[:at]...)
	for i := at; i < len(line); i++ {
		condition, ok := strings.CutPrefix(line[i], "--if-")
		switch {
		case line[i] == "--":
			return append(out, line[i:]...)
		case ok && !strings.Contains(condition, "=") && i+1 < len(line):
			i++
			out = append(out, "--if="+condition+"="+line[i])
		case ok:
			out = append(out, "--if="+condition)
		default:
			out = append(out, line[i])
		}
	}
	return out
}

// parseCondition reads METRIC-OP=VALUE; the operator stands behind the last dash.
func parseCondition(s string) (controlplane.Condition, error) {
	var c controlplane.Condition
	name, value, ok := strings.Cut(s, "=")
	if !ok || value == "" {
		return c, fault.Usage("--if-%s needs a value", name)
	}
	dash := strings.LastIndexByte(name, '-')
	if dash < 1 {
		return c, fault.Usage("--if-%s names no operator", name).WithHint("for example: --if-rmse-lte 50, with lt, gt, lte or gte")
	}
	c.Metric, c.Op = name[:dash], controlplane.Operator(name[dash+1:])
	if !c.Op.Valid() {
		return c, fault.Usage("--if-%s: the operator must be lt, gt, lte or gte, not %q", name, string(c.Op))
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return c, fault.Usage("--if-%s needs a number, not %q", name, value)
	}
	c.Value = v
	return c, nil
}

// isLimit reports whether a metric can be compared with the condition's value.
func isLimit(c controlplane.Condition) bool { return !math.IsNaN(c.Value) && !math.IsInf(c.Value, 0) }

func pipelinePromoteCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "promote", Usage: "move an alias to a version that meets the conditions, or the saved policy", ArgsUsage: "[model]", Flags: slices.Concat([]cli.Flag{
		&cli.StringSliceFlag{Name: "if", Usage: "METRIC-OP=VALUE, also written --if-METRIC-OP VALUE; OP is lt, gt, lte or gte; all must hold"},
		&cli.StringFlag{Name: "from", Value: "Staging", Usage: strings.Join(aliases, ", ")},
		&cli.StringFlag{Name: "to", Value: "Production", Usage: strings.Join(aliases, ", ")},
		&cli.BoolFlag{Name: "save", Usage: "store the condition as the model's policy, and move nothing"},
		&cli.BoolFlag{Name: "list", Usage: "the saved policies; takes the options of a list"},
		followFlag("wait until the alias has moved, and for the other person's approval if it needs one"),
		&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Usage: "why; kept in the record"},
		dryRunFlag(),
	}, listFlags(0)), Action: func(c *cli.Context) error {
		a, err := readArguments(c, "[model]")
		if err != nil {
			return err
		}
		o := promoteOptions{model: strings.ToUpper(a[0]), from: c.String("from"), to: c.String("to"), reason: c.String("reason"), dryRun: c.Bool("dry-run"), follow: c.Bool("follow")}
		for _, name := range []string{"from", "to"} {
			if err := oneOf("--"+name, c.String(name), aliases...); err != nil {
				return err
			}
		}
		for _, s := range c.StringSlice("if") {
			condition, err := parseCondition(s)
			if err != nil {
				return err
			}
			if !isLimit(condition) {
				o.notLimits = append(o.notLimits, Check{Name: describeCondition(condition), Detail: output.Number(condition.Value) + " is no limit that a metric can be compared with"})
				continue
			}
			o.conditions = append(o.conditions, condition)
		}
		if len(o.notLimits) > 0 && (!o.dryRun || c.Bool("save")) {
			return fault.New("not_finite", "%s: %s", o.notLimits[0].Name, o.notLimits[0].Detail)
		}
		switch {
		case c.Bool("list"):
			list, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return listPolicies(c.Context, env, o.model, list)
		case o.model == "":
			return fault.Usage("missing argument <model>").WithHint("see: mlp pipeline promote --help")
		case c.Bool("save"):
			return savePolicy(c.Context, env, o)
		}
		return promote(c.Context, env, o)
	}}
}

type promoteOptions struct {
	model, from, to, reason string
	conditions              []controlplane.Condition
	notLimits               []Check // conditions that nothing can meet; only a dry run gets this far with them
	dryRun, follow          bool
}

func listPolicies(ctx context.Context, env *Env, model string, o listOptions) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	list, _, err := readItems(0, func(limit *int, cursor *string) ([]controlplane.Policy, *string, error) {
		page, err := decode[controlplane.PolicyList](cp.ListPolicies(ctx, &controlplane.ListPoliciesParams{Limit: limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	if err != nil {
		return err
	}
	doc := []policyRow{}
	g := output.Grid{Columns: []string{"Model", "Metric", "Op", "Threshold", "From", "To", "Enabled"}, Empty: "No policy is saved."}
	for _, p := range list {
		if model == "" || strings.EqualFold(p.Model, model) {
			doc = append(doc, policyRow{p, p.Operator, p.FromAlias, p.ToAlias})
			g.Rows = append(g.Rows, []any{p.Model, p.Metric, string(p.Operator), p.Threshold, p.FromAlias, p.ToAlias, p.Enabled})
		}
	}
	g.Doc = doc
	return env.printList(o, g, false)
}

func savePolicy(ctx context.Context, env *Env, o promoteOptions) error {
	if len(o.conditions) != 1 {
		return fault.Usage("--save stores one condition, not %d", len(o.conditions)).WithHint("for example: mlp pipeline promote %s --if-rmse-lte 50 --save", o.model)
	}
	if o.reason != "" {
		return fault.Usage("--save takes no reason: the control plane records none with a policy")
	}
	c := o.conditions[0]
	rule := describeCondition(c)
	unknown := env.requireModel(ctx, o.model)
	if o.dryRun {
		return env.DryRun(o.model, map[string]any{"save_policy": rule, "from": o.from, "to": o.to}, []Check{knownCheck(unknown)})
	}
	if unknown != nil {
		return unknown
	}
	yes, err := env.Confirm(ctx, "Save the policy of "+o.model+": "+rule+"?", false)
	if err != nil || !yes {
		return err
	}
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	in := controlplane.PolicyInput{Metric: c.Metric, Operator: c.Op, Threshold: c.Value, FromAlias: &o.from, ToAlias: &o.to}
	// Settings that the command does not give stay as they are: if omitted, they would revert to their defaults.
	switch old, err := decode[controlplane.Policy](cp.GetPolicy(ctx, o.model)); {
	case err == nil:
		in.Enabled, in.RequireEval, in.ApprovalMode = &old.Enabled, &old.RequireEval, &old.ApprovalMode
	case fault.From(err).Status != 404:
		return err
	}
	p, waits, err := decodeGuarded[controlplane.Policy](cp.PutPolicy(ctx, o.model, in))
	if err != nil {
		return err
	}
	if waits != nil {
		return env.changeWaits(waits)
	}
	doc := map[string]any{"model": p.Model, "metric": p.Metric, "operator": p.Operator, "threshold": p.Threshold, "from_alias": p.FromAlias, "to_alias": p.ToAlias, "enabled": p.Enabled}
	return env.done(doc, "policy of %s saved: %s, %s → %s", p.Model, rule, p.FromAlias, p.ToAlias)
}

func describeCondition(c controlplane.Condition) string {
	sign := map[controlplane.Operator]string{controlplane.Lt: "<", controlplane.Gt: ">", controlplane.Lte: "≤", controlplane.Gte: "≥"}[c.Op]
	return c.Metric + " " + sign + " " + output.Number(c.Value)
}

func holds(c controlplane.Condition, v float64) bool {
	switch c.Op {
	case controlplane.Lt:
		return v < c.Value
	case controlplane.Gt:
		return v > c.Value
	case controlplane.Lte:
		return v <= c.Value
	default:
		return v >= c.Value
	}
}

// judge compares the version's metrics with the conditions. The control plane judges again; here a slip in a
// metric's name gets the names there are.
func (e *Env) judge(ctx context.Context, o promoteOptions) (version string, checks []Check, err error) {
	tr, url, m, err := e.findRegistered(ctx, o.model)
	if err != nil {
		return "", nil, err
	}
	version, ok := findAlias(m.Aliases, o.from)
	if !ok {
		return "", nil, fault.New("no_holder", "no version of %s is %s", o.model, o.from).WithHint("see: mlp models info %s", o.model)
	}
	if len(o.conditions) == 0 {
		return version, nil, nil
	}
	v, err := e.findVersion(ctx, tr, url, m, version)
	if err != nil {
		return "", nil, err
	}
	for _, c := range o.conditions {
		value, known := v.run.Metrics[c.Metric]
		check := Check{Name: describeCondition(c), Detail: fmt.Sprintf("version %s has %s", v.Version, output.Number(value))}
		switch {
		case !known:
			check.Detail = "version " + v.Version + " has no metric " + c.Metric + "; it has " + strings.Join(sortedKeys(v.run.Metrics), ", ")
		case math.IsNaN(value) || math.IsInf(value, 0):
			check.Detail += ", which is no number to compare"
		default:
			check.Pass = holds(c, value)
		}
		checks = append(checks, check)
	}
	return version, checks, nil
}

func promote(ctx context.Context, env *Env, o promoteOptions) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	if len(o.conditions) == 0 && len(o.notLimits) == 0 {
		if _, err := decode[controlplane.Policy](cp.GetPolicy(ctx, o.model)); err != nil {
			if fault.From(err).Status == 404 {
				if _, _, _, err := env.findRegistered(ctx, o.model); err != nil {
					return err // a model that does not exist is not a usage error
				}
				return fault.Usage("%s has no saved policy, and no condition is given", o.model).WithHint("for example: mlp pipeline promote %s --if-rmse-lte 50", o.model)
			}
			return err
		}
	}
	version, checks, err := env.judge(ctx, o)
	if err != nil && !o.dryRun {
		return err
	}
	if err != nil {
		checks = []Check{{Name: "conditions", Detail: err.Error()}}
	}
	checks = append(checks, o.notLimits...)
	body := controlplane.PromotionRequest{Model: o.model, From: &o.from, To: &o.to, DryRun: &o.dryRun, Reason: optional(o.reason)}
	if len(o.conditions) > 0 {
		body.Conditions = &o.conditions
	}
	if o.dryRun {
		res, err := decode[controlplane.PromotionResult](cp.Promote(ctx, body))
		for _, c := range res.Checks {
			checks = append(checks, Check{c.Name, c.Pass, c.Detail})
		}
		if err != nil {
			checks = append(checks, Check{Name: "gate", Detail: err.Error()})
		}
		return env.DryRun(o.model, map[string]any{"from": o.from, "to": o.to, "version": res.Version, "allowed": res.Allowed && len(o.notLimits) == 0}, checks)
	}
	for _, c := range checks {
		if !c.Pass {
			f := fault.New("condition_unmet", "%s is not promoted: %s: %s", o.model, c.Name, c.Detail)
			f.Faults = checks
			return f
		}
	}
	// The version that was judged and shown is named: the alias may move in between.
	yes, err := env.Confirm(ctx, "Make version "+version+" of "+o.model+", which is "+o.from+", "+o.to+"?", false)
	if err != nil || !yes {
		return err
	}
	body.Version = &version
	body.Approve = new(true)
	res, err := decode[controlplane.PromotionResult](cp.Promote(ctx, body))
	if err != nil {
		return err
	}
	doc := map[string]any{"id": res.Id, "model": res.Model, "version": res.Version, "from": res.From, "to": res.To, "state": res.State, "allowed": res.Allowed, "reasons": orEmpty(res.Reasons)}
	if unsettled := res.State == controlplane.PromotionStatePending || res.State == controlplane.PromotionStateApproved; unsettled && o.follow && res.Id != nil {
		return env.followPromotion(ctx, cp, doc, followedMove{id: *res.Id, what: res.Model + " version " + version, see: "mlp approvals show " + res.Model})
	}
	switch res.State {
	case controlplane.PromotionStatePending:
		return env.done(doc, "version %s of %s waits for another person's approval: mlp approvals show %s", derefString(res.Version), res.Model, res.Model)
	case controlplane.PromotionStateApproved:
		return env.done(doc, "version %s of %s is approved for %s; the alias has not moved yet", derefString(res.Version), res.Model, res.To)
	case controlplane.PromotionStatePromoted:
		return env.done(doc, "version %s of %s is %s (%s)", derefString(res.Version), res.Model, res.To, res.State)
	}
	f := fault.New("not_promoted", "%s is not promoted: %s", res.Model, strings.Join(res.Reasons, "; "))
	f.Faults = res.Checks
	return f
}
