package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/textfile"
)

// aliases are the values of --alias.
var aliases = []string{"Production", "Canary", "Staging"}

// maxFeatures bounds a features file; inference refuses bodies over 1 MiB.
const maxFeatures = 1 << 20

func predictCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "predict", Usage: "one prediction", ArgsUsage: "<model>", Flags: []cli.Flag{
		&cli.StringFlag{Name: "features", Aliases: []string{"f"}, Required: true, Usage: "JSON object of features: text, @file, or - for standard input"},
		&cli.StringFlag{Name: "alias", Usage: strings.Join(aliases, ", ")},
		&cli.StringFlag{Name: "version", Usage: "model version number"},
	}, Action: func(c *cli.Context) error {
		a, err := readArguments(c, "model")
		if err != nil {
			return err
		}
		if err := oneOf("--alias", c.String("alias"), aliases...); err != nil {
			return err
		}
		return runPredict(c.Context, env, a[0], c.String("features"), c.String("alias"), c.String("version"))
	}}
}

// readText reads an option that takes text, @file or - (standard input).
func (e *Env) readText(option, value string) ([]byte, error) {
	var r io.Reader
	switch {
	case value == "-":
		r = e.In
	case strings.HasPrefix(value, "@"):
		f, err := os.Open(value[1:])
		if err != nil {
			return nil, fault.New("file_unreadable", "cannot read %s: %v", option, err)
		}
		defer f.Close()
		r = f
	default:
		return []byte(value), nil
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFeatures+1))
	if err != nil {
		return nil, fault.New("file_unreadable", "cannot read %s: %v", option, err)
	}
	if len(data) > maxFeatures {
		return nil, fault.New("too_large", "%s holds more than 1 MiB", option)
	}
	if data, err = textfile.Clean(data); err != nil {
		return nil, fault.New("bad_text", "%s: %v", option, err).WithHint("save the file as UTF-8")
	}
	return data, nil
}

func runPredict(ctx context.Context, env *Env, model, text, alias, version string) error {
	data, err := env.readText("--features", text)
	if err != nil {
		return err
	}
	var features map[string]json.RawMessage
	if err := json.Unmarshal(data, &features); err != nil {
		return fault.New("bad_json", "--features is not a JSON object: %v", err).WithHint(`for example: --features '{"procs": 4, …}', or @file`)
	}
	// A whole predict body is taken as well, so that a saved request can be sent again.
	if inner, ok := features["features"]; ok && len(features) == 1 {
		features = nil
		if err := json.Unmarshal(inner, &features); err != nil {
			return fault.New("bad_json", "features is not a JSON object: %v", err)
		}
	}
	r, err := env.Config()
	if err != nil {
		return err
	}
	// The pipeline takes jobs described by an embedding; other models are asked by their own columns.
	path, body := "/predict/"+escapeSegment(strings.ToUpper(model)), map[string]any{"features": features}
	if _, ok := features["embedding"]; ok {
		path, body = "/infer-pipeline/infer", map[string]any{"model_name": strings.ToUpper(model), "features": features}
	}
	if alias != "" {
		body["alias"] = alias
	}
	if version != "" {
		body["version"] = version
	}
	payload, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the features: %w", err)
	}
	var res inference.Prediction
	if err := env.serving(r).ask(ctx, path, payload, &res); err != nil {
		return env.orMisspelt(ctx, model, err)
	}
	return env.Printer().Print(output.Grid{
		Columns: []string{"Model", "Version", "Alias", "Prediction", "Unit"},
		Rows:    [][]any{{res.ModelName, res.ModelVersion, res.Alias, res.Prediction, res.Unit}},
		Doc: map[string]any{"model_name": res.ModelName, "model_version": res.ModelVersion, "run_id": res.RunId,
			"prediction": res.Prediction, "alias": res.Alias, "unit": res.Unit, "job_id": res.JobId},
	})
}
