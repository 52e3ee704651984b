package cli

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/modelrepo"
)

func pipelineExportCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "export-registry", Usage: "the declared models with every setting in force, after defaults and the registry of an environment", Flags: []cli.Flag{
		&cli.StringFlag{Name: "repo", Usage: "model repository (default: PLATFORM_MODELREPO, else this folder)"},
		registryFlag("e"),
		&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "write the JSON document there"},
	}, Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		if err := oneOf("--env", c.String("env"), modelrepo.Environments...); err != nil {
			return err
		}
		return pipelineExport(env, c.String("repo"), c.String("env"), c.String("file"))
	}}
}

// pipelineExport prints the registry that the platform would use. A repository with faults has none: the models hidden
// by a fault would be missing from it.
func pipelineExport(env *Env, repo, name, file string) error {
	dir, r, err := env.modelRepo(repo, name)
	if err != nil {
		return err
	}
	name = r.Env
	if len(r.Faults) > 0 {
		return fault.New("invalid_modelrepo", "%s has %d fault(s) and is not exported", dir, len(r.Faults)).WithHint("see: mlp pipeline validate")
	}
	models := []any{}
	g := output.Grid{Columns: []string{"Model", "Task", "Type", "Estimator", "Datasets", "Enabled", "Schedule"}, Spare: []string{"Task"}, Empty: "The repository declares no model."}
	for _, m := range sortedModels(r) {
		doc, err := exportModel(m)
		if err != nil {
			return fault.New("unexportable", "cannot export %s: %v", m.Name, err)
		}
		models = append(models, doc)
		names := []string{}
		for _, d := range m.Datasets {
			names = append(names, d.Name)
		}
		var schedule any
		if m.Enabled && m.Schedule.Enabled {
			schedule = m.Schedule.Cron + " " + m.Schedule.Timezone
		}
		g.Rows = append(g.Rows, []any{m.Name, m.TaskType, string(m.Type), m.Estimator.Kind, names, m.Enabled, schedule})
	}
	doc := map[string]any{"env": name, "models": models}
	g.Doc = doc
	if file == "" {
		return env.Printer().Print(g)
	}
	data, err := output.MarshalIndent(doc)
	if err != nil {
		return fault.New("unexportable", "cannot encode the registry: %v", err)
	}
	folder, err := os.OpenRoot(filepath.Dir(file))
	if err == nil {
		defer folder.Close() //nolint:errcheck // only held for the write
		err = replaceFile(folder, filepath.Base(file), append(data, '\n'))
	}
	if err != nil {
		return fault.New("unwritable", "cannot write %s: %v", file, err)
	}
	return env.done(map[string]any{"file": file, "env": name, "models": len(models)}, "%d models written to %s", len(models), file)
}

// exportModel returns a model under the names of its file, with the backend, which the file may leave to the registry.
func exportModel(m *modelrepo.Model) (map[string]any, error) {
	text, err := yaml.Marshal(m)
	if err != nil {
		return nil, err
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	doc := map[string]any{}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	doc["backend"], doc["folder"] = m.Backend, m.Dir
	return doc, nil
}
