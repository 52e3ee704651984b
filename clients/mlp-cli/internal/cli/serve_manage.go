package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func serveReloadCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "reload", Usage: "load what the aliases name now", Flags: []cli.Flag{
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "only this model"},
		reasonFlag(), dryRunFlag(),
	}, Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		if err := noReason(c, "inference", "a reload"); err != nil {
			return err
		}
		return serveReload(c.Context, env, strings.ToUpper(c.String("model")), c.Bool("dry-run"))
	}}
}

func serveReload(ctx context.Context, env *Env, model string, dryRun bool) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	target := model
	if target == "" {
		target = "all models"
	}
	if dryRun {
		loaded, err := env.loaded(ctx, env.serving(r))
		check := Check{Name: "inference answers", Pass: err == nil, Detail: fmt.Sprintf("%d loaded", len(loaded))}
		if err != nil {
			check.Detail = err.Error()
		}
		return env.DryRun(target, map[string]any{"action": "compare the aliases with the registry, load what differs"}, []Check{check})
	}
	yes, err := env.Confirm(ctx, "Reload "+target+" now?", false)
	if err != nil || !yes {
		return err
	}
	client, err := env.servingClient()
	if err != nil {
		return err
	}
	var res inference.Reloaded
	if model == "" {
		res, err = decode[inference.Reloaded](client.Reload(ctx))
	} else {
		res, err = decode[inference.Reloaded](client.ReloadModel(ctx, model))
	}
	if err != nil {
		return err
	}
	type failure struct {
		Model   string  `json:"model"`
		Alias   string  `json:"alias"`
		Version *string `json:"version"`
		Reason  string  `json:"reason"`
	}
	failed := []failure{}
	g := output.Grid{Columns: []string{"Model", "Result", "Detail"}, Empty: "No model has an alias. Train one with: mlp retrain <model>"}
	for _, m := range res.Reloaded {
		g.Rows = append(g.Rows, []any{m, output.Styled{Value: "reloaded", Style: output.Good}, nil})
	}
	for _, m := range res.Unchanged {
		g.Rows = append(g.Rows, []any{m, "unchanged", nil})
	}
	for _, f := range res.Failed {
		failed = append(failed, failure{f.Model, f.Alias, f.Version, f.Reason})
		g.Rows = append(g.Rows, []any{f.Model, styledStatus("failed"), f.Alias + " " + derefString(f.Version) + ": " + f.Reason})
	}
	g.Doc = map[string]any{"reloaded": orEmpty(res.Reloaded), "unchanged": orEmpty(res.Unchanged), "failed": failed, "count": res.Count}
	if len(failed) == 0 {
		return env.Printer().Print(g)
	}
	f := fault.New("reload_failed", "%d of %d did not load; the first: %s (%s): %s", len(failed), len(g.Rows), failed[0].Model, failed[0].Alias, failed[0].Reason)
	f.Service, f.Faults = "serving", failed
	return env.failWith(f, g)
}

// orEmpty returns an empty list for nil, so that documents have an array.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func serveInferCheckCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "infer-check", Usage: "send a generated job through the inference pipeline", Flags: []cli.Flag{
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "model (default: the pipeline's own)"},
	}, Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		return serveInferCheck(c.Context, env, strings.ToUpper(c.String("model")))
	}}
}

func serveInferCheck(ctx context.Context, env *Env, model string) error {
	client, err := env.servingClient()
	if err != nil {
		return err
	}
	embedding := make([]float64, 384)
	for i := range embedding {
		embedding[i] = 0.1
	}
	// Marked as a probe: made-up values must not count as traffic.
	probe := &inference.InferPipelineParams{XPlatformProbe: new(inference.Probe("1"))}
	begin := time.Now()
	out, err := decode[inference.Prediction](client.InferPipeline(ctx, probe, inference.PipelineRequest{
		Features: &inference.PipelineFeatures{Embedding: embedding, NumNodes: 4, UserId: "smoke", ModelName: optional(model)}}))
	if err != nil {
		return err
	}
	ms := float64(time.Since(begin).Microseconds()) / 1000
	doc := map[string]any{"model": out.ModelName, "version": out.ModelVersion, "latency_ms": ms, "prediction": out.Prediction, "unit": out.Unit, "result": "PASS"}
	return env.Printer().Print(output.Grid{Columns: []string{"Model", "Version", "Latency", "Prediction", "Unit", "Result"}, Doc: doc,
		Rows: [][]any{{out.ModelName, out.ModelVersion, formatMillis(ms), out.Prediction, out.Unit, styledStatus("PASS")}}})
}

func serveTrafficCommand(env *Env) *cli.Command {
	flags := make([]cli.Flag, 0, len(aliases)+2)
	for _, a := range aliases {
		flags = append(flags, &cli.IntFlag{Name: strings.ToLower(a), Usage: "percent of requests for " + a})
	}
	return &cli.Command{Name: "traffic", Usage: "how requests are split among a model's aliases; with percentages, set the split", ArgsUsage: "<model>",
		Flags: append(flags, &cli.BoolFlag{Name: "clear", Usage: "drop the split: every request gets Production"}, reasonFlag(), dryRunFlag()), Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			if err := noReason(c, "inference", "traffic rules"); err != nil {
				return err
			}
			weights := inference.TrafficWeights{}
			for _, alias := range aliases {
				if name := strings.ToLower(alias); c.IsSet(name) {
					weights[alias] = c.Int(name)
				}
			}
			model := strings.ToUpper(a[0])
			if c.Bool("clear") {
				if len(weights) > 0 {
					return fault.Usage("--clear drops the split; it takes no percentages")
				}
				return trafficClear(c.Context, env, model, c.Bool("dry-run"))
			}
			if len(weights) == 0 && !c.Bool("dry-run") {
				return trafficShow(c.Context, env, model)
			}
			return trafficSet(c.Context, env, model, weights, c.Bool("dry-run"))
		}}
}

func trafficGrid(model string, weights inference.TrafficWeights, doc any) output.Grid {
	g := output.Grid{Columns: []string{"Model", "Alias", "Percent"}, Doc: doc}
	for _, a := range aliases {
		if w, ok := weights[a]; ok {
			g.Rows = append(g.Rows, []any{model, a, w})
		}
	}
	return g
}

func trafficShow(ctx context.Context, env *Env, model string) error {
	client, err := env.servingClient()
	if err != nil {
		return err
	}
	rule, err := decode[inference.TrafficRule](client.GetTrafficRule(ctx, model))
	if fault.From(err) != nil && fault.From(err).Status == 404 {
		// Without rules Production gets all, if the model is served at all.
		rows, driftErr := env.drift(ctx, model)
		if driftErr != nil {
			return driftErr
		}
		if len(rows) == 0 {
			return cmp.Or(env.requireModel(ctx, model), err)
		}
		weights := inference.TrafficWeights{"Production": 100}
		g := trafficGrid(model, weights, map[string]any{"model": model, "rules": weights, "updated_at": nil, "updated_by": nil})
		g.Notes = []string{"", "No rules are set: every request gets Production."}
		return env.Printer().Print(g)
	}
	if err != nil {
		return err
	}
	g := trafficGrid(rule.Model, rule.Rules, rule)
	g.Notes = []string{"", "set by " + output.Clean(rule.UpdatedBy) + " at " + rule.UpdatedAt.UTC().Format("2006-01-02 15:04:05Z")}
	return env.Printer().Print(g)
}

// checkWeights reports what is wrong with percentages, before any request to the service.
func checkWeights(weights inference.TrafficWeights) error {
	sum := 0
	for alias, w := range weights {
		if w < 0 || w > 100 {
			return fault.New("bad_weights", "--%s must be 0 to 100, not %d", strings.ToLower(alias), w)
		}
		sum += w
	}
	if sum != 100 {
		return fault.New("bad_weights", "the percentages sum to %d, not 100", sum).WithHint("for example: --production 90 --canary 10")
	}
	return nil
}

// knownCheck returns the check of a dry run for the result of [Env.requireModel].
func knownCheck(unknown error) Check {
	check := Check{Name: "the model is known", Pass: unknown == nil}
	if unknown != nil {
		check.Detail = unknown.Error()
	}
	return check
}

// trafficClear drops a model's rules, those of a model that is gone or never was too.
func trafficClear(ctx context.Context, env *Env, model string, dryRun bool) error {
	client, err := env.servingClient()
	if err != nil {
		return err
	}
	if dryRun {
		_, err := decode[inference.TrafficRule](client.GetTrafficRule(ctx, model))
		check := Check{Name: "rules are set", Pass: err == nil}
		if err != nil {
			check.Detail = err.Error()
		}
		return env.DryRun(model, map[string]any{"action": "drop the traffic rules"}, []Check{check})
	}
	yes, err := env.Confirm(ctx, "Drop the traffic rules of "+model+"?", false)
	if err != nil || !yes {
		return err
	}
	if err := discard(client.DeleteTrafficRule(ctx, model)); err != nil {
		if f := fault.From(err); f.Status == http.StatusNotFound {
			return cmp.Or(env.requireModel(ctx, model), err)
		}
		return err
	}
	return env.done(map[string]any{"model": model, "rules": nil, "cleared": true}, "the traffic rules of %s are dropped: every request gets Production", model)
}

func trafficSet(ctx context.Context, env *Env, model string, weights inference.TrafficWeights, dryRun bool) error {
	err := checkWeights(weights)
	if err != nil && !dryRun {
		return err
	}
	unknown := env.requireModel(ctx, model)
	if dryRun {
		check := Check{Name: "percentages sum to 100", Pass: err == nil, Detail: "100"}
		if err != nil {
			check.Detail = err.Error()
		}
		return env.DryRun(model, map[string]any{"rules": weights}, []Check{check, knownCheck(unknown)})
	}
	if unknown != nil {
		return unknown
	}
	shares := make([]string, 0, len(weights))
	for _, a := range aliases {
		if w, ok := weights[a]; ok {
			shares = append(shares, fmt.Sprintf("%s %d %%", a, w))
		}
	}
	yes, err := env.Confirm(ctx, "Share the requests of "+model+": "+strings.Join(shares, ", ")+"?", false)
	if err != nil || !yes {
		return err
	}
	client, err := env.servingClient()
	if err != nil {
		return err
	}
	res, err := decode[inference.TrafficChange](client.SetTrafficRule(ctx, model, weights))
	if err != nil {
		return err
	}
	res.Warnings = orEmpty(res.Warnings)
	g := trafficGrid(res.Model, res.Rules, res)
	for _, w := range res.Warnings {
		env.Talk("warning: %s", output.Clean(w))
	}
	return env.Printer().Print(g)
}
