package cli

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/orchestrator/scheduled"
)

// Names of what pipeline deploy makes, and of the deployment that it copies where and how to run.
const (
	dispatchFlow       = "training_flow"
	dispatchDeployment = "platform-dispatch"
)

func pipelineDeployCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "deploy", Usage: "make the orchestrator train the enabled models by their schedule", Flags: []cli.Flag{
		&cli.StringFlag{Name: "repo", Aliases: []string{"registry"}, Usage: "model repository with its registries (default: PLATFORM_MODELREPO, else this folder)"},
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "only this model"},
		registryFlag("e"),
		&cli.BoolFlag{Name: "no-schedule", Usage: "deploy without a schedule: the model is trained only on request"},
		dryRunFlag(),
	}, Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		if err := oneOf("--env", c.String("env"), modelrepo.Environments...); err != nil {
			return err
		}
		return pipelineDeploy(c.Context, env, deployOptions{repo: c.String("repo"), model: c.String("model"), env: c.String("env"),
			noSchedule: c.Bool("no-schedule"), dryRun: c.Bool("dry-run")})
	}}
}

type deployOptions struct {
	repo, model, env   string
	noSchedule, dryRun bool
}

// deployedModel is the result of one model's deployment.
type deployedModel struct {
	Model      string  `json:"model"`
	Deployment string  `json:"deployment"`
	Dataset    string  `json:"dataset"`
	Schedule   *string `json:"schedule"` // null: none
	Timezone   *string `json:"timezone"`
	Result     string  `json:"result"` // created, updated or unchanged
}

func pipelineDeploy(ctx context.Context, env *Env, o deployOptions) error {
	if dir, err := env.repoDir(o.repo); err == nil {
		o.env = registryOf(dir, o.env)
	}
	models, err := env.modelsToDeploy(o)
	if o.dryRun {
		return dryDeploy(ctx, env, o, models, err)
	}
	if err != nil {
		return err
	}
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.Name
	}
	yes, err := env.Confirm(ctx, "Deploy the training of "+listNames(names)+"?", false)
	if err != nil || !yes {
		return err
	}
	r, err := env.Config()
	if err != nil {
		return err
	}
	orch, template, err := env.dispatchTemplate(ctx, r)
	if err != nil {
		return err
	}
	flow, err := orch.CreateFlow(ctx, scheduled.Flow)
	if err != nil {
		return orchestratorFault(r.Get("orchestrator"), err)
	}
	doc := []deployedModel{}
	g := output.Grid{Columns: []string{"Model", "Deployment", "Dataset", "Schedule", "Timezone", "Result"}, Empty: "The repository has no enabled model."}
	for _, m := range models {
		wanted := deploymentOf(m, template, o.noSchedule)
		wanted.FlowID = flow.ID
		row := deployedModel{Model: m.Name, Deployment: scheduled.Flow + "/" + wanted.Name, Dataset: m.Datasets[0].Name}
		if wanted.Schedules[0].Active {
			row.Schedule, row.Timezone = &wanted.Schedules[0].Schedule.Cron, &wanted.Schedules[0].Schedule.Timezone
		}
		if row.Result, err = deployOne(ctx, orch, wanted); err != nil {
			f := fault.From(orchestratorFault(r.Get("orchestrator"), err))
			f.Faults = doc // those before it are deployed
			return f
		}
		if row.Result != "unchanged" {
			env.changes.note()
		}
		doc = append(doc, row)
		g.Rows = append(g.Rows, []any{row.Model, row.Deployment, row.Dataset, row.Schedule, row.Timezone, row.Result})
	}
	g.Doc = doc
	return env.Printer().Print(g)
}

// modelsToDeploy returns the enabled models of a repository without faults, or the requested one.
func (e *Env) modelsToDeploy(o deployOptions) ([]*modelrepo.Model, error) {
	dir, repo, err := e.modelRepo(o.repo, o.env)
	if err != nil {
		return nil, err
	}
	if len(repo.Faults) > 0 {
		return nil, fault.New("invalid_modelrepo", "%s has %d fault(s) and is not deployed", dir, len(repo.Faults)).WithHint("see: mlp pipeline validate")
	}
	var models []*modelrepo.Model
	var names []string
	for _, m := range sortedModels(repo) {
		names = append(names, m.Name)
		switch {
		case o.model == "" && m.Enabled:
			models = append(models, m)
		case strings.EqualFold(m.Name, o.model) && !m.Enabled:
			return nil, fault.New("model_disabled", "%s is disabled in the registry %s", m.Name, o.env)
		case strings.EqualFold(m.Name, o.model):
			models = append(models, m)
		}
	}
	if o.model != "" && len(models) == 0 {
		return nil, fault.New("unknown_model", "%s declares no model %s; it declares %s", dir, o.model, listNames(names))
	}
	return models, nil
}

// dispatchTemplate returns the deployment through which the control plane trains: scheduled training runs in the same
// place and way.
func (e *Env) dispatchTemplate(ctx context.Context, r *config.Resolved) (*orchestrator.Client, orchestrator.Deployment, error) {
	orch := orchestrator.New(r.Get("orchestrator"), e.HTTP, orchestrator.Key(r.Get("orchestrator_token")))
	template, err := orch.ReadDeploymentByName(ctx, dispatchFlow, dispatchDeployment)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil, template, fault.New("no_worker", "the orchestrator has no deployment %s/%s to copy: no trainer has registered there", dispatchFlow, dispatchDeployment).
			WithHint("start the platform, or a worker with: trainer worker")
	}
	if err != nil {
		return nil, template, orchestratorFault(r.Get("orchestrator"), err)
	}
	return orch, template, nil
}

// deploymentOf returns the model's scheduled training, run in the same place and way as the template.
func deploymentOf(m *modelrepo.Model, template orchestrator.Deployment, noSchedule bool) orchestrator.CreateDeployment {
	d := scheduled.Deployment(m)
	for to, from := range map[*string]*string{&d.Entrypoint: template.Entrypoint, &d.WorkPoolName: template.WorkPoolName, &d.WorkQueueName: template.WorkQueueName} {
		if from != nil {
			*to = *from
		}
	}
	if noSchedule {
		scheduled.Unschedule(&d)
	}
	return d
}

// deployOne creates a deployment or brings it up to date. One that is already as wanted is left alone: writing it
// again would discard the runs that its schedule has created ahead.
func deployOne(ctx context.Context, orch *orchestrator.Client, wanted orchestrator.CreateDeployment) (string, error) {
	old, err := orch.ReadDeploymentByName(ctx, scheduled.Flow, wanted.Name)
	result := "updated"
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		result = "created"
	case err != nil:
		return "", err
	case isDeployed(old, wanted):
		return "unchanged", nil
	}
	_, err = orch.CreateDeployment(ctx, wanted)
	return result, err
}

func isDeployed(old orchestrator.Deployment, wanted orchestrator.CreateDeployment) bool {
	same := func(a *string, b string) bool { return a == nil && b == "" || a != nil && *a == b }
	return !old.Paused && slices.Equal(old.Tags, wanted.Tags) && same(old.Description, wanted.Description) && same(old.Entrypoint, wanted.Entrypoint) && same(old.WorkPoolName, wanted.WorkPoolName) &&
		reflect.DeepEqual(old.Parameters, wanted.Parameters) &&
		slices.EqualFunc(old.Schedules, wanted.Schedules, func(a orchestrator.DeploymentSchedule, b orchestrator.CreateSchedule) bool {
			return a.Active == b.Active && a.Schedule == b.Schedule
		})
}

func dryDeploy(ctx context.Context, env *Env, o deployOptions, models []*modelrepo.Model, err error) error {
	repo := Check{Name: "the repository can be deployed", Pass: err == nil, Detail: o.env}
	if err != nil {
		repo.Detail = err.Error()
	}
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = scheduled.Flow + "/" + deploymentOf(m, orchestrator.Deployment{}, true).Name
	}
	worker := Check{Name: "a trainer has registered", Detail: dispatchFlow + "/" + dispatchDeployment}
	r, err := env.Config()
	if err != nil {
		return err
	}
	if _, _, err := env.dispatchTemplate(ctx, r); err != nil {
		worker.Detail = err.Error()
	} else {
		worker.Pass = true
	}
	return env.DryRun(cmpOr(o.model, "all enabled models"), map[string]any{"deployments": names, "schedule": !o.noSchedule, "env": o.env}, []Check{repo, worker})
}
