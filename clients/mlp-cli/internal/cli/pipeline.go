package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/modelrepo"
)

func pipelineCommand(env *Env) *cli.Command {
	repoFlag := func(aliases ...string) cli.Flag {
		return &cli.StringFlag{Name: "repo", Aliases: aliases, Usage: "model repository (default: PLATFORM_MODELREPO, else this folder or deploy/modelrepo in it)"}
	}
	return &cli.Command{Name: "pipeline", Usage: "the model repository, and training on this machine", Subcommands: []*cli.Command{
		{Name: "list", Usage: "the declared models", Flags: append(listFlags(0), repoFlag()), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return pipelineList(env, c.String("repo"), o)
		}},
		{Name: "validate", Usage: "every fault of the repository, by file and line", Flags: []cli.Flag{repoFlag()}, Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			return pipelineValidate(env, c.String("repo"))
		}},
		{Name: "run", Usage: "train a model in this process", Flags: []cli.Flag{repoFlag("registry"),
			&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Required: true, Usage: "model"},
			&cli.StringFlag{Name: "dataset", Aliases: []string{"d"}, Usage: "dataset (default: the first declared)"},
			&cli.BoolFlag{Name: "dummy", Usage: "500 generated rows; the version never gets past Staging"},
			&cli.StringFlag{Name: "backend", Aliases: []string{"b"}, Usage: strings.Join(backends, ", ")},
			registryFlag(),
			&cli.StringFlag{Name: "report", Usage: "folder for a report with plots"},
			dryRunFlag(),
		}, Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			if err := oneOf("--backend", c.String("backend"), backends...); err != nil {
				return err
			}
			if err := oneOf("--env", c.String("env"), modelrepo.Environments...); err != nil {
				return err
			}
			return pipelineRun(c.Context, env, runOptions{repo: c.String("repo"), model: c.String("model"), dataset: c.String("dataset"),
				dummy: c.Bool("dummy"), backend: c.String("backend"), env: c.String("env"),
				report: c.String("report"), dryRun: c.Bool("dry-run")})
		}},
		pipelineDeployCommand(env),
		pipelineExportCommand(env),
		pipelineValidateModelCommand(env),
		pipelinePromoteCommand(env),
	}}
}

// repoDir finds the model repository: the option, PLATFORM_MODELREPO, this folder, deploy/modelrepo below it.
func (e *Env) repoDir(asked string) (string, error) {
	tried := []string{asked, e.Getenv("PLATFORM_MODELREPO"), ".", filepath.Join("deploy", "modelrepo")}
	if asked != "" {
		tried = tried[:1]
	}
	for _, dir := range tried {
		if dir == "" {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, "models")); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	if asked == "" {
		asked = "this folder"
	}
	return "", fault.New("no_modelrepo", "%s is no model repository: it has no models folder", asked).
		WithHint("name one with --repo DIR, or set PLATFORM_MODELREPO; mlp scaffold NAME --repo DIR makes one")
}

// registryFlag chooses the environment that a command works in.
func registryFlag(aliases ...string) cli.Flag {
	return &cli.StringFlag{Name: "env", Aliases: aliases, Usage: strings.Join(modelrepo.Environments, ", ") + ": which registry applies (default: dev, or base where the repository has none for dev)"}
}

// registryOf returns the requested environment, else dev if the repository has a registry for it, else base.
func registryOf(dir, asked string) string {
	switch {
	case asked != "":
		return asked
	case slices.Contains(modelrepo.Registries(dir), "dev"):
		return "dev"
	}
	return "base"
}

// modelRepo reads the repository with the registry of an environment.
func (e *Env) modelRepo(asked, name string) (string, *modelrepo.Repo, error) {
	dir, err := e.repoDir(asked)
	if err != nil {
		return "", nil, err
	}
	name = registryOf(dir, name)
	r, err := modelrepo.Open(dir, name)
	if err != nil {
		return "", nil, fault.New("modelrepo_unreadable", "cannot read the model repository %s: %v", dir, err)
	}
	return dir, r, nil
}

func sortedModels(r *modelrepo.Repo) []*modelrepo.Model {
	out := make([]*modelrepo.Model, 0, len(r.Models))
	for _, m := range r.Models {
		out = append(out, m)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func pipelineList(env *Env, repo string, o listOptions) error {
	_, r, err := env.modelRepo(repo, "")
	if err != nil {
		return err
	}
	type row struct {
		Model     string   `json:"model"`
		Task      string   `json:"task"`
		Type      string   `json:"type"`
		Estimator string   `json:"estimator"`
		Datasets  []string `json:"datasets"`
		Enabled   bool     `json:"enabled"`
	}
	g := output.Grid{Columns: []string{"Model", "Task", "Type", "Estimator", "Datasets", "Enabled"}, Spare: []string{"Task"}, Empty: "The repository declares no model."}
	doc := []row{}
	for _, m := range sortedModels(r) {
		w := row{m.Name, m.TaskType, string(m.Type), m.Estimator.Kind, []string{}, m.Enabled}
		for _, d := range m.Datasets {
			w.Datasets = append(w.Datasets, d.Name)
		}
		doc = append(doc, w)
		g.Rows = append(g.Rows, []any{w.Model, w.Task, w.Type, w.Estimator, w.Datasets, w.Enabled})
	}
	g.Doc = doc
	if n := len(r.Faults); n > 0 {
		g.Notes = []string{"", fmt.Sprintf("%d fault(s); see: mlp pipeline validate", n)}
	}
	return env.printList(o, g, false)
}

func pipelineValidate(env *Env, repo string) error {
	dir, r, err := env.modelRepo(repo, "base")
	if err != nil {
		return err
	}
	all := r.Faults
	for _, name := range modelrepo.Registries(dir) { // each may have faults that base alone does not
		_, other, err := env.modelRepo(dir, name)
		if err != nil {
			return err
		}
		for _, f := range other.Faults {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	type row struct {
		File    string `json:"file"`
		Line    int    `json:"line"`
		Message string `json:"message"`
	}
	faults := []row{}
	g := output.Grid{Columns: []string{"File", "Line", "Message"}}
	for _, f := range all {
		faults = append(faults, row{f.File, f.Line, f.Msg})
		g.Rows = append(g.Rows, []any{f.File, f.Line, f.Msg})
	}
	g.Doc = map[string]any{"valid": len(faults) == 0, "models": len(r.Models), "datasets": len(r.Datasets), "faults": faults}
	if len(faults) == 0 {
		g.Empty = fmt.Sprintf("%s is valid: %d models, %d datasets", dir, len(r.Models), len(r.Datasets))
		return env.Printer().Print(g)
	}
	f := fault.New("invalid_modelrepo", "%d fault(s) in %s; the first: %v", len(faults), dir, all[0])
	f.Faults = faults
	if !env.Format.Structured() {
		// file:line, so that an editor can jump there.
		for _, w := range all {
			w.File = filepath.Join(dir, w.File)
			fmt.Fprintln(env.Out, output.Clean(w.Error()))
		}
	}
	return f
}

type runOptions struct {
	repo, model, dataset, backend, env, report string
	dummy, dryRun                              bool
}

func pipelineRun(ctx context.Context, env *Env, o runOptions) error {
	dir, r, err := env.modelRepo(o.repo, o.env)
	if err != nil {
		return err
	}
	o.env = r.Env
	var m *modelrepo.Model
	var names []string
	for _, x := range sortedModels(r) {
		names = append(names, x.Name)
		if strings.EqualFold(x.Name, o.model) {
			m = x
		}
	}
	if o.dryRun {
		c := Check{Name: "model is declared", Pass: m != nil, Detail: "declared: " + listNames(names)}
		return env.DryRun(o.model, map[string]any{"repo": dir, "env": o.env, "dataset": nullIfEmpty(o.dataset), "dummy": o.dummy, "backend": nullIfEmpty(o.backend)}, []Check{c})
	}
	if m == nil {
		return fault.New("unknown_model", "%s declares no model %s; it declares %s", dir, o.model, listNames(names)).
			WithHint("faults hide models; see: mlp pipeline validate")
	}
	if env.Getenv("HPC_SSH_HOST") != "" {
		return fault.New("not_over_ssh", "HPC_SSH_HOST is set, but mlp pipeline run submits on this machine alone").
			WithHint("over SSH: trainer train --model %s; here: unset HPC_SSH_HOST", m.Name)
	}
	return trainHere(ctx, env, o, dir, r, m)
}

// foreignCommit returns a commit that the control plane has read and this folder does not have, the last push first:
// the folder is behind, or the control plane reads another repository. Empty if the folder has it, or if the control
// plane does not answer.
func (e *Env) foreignCommit(ctx context.Context, dir string) string {
	r, err := e.Config()
	if err != nil {
		return ""
	}
	var fresh controlplane.FreshnessSnapshot
	if e.controlPlane(r).get(ctx, "/modelrepo/status", &fresh) != nil {
		return ""
	}
	read := make([]string, 0, 1+len(fresh.Models))
	if fresh.LastEvent != nil {
		read = append(read, fresh.LastEvent.CommitSha)
	}
	for _, m := range fresh.Models {
		if m.LatestModelrepoCommit != nil {
			read = append(read, *m.LatestModelrepoCommit)
		}
	}
	if i := slices.IndexFunc(read, func(sha string) bool { return !modelrepo.HasCommit(dir, sha) }); i >= 0 {
		return read[i]
	}
	return ""
}

// publishCommands returns the commands that publish a model's definition to the control plane, which reads commits
// only.
func publishCommands(dir string, m *modelrepo.Model, r *modelrepo.Repo) []string {
	files := []modelrepo.SourceFile{m.File}
	for _, d := range m.Datasets {
		files = append(files, r.Datasets[d.Name].File)
	}
	origin, err := modelrepo.ReadProvenance(dir, files...)
	return append(commitCommands(dir, m.Name, err == nil && !origin.Dirty()), "mlp modelrepo sync")
}

// commitCommands commit the folder and push it; steps that are done or impossible are left out.
func commitCommands(dir, model string, committed bool) []string {
	git := "git -C " + argv.Quote([]string{dir}) + " "
	remote, isRepository := modelrepo.HasRemote(dir)
	var out []string
	if !isRepository {
		out = append(out, git+"init")
	}
	if !committed {
		out = append(out, git+"add -A", git+"commit -m 'Add "+model+"'")
	}
	if remote {
		out = append(out, git+"push")
	}
	return out
}
