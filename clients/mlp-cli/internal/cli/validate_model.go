package cli

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func pipelineValidateModelCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "validate-model", Usage: "check an alias against a latency limit with generated requests", ArgsUsage: "<model>", Flags: []cli.Flag{
		&cli.StringFlag{Name: "alias", Value: "Staging", Usage: strings.Join(aliases, ", ")},
		&cli.Float64Flag{Name: "max-latency", Value: 2, Usage: "seconds that a prediction may take on average"},
		&cli.IntFlag{Name: "n", Value: 3, Usage: "how many predictions"},
	}, Action: func(c *cli.Context) error {
		a, err := readArguments(c, "model")
		if err != nil {
			return err
		}
		if err := oneOf("--alias", c.String("alias"), aliases...); err != nil {
			return err
		}
		if c.Int("n") < 1 || !(c.Float64("max-latency") > 0) {
			return fault.Usage("--n must be at least 1, --max-latency above 0")
		}
		return validateModel(c.Context, env, strings.ToUpper(a[0]), c.String("alias"), c.Int("n"), c.Float64("max-latency"))
	}}
}

func validateModel(ctx context.Context, env *Env, model, alias string, n int, limit float64) error {
	client, err := env.servingClient()
	if err != nil {
		return err
	}
	served, _, err := readItems(0, func(limit *int, cursor *string) ([]inference.LoadedModel, *string, error) {
		resp, err := client.ListModels(ctx, &inference.ListModelsParams{Alias: &alias, Limit: limit, Cursor: cursor})
		if err != nil {
			return nil, nil, err
		}
		next := optional(resp.Header.Get("X-Next-Cursor"))
		page, err := decode[[]inference.LoadedModel](resp, nil)
		return page, next, err
	})
	if err != nil {
		return err
	}
	var subject *inference.LoadedModel
	for i := range served {
		if strings.EqualFold(served[i].ModelName, model) && strings.EqualFold(served[i].Alias, alias) {
			subject = &served[i]
		}
	}
	if subject == nil {
		return env.orMisspelt(ctx, model, fault.New("model_not_loaded", "%s is not served under %s", model, alias).WithHint("see what is served: mlp drift status"))
	}
	raw, err := sampleBody(*subject)
	if err != nil {
		return err
	}
	var body inference.PredictRequest
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	body.Alias = &alias
	var total, longest time.Duration
	bar := env.countBar("predictions", n)
	for range n {
		begin := time.Now()
		_, err = decode[inference.Prediction](client.Predict(ctx, model, &inference.PredictParams{XPlatformProbe: new(inference.Probe("1"))}, body))
		took := time.Since(begin)
		if err != nil {
			break
		}
		total, longest = total+took, max(longest, took)
		bar.add(1)
	}
	bar.end()
	if err != nil {
		return err
	}
	average := total.Seconds() / float64(n)
	result := "PASS"
	if average > limit {
		result = "FAIL"
	}
	doc := map[string]any{"model": model, "version": subject.ModelVersion, "alias": alias, "requests": n, "avg_latency_s": average, "max_latency_s": longest.Seconds(), "threshold_s": limit, "result": result}
	g := output.Grid{Columns: []string{"Model", "Alias", "Requests", "Avg Latency", "Max Latency", "Threshold", "Result"}, Doc: doc,
		Rows: [][]any{{model, alias, n, formatMillis(average * 1000), formatMillis(longest.Seconds() * 1000), output.Number(limit) + " s", styledStatus(result)}}}
	if result == "PASS" {
		return env.Printer().Print(g)
	}
	f := fault.New("too_slow", "predictions of %s (%s) take %s on average, above %s s", model, alias, formatMillis(average*1000), output.Number(limit))
	f.Faults = []any{doc}
	return env.failWith(f, g)
}
