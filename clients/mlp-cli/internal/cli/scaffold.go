package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/modelrepo"
)

// modelTypes are the values of --type.
var modelTypes = []string{string(modelrepo.Regression), string(modelrepo.Classification)}

func scaffoldCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "scaffold", Usage: "a working model to adapt: it validates and trains as it is", ArgsUsage: "<name>", Flags: []cli.Flag{
		&cli.StringFlag{Name: "task", Aliases: []string{"t"}, Value: modelrepo.TaskTypes[0], Usage: strings.Join(modelrepo.TaskTypes, ", ")},
		&cli.StringFlag{Name: "type", Aliases: []string{"T"}, Value: modelTypes[0], Usage: strings.Join(modelTypes, ", ")},
		&cli.StringFlag{Name: "repo", Usage: "model repository (default: PLATFORM_MODELREPO, else this folder)"},
		&cli.BoolFlag{Name: "force", Usage: "replace files that exist"},
		dryRunFlag(),
	}, Action: func(c *cli.Context) error {
		a, err := readArguments(c, "name")
		if err != nil {
			return err
		}
		if err := oneOf("--task", c.String("task"), modelrepo.TaskTypes...); err != nil {
			return err
		}
		if err := oneOf("--type", c.String("type"), modelTypes...); err != nil {
			return err
		}
		return scaffold(c.Context, env, scaffoldOptions{name: a[0], task: c.String("task"), kind: c.String("type"), repo: c.String("repo"), force: c.Bool("force"), dryRun: c.Bool("dry-run")})
	}}
}

type scaffoldOptions struct {
	name, task, kind, repo string
	force, dryRun          bool
}

// pascalCase is compiled at its first use, since its repeat count makes it large and few commands need it.
var pascalCase = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z][A-Za-z0-9]{1,63}$`) })

// scaffoldFile is one file of a new model, by its path in the repository.
type scaffoldFile struct{ path, text string }

func scaffold(ctx context.Context, env *Env, o scaffoldOptions) error {
	if !pascalCase().MatchString(o.name) {
		return fault.New("bad_name", "%q is not a valid model name: one begins with a capital letter and has 2 to 64 letters and digits", o.name).WithHint("for example: mlp scaffold QueueTime")
	}
	dir, repo, err := env.repoToScaffold(o.repo)
	if err != nil {
		return err
	}
	files := scaffoldFiles(o)
	if _, err := os.Lstat(filepath.Join(dir, baseRegistry)); os.IsNotExist(err) {
		files = append(files, scaffoldFile{baseRegistry, "version: 1\n"})
	}
	paths := make([]string, len(files))
	var taken []string
	for i, f := range files {
		paths[i] = f.path
		if _, err := os.Lstat(filepath.Join(dir, f.path)); err == nil {
			taken = append(taken, f.path)
		}
	}
	// Models are known by their upper-case id: a second one of the name would be a fault of the repository.
	other := ""
	for _, m := range repo.Models {
		if strings.EqualFold(m.Name, o.name) && (m.Name != o.name || m.TaskType != o.task) {
			other = m.Name + " (" + m.TaskType + ")"
		}
	}
	if o.dryRun {
		free := Check{Name: "files are free", Pass: len(taken) == 0 || o.force, Detail: orNone(taken)}
		unique := Check{Name: "name is free", Pass: other == "", Detail: other}
		return env.DryRun(o.name, map[string]any{"repo": dir, "files": paths}, []Check{free, unique})
	}
	switch {
	case other != "":
		return fault.New("name_taken", "the repository has the model %s already", other)
	case len(taken) > 0 && !o.force:
		return fault.New("files_exist", "%s already exist", strings.Join(taken, ", ")).WithHint("to replace them: --force")
	}
	if len(taken) > 0 {
		yes, err := env.Confirm(ctx, "Replace "+strings.Join(taken, ", ")+"?", false)
		if err != nil || !yes {
			return err
		}
	}
	if err := writeAll(dir, files); err != nil {
		return err
	}
	next := slices.Concat([]string{"mlp pipeline validate --repo " + argv.Quote([]string{dir})}, commitCommands(dir, o.name, false),
		[]string{"mlp modelrepo sync", "mlp retrain " + o.name + " --dummy --follow"})
	return env.done(map[string]any{"model": o.name, "task": o.task, "type": o.kind, "repo": dir, "files": paths, "next": next},
		"created %s in %s:\n  %s\nnext:\n  %s", o.name, dir, strings.Join(paths, "\n  "), strings.Join(next, "\n  "))
}

// baseRegistry is in force in every environment.
const baseRegistry = "registries/base.yaml"

// repoToScaffold finds the model repository, or a folder that becomes one: the named one, or the current folder if it is
// an empty git repository. Any other folder must be named, so that files never land among unrelated ones by mistake.
func (e *Env) repoToScaffold(asked string) (string, *modelrepo.Repo, error) {
	dir, repo, err := e.modelRepo(asked, "")
	if err == nil || fault.From(err).Code != "no_modelrepo" {
		return dir, repo, err
	}
	if dir = cmpOr(asked, e.Getenv("PLATFORM_MODELREPO")); dir == "" {
		dir = "."
		if !isEmptyGitRepository(dir) {
			return "", nil, fault.From(err).WithHint("to make a model repository of this folder: --repo .")
		}
	}
	if info, statErr := os.Stat(dir); statErr != nil || !info.IsDir() {
		return "", nil, err
	}
	return dir, &modelrepo.Repo{Dir: dir}, nil
}

// isEmptyGitRepository reports whether a folder holds .git and no other folder; a README or a licence may lie in it.
func isEmptyGitRepository(dir string) bool {
	entries, err := os.ReadDir(dir)
	git := false
	for _, e := range entries {
		switch {
		case e.Name() == ".git":
			git = true
		case e.IsDir():
			return false
		}
	}
	return err == nil && git
}

// writeAll writes all files or none: after a failure the previous files are restored. Nothing is written outside of
// dir, whatever links it has, nor through anything but regular files.
func writeAll(dir string, files []scaffoldFile) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fault.New("unwritable", "cannot write the model: %v", err)
	}
	defer root.Close()
	type earlier struct {
		path string
		data []byte // nil: there was no file
	}
	var done []earlier
	var made []string // folders, the outermost first
	undo := func(err error) error {
		for _, f := range done {
			if f.data == nil {
				_ = root.Remove(f.path)
			} else {
				_ = replaceFile(root, f.path, f.data)
			}
		}
		for _, folder := range slices.Backward(made) {
			_ = root.Remove(folder)
		}
		return fault.New("unwritable", "cannot write the model: %v; nothing was made", err)
	}
	for _, f := range files {
		var before []byte
		info, err := root.Lstat(f.path)
		switch {
		case err == nil && !info.Mode().IsRegular():
			return undo(fmt.Errorf("%s is no regular file", f.path))
		case err == nil:
			if before, err = root.ReadFile(f.path); err != nil {
				return undo(err)
			}
			before = append([]byte{}, before...) // empty is not absent
		case !os.IsNotExist(err):
			return undo(err)
		}
		var missing []string
		for d := filepath.Dir(f.path); d != "."; d = filepath.Dir(d) {
			if _, err := root.Lstat(d); err == nil {
				break
			}
			missing = append(missing, d)
		}
		slices.Reverse(missing)
		made = append(made, missing...)
		if err := root.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return undo(err)
		}
		if err := replaceFile(root, f.path, []byte(f.text)); err != nil {
			return undo(err)
		}
		done = append(done, earlier{f.path, before})
	}
	return nil
}

// replaceFile puts a new file in the place of name in one step.
func replaceFile(root *os.Root, name string, data []byte) error {
	part := name + ".mlp-new"
	_ = root.Remove(part) // of an earlier run that was killed
	f, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		_ = root.Remove(part)
	}
	return err
}

// scaffoldTarget returns the column that a new model of a task predicts, and its unit.
func scaffoldTarget(task, kind string) (column, unit string) {
	if kind == string(modelrepo.Classification) {
		return map[string]string{"performance_prediction": "slow", "power_consumption_prediction": "power_hungry", "anomaly_detection": "anomalous"}[task], ""
	}
	switch task {
	case "power_consumption_prediction":
		return "power_watts", "W"
	case "anomaly_detection":
		return "anomaly_score", ""
	}
	return "run_seconds", "s"
}

// scaffoldEstimator fits what a scaffolded model learns from.
const scaffoldEstimator = "random_forest"

func scaffoldFiles(o scaffoldOptions) []scaffoldFile {
	column, unit := scaffoldTarget(o.task, o.kind)
	target, columnType := "column: "+column, "number"
	if unit != "" {
		target += ", unit: " + unit
	}
	lifecycle := "  - {name: Staging, metric: r2, threshold: 0}\n  - {name: Canary, metric: r2, threshold: 0.3}\n  - {name: Production, metric: r2, threshold: 0.5}\n"
	if o.kind == string(modelrepo.Classification) {
		target, columnType = "column: "+column+", labels: [\"no\", \"yes\"]", "category"
		lifecycle = "  - {name: Staging, metric: accuracy, threshold: 0.5}\n  - {name: Canary, metric: accuracy, threshold: 0.6}\n  - {name: Production, metric: accuracy, threshold: 0.7}\n"
	}
	set := o.name + "Data"
	sample := "data/" + o.name + ".csv"
	folder := filepath.ToSlash(filepath.Join("models", o.task, o.name))
	return []scaffoldFile{
		{folder + "/model.yaml", fmt.Sprintf(`name: %s
task_type: %s
type: %s
enabled: true
bus_uuid: %s
estimator:
  kind: `+scaffoldEstimator+`
  hyperparameters:
%s  seed: 42
datasets:
  - name: %s
    target: {%s}
    features:
      - {column: nodes, kind: number}
      - {column: req_hours, kind: number}
      - {column: app, kind: category, transform: onehot}
split: {kind: random, seed: 42}
# A version gets an alias when it meets the line; a dummy run never gets past Staging.
lifecycle:
%sresources: {nodes: 1, cpus: 2, mem: 2G, time: "0:10:00"}
`, o.name, o.task, o.kind, uuid.New(), scaffoldHyperparameters(modelrepo.Type(o.kind)), set, target, lifecycle)},
		{folder + "/README.md", fmt.Sprintf(`# %s

Predicts %s from what is known of a job when it is submitted. What it learns from is made up (%s): bring your own rows, then set the thresholds of the lifecycle.

| Input | Meaning |
|---|---|
| nodes | nodes requested |
| req_hours | hours requested |
| app | application |
`, o.name, "`"+column+"`", sample)},
		{"datasets/" + set + ".yaml", fmt.Sprintf(`# Made-up rows; replace %s by your own.
name: %s
format: csv
# Of a file by other rules: delimiter: ";", decimal: ",", encoding: windows-1252, na_values: [NA]
files: [%s]
backends: {local: {}}
columns:
  nodes: {type: number, available: submit}
  req_hours: {type: number, available: submit}
  app: {type: category, available: submit}
  %s: {type: %s, available: end}
# For dummy runs.
generator: {kind: table, seed: 42}
`, sample, set, sample, column, columnType)},
		{sample, sampleRows(column, o.kind)},
	}
}

// scaffoldHyperparameters sets three hyperparameters, and lists the others with their defaults.
func scaffoldHyperparameters(t modelrepo.Type) string {
	set := map[string]string{"n_estimators": "60", "max_depth": "12", "min_samples_leaf": "3"}
	var b strings.Builder
	for _, h := range modelrepo.Hyperparameters(scaffoldEstimator, t) {
		if value, ok := set[h.Name]; ok {
			fmt.Fprintf(&b, "    %s: %s\n", h.Name, value)
		} else {
			fmt.Fprintf(&b, "    # %s: %s  # %s\n", h.Name, h.FormatDefault(), h.Meaning)
		}
	}
	return b.String()
}

// sampleRows generates the same rows each time, with a signal that a model can learn.
func sampleRows(column, kind string) string {
	rng := rand.New(rand.NewPCG(42, 0))
	apps := []string{"cfd", "md", "train", "render"}
	var b strings.Builder
	fmt.Fprintf(&b, "nodes,req_hours,app,%s\n", column)
	for range 400 {
		// Hours to the minute: rows that are equal in training and test would make the trainer refuse the data.
		nodes, hours, app := 1+rng.IntN(64), float64(1+rng.IntN(24*60))/60, rng.IntN(len(apps))
		v := 20*float64(app) + 2*float64(nodes) + 10*hours + 5*rng.NormFloat64()
		value := fmt.Sprintf("%.2f", v)
		if kind == string(modelrepo.Classification) {
			value = map[bool]string{false: "no", true: "yes"}[v > 210]
		}
		fmt.Fprintf(&b, "%d,%.2f,%s,%s\n", nodes, hours, apps[app], value)
	}
	return b.String()
}
