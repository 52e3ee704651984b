package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/tracker"
)

func modelsDiffCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "diff", Usage: "metrics and parameters of two versions side by side", ArgsUsage: "<model> <v1> <v2>", Action: func(c *cli.Context) error {
		a, err := readArguments(c, "model", "v1", "v2")
		if err != nil {
			return err
		}
		return modelsDiff(c.Context, env, a[0], a[1], a[2])
	}}
}

func modelsLineageCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "lineage", Usage: "where a version comes from: run, data, commit, decision", ArgsUsage: "<model> [version]", Action: func(c *cli.Context) error {
		a, err := readArguments(c, "model", "[version]")
		if err != nil {
			return err
		}
		return modelsLineage(c.Context, env, a[0], a[1])
	}}
}

// versionRun is a version and the tracker run that made it.
type versionRun struct {
	tracker.ModelVersion
	run tracker.Run
}

// findVersion finds a version by its number or by the alias that names it.
func (e *Env) findVersion(ctx context.Context, tr *tracker.Client, url string, m tracker.RegisteredModel, version string) (*versionRun, error) {
	if held, ok := findAlias(m.Aliases, version); ok {
		version = held
	}
	v, err := tr.GetModelVersion(ctx, m.Name, version)
	var te *tracker.Error
	if errors.Is(err, tracker.ErrNotFound) || errors.As(err, &te) && te.Status == 400 {
		f := fault.New("unknown_version", "%s has no version %s, and no alias of that name", strings.ToUpper(m.Name), version)
		f.Service, f.Status = "tracker", 404
		return nil, f.WithHint("see its versions: mlp models info %s", strings.ToUpper(m.Name))
	}
	if err != nil {
		return nil, trackerFault(url, err)
	}
	out := &versionRun{ModelVersion: v}
	if v.RunID != "" {
		if out.run, err = tr.GetRun(ctx, v.RunID); err != nil && !errors.Is(err, tracker.ErrNotFound) {
			return nil, trackerFault(url, err)
		}
	}
	return out, nil
}

// lowerIsBetter are the parts of metric names that say so.
var lowerIsBetter = []string{"rmse", "mae", "mse", "mape", "male", "loss", "error", "latency"}

// betterOf returns which of two values of a metric is the better; nil when neither is.
func betterOf(metric string, v1, v2 *float64) *string {
	if v1 == nil || v2 == nil || *v1 == *v2 || math.IsNaN(*v1-*v2) || math.IsInf(*v1-*v2, 0) {
		return nil
	}
	firstWins := *v1 > *v2
	for _, part := range lowerIsBetter {
		if strings.Contains(strings.ToLower(metric), part) {
			firstWins = !firstWins
			break
		}
	}
	if firstWins {
		return new("v1")
	}
	return new("v2")
}

type metricDiff struct {
	V1     *float64 `json:"v1"`
	V2     *float64 `json:"v2"`
	Delta  *float64 `json:"delta"`
	Better *string  `json:"better"`
}

type paramDiff struct {
	V1 *string `json:"v1"`
	V2 *string `json:"v2"`
}

func lookup[V any](m map[string]V, key string) *V {
	if v, ok := m[key]; ok {
		return &v
	}
	return nil
}

func modelsDiff(ctx context.Context, env *Env, name, first, second string) error {
	tr, url, m, err := env.findRegistered(ctx, name)
	if err != nil {
		return err
	}
	v1, err := env.findVersion(ctx, tr, url, m, first)
	if err != nil {
		return err
	}
	v2, err := env.findVersion(ctx, tr, url, m, second)
	if err != nil {
		return err
	}
	metrics, params := map[string]metricDiff{}, map[string]paramDiff{}
	for _, side := range []*versionRun{v1, v2} {
		for k := range side.run.Metrics {
			d := metricDiff{V1: lookup(v1.run.Metrics, k), V2: lookup(v2.run.Metrics, k)}
			if d.V1 != nil && d.V2 != nil {
				d.Delta = new(*d.V2 - *d.V1)
			}
			d.Better = betterOf(k, d.V1, d.V2)
			metrics[k] = d
		}
		for k := range side.run.Params {
			params[k] = paramDiff{lookup(v1.run.Params, k), lookup(v2.run.Params, k)}
		}
	}
	mg := output.Grid{Title: fmt.Sprintf("%s: version %s (v1) and version %s (v2)", strings.ToUpper(m.Name), v1.Version, v2.Version),
		Columns: []string{"Name", "v1", "v2", "Δ", "Better"}, Empty: "Neither version has metrics.",
		Doc: map[string]any{"model": strings.ToUpper(m.Name), "v1": v1.Version, "v2": v2.Version, "metrics": metrics, "params": params}}
	for _, k := range sortedKeys(metrics) {
		d := metrics[k]
		var better any
		if d.Better != nil {
			better = output.Styled{Value: *d.Better, Style: output.Good}
			if *d.Better == "v1" {
				better = output.Styled{Value: *d.Better, Style: output.Warn}
			}
		}
		mg.Rows = append(mg.Rows, []any{k, d.V1, d.V2, d.Delta, better})
	}
	if env.Format != output.Table {
		return env.Printer().Print(mg)
	}
	pg := output.Grid{Title: "Parameters that differ", Columns: []string{"Name", "v1", "v2"}, Empty: "None."}
	for _, k := range sortedKeys(params) {
		if p := params[k]; p.V1 == nil || p.V2 == nil || *p.V1 != *p.V2 {
			pg.Rows = append(pg.Rows, []any{k, p.V1, p.V2})
		}
	}
	return env.Printer().Print(mg, pg)
}

func modelsLineage(ctx context.Context, env *Env, name, version string) error {
	tr, url, m, err := env.findRegistered(ctx, name)
	if err != nil {
		return err
	}
	if version == "" {
		held, ok := findAlias(m.Aliases, "Production")
		if !ok {
			return fault.New("no_production", "no version of %s is in Production", strings.ToUpper(m.Name)).
				WithHint("name one: mlp models lineage %s <version>", strings.ToUpper(m.Name))
		}
		version = held
	}
	v, err := env.findVersion(ctx, tr, url, m, version)
	if err != nil {
		return err
	}
	tag := func(name string) *string {
		if s := v.run.Tags[name]; s != "" {
			return &s
		}
		if s := v.Tags[name]; s != "" {
			return &s
		}
		return nil
	}
	metrics := v.run.Metrics
	if metrics == nil {
		metrics = map[string]float64{}
	}
	params := v.run.Params
	if params == nil {
		params = map[string]string{}
	}
	doc := struct {
		Model         string             `json:"model"`
		Version       string             `json:"version"`
		TrackerRun    *string            `json:"tracker_run_id"`
		FlowRun       *string            `json:"orchestrator_flow_run_id"`
		Dataset       *string            `json:"dataset_version"`
		Rows          *string            `json:"training_rows"`
		Commit        *string            `json:"commit_sha"`
		Approval      *string            `json:"approval_id"`
		ApprovalError *string            `json:"approval_error"`
		CreatedAt     time.Time          `json:"created_at"`
		Params        map[string]string  `json:"params"`
		Metrics       map[string]float64 `json:"metrics"`
	}{Model: strings.ToUpper(m.Name), Version: v.Version, TrackerRun: optional(v.RunID), FlowRun: tag("prefect_flow_run_id"), Dataset: tag("dataset_version"),
		Rows: tag("training_rows"), Commit: tag("modelrepo_commit"), CreatedAt: v.Created.UTC(), Params: params, Metrics: metrics}
	// The control plane alone knows which decision started the run; without it the rest is still worth showing.
	doc.Approval, err = env.approvalOf(ctx, doc.Model, doc.FlowRun)
	if err != nil {
		doc.ApprovalError = new(err.Error())
		env.Talk("the approval is not known: %s", output.Clean(*doc.ApprovalError))
	}
	return env.Printer().Print(output.Grid{Columns: []string{"Step", "Value"}, Doc: doc, Rows: [][]any{
		{"Orchestrator run", doc.FlowRun}, {"Dataset", doc.Dataset}, {"Training rows", doc.Rows}, {"Commit", doc.Commit}, {"Approval", doc.Approval},
		{"Tracker run", doc.TrackerRun}, {"Model version", doc.Model + " " + doc.Version}, {"Made", output.Ago(v.Created)},
	}})
}
