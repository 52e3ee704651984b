// Package commands is the command line of the trainer.
package commands

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/otlp"
	"github.com/mlp-platform/platform/services/trainer"
)

// errUsage marks faults of the command line itself.
var errUsage = errors.New("usage")

// ExitCode is 2 for a wrong command line and 1 for any other error.
func ExitCode(err error) int {
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// App is the command line. Answers go to out as JSON, progress to errOut.
func App(environ []string, out, errOut io.Writer) *cli.App {
	repo := &cli.StringFlag{Name: "repo", Usage: "folder of the model repository (default: MODELREPO_DIR, then PLATFORM_MODELREPO, then deploy/modelrepo)"}
	env := &cli.StringFlag{Name: "env", Usage: "registry in force: dev, staging or prod"}
	set := &cli.StringFlag{Name: "dataset", Aliases: []string{"d"}, Usage: "data set (default: the model's first)"}
	model := func(def string) *cli.StringFlag {
		return &cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "model, in any case", Value: def}
	}
	app := &cli.App{
		Name:            "trainer",
		Usage:           "train models of a model repository",
		Version:         service.Version,
		Writer:          out,
		ErrWriter:       errOut,
		ExitErrHandler:  func(*cli.Context, error) {}, // main alone exits
		HideHelpCommand: true,
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return fmt.Errorf("%w: %w", errUsage, err) },
		Commands: []*cli.Command{
			{
				Name: "train", Usage: "run the training flow once",
				Flags: []cli.Flag{repo, env, model(""), set,
					&cli.BoolFlag{Name: "dummy", Usage: "train on 500 generated rows; reaches at most Staging"},
					&cli.StringFlag{Name: "backend", Aliases: []string{"b"}, Usage: "where the data is read from"},
					&cli.StringFlag{Name: "commit", Usage: "commit whose models are trained"},
					&cli.StringFlag{Name: "tenant", Usage: "tenant of the request"},
					&cli.StringFlag{Name: "requested-by", Usage: "the user who requested the training"},
					&cli.StringFlag{Name: "approval", Usage: "id of the approval that allowed it"},
					&cli.StringFlag{Name: "request-id", Usage: "id of the request that led to it"},
					&cli.StringFlag{Name: "parameters", Usage: `JSON laid over model.yaml, such as {"seed": 7, "hyperparameters": {"max_depth": 8}}`},
					&cli.StringFlag{Name: "report", Usage: "folder for report.json and the charts of the run as SVG"},
					&cli.StringFlag{Name: "flow-run", Usage: "id of the orchestrator's flow run that this training is (default: PREFECT_FLOW_RUN_ID)"},
				},
				Action: func(c *cli.Context) error { return runTrain(c, environ, out, errOut) },
			},
			{
				Name: "evaluate", Usage: "fit and judge a model on its data, record nothing; prints the report as JSON",
				Flags: []cli.Flag{repo, env, model(""), set,
					&cli.StringFlag{Name: "backend", Aliases: []string{"b"}, Usage: "where the data is read from"},
					&cli.StringFlag{Name: "report", Usage: "folder for report.json and the charts as SVG"},
				},
				Action: func(c *cli.Context) error { return runEvaluate(c, environ, out, errOut) },
			},
			{
				Name: "figures", Usage: "fit and judge every model that declares margins over its baselines; prints a Markdown table",
				Flags:  []cli.Flag{repo, env},
				Action: func(c *cli.Context) error { return runFigures(c, environ, out, errOut) },
			},
			{
				Name: "worker", Usage: "carry out the orchestrator's flow runs, each in a separate process, until interrupted",
				Flags: []cli.Flag{repo, env,
					&cli.StringFlag{Name: "name", Usage: "name among the workers of the pool (default: WORKER_NAME, then the host's)"},
				},
				Action: func(c *cli.Context) error { return runWorker(c, environ, errOut) },
			},
			{
				Name: "job", Usage: "do the learning part of a training on a node of a cluster; the scheduler runs it", ArgsUsage: "DIR", Hidden: true,
				Action: func(c *cli.Context) error {
					if c.NArg() != 1 {
						return fmt.Errorf("%w: job DIR", errUsage)
					}
					return trainer.RunJob(c.Context, c.Args().First(), service.NewLogger(errOut, "info"))
				},
			},
			{
				Name: "features", Usage: "print the body of POST /predict for one job, as it was at its submit",
				Flags: []cli.Flag{repo, env, model("RuntimeRegressor"), set,
					&cli.StringFlag{Name: "log", Usage: "job log to read instead of the data set's files"},
					&cli.StringFlag{Name: "job", Usage: "id of the job"},
				},
				Action: func(c *cli.Context) error { return runFeatures(c, environ, out, errOut) },
			},
			{
				Name: "heldout", Usage: "list rows that no model was fitted on, with what really happened",
				Flags: []cli.Flag{repo, env, model("RuntimeRegressor"), set,
					&cli.IntFlag{Name: "n", Usage: "how many, evenly spread; 0 for all", Value: 5},
				},
				Action: func(c *cli.Context) error { return runHeldOut(c, environ, out) },
			},
		},
	}
	for _, cmd := range app.Commands {
		cmd.OnUsageError = app.OnUsageError
	}
	return app
}

func loadConfig(c *cli.Context, environ []string) (trainer.Config, error) {
	environ = withModelRepo(environ)
	if v := c.String("repo"); v != "" {
		environ = append(environ[:len(environ):len(environ)], "MODELREPO_DIR="+v)
	}
	if v := c.String("env"); v != "" {
		environ = append(environ[:len(environ):len(environ)], "MODELREPO_ENV="+v)
	}
	return trainer.LoadConfig(environ)
}

// withModelRepo sets MODELREPO_DIR to PLATFORM_MODELREPO, which mlp uses, unless it is set itself.
func withModelRepo(environ []string) []string {
	dir := ""
	for _, kv := range environ {
		switch name, value, _ := strings.Cut(kv, "="); {
		case name == "MODELREPO_DIR" && value != "":
			return environ
		case name == "PLATFORM_MODELREPO":
			dir = value
		}
	}
	if dir == "" {
		return environ
	}
	return append(environ[:len(environ):len(environ)], "MODELREPO_DIR="+dir)
}

func loadData(c *cli.Context, environ []string) (trainer.Data, error) {
	cfg, err := loadConfig(c, environ)
	if err == nil {
		err = cfg.MakeCacheDir()
	}
	return trainer.Data{RepoDir: cfg.ModelRepoDir, Env: cfg.Env, Model: c.String("model"), Dataset: c.String("dataset"), Log: c.String("log"), Remote: cfg.Sources(), CacheDir: cfg.DataCacheDir}, err
}

func runTrain(c *cli.Context, environ []string, out, errOut io.Writer) error {
	if c.String("model") == "" {
		return fmt.Errorf("%w: name the model by --model", errUsage)
	}
	cfg, err := loadConfig(c, environ)
	if err != nil {
		return err
	}
	req := trainer.Request{Model: c.String("model"), Dataset: c.String("dataset"), Dummy: c.Bool("dummy"), Backend: c.String("backend"),
		CommitSHA: c.String("commit"), Tenant: c.String("tenant"),
		RequestedBy: c.String("requested-by"), ApprovalID: c.String("approval"), RequestID: c.String("request-id"), Traceparent: cfg.Traceparent}
	if text := c.String("parameters"); text != "" {
		if err := json.Unmarshal([]byte(text), &req.Parameters); err != nil {
			return fmt.Errorf("%w: --parameters is no JSON object: %w", errUsage, err)
		}
	}
	if req.FlowRunID, err = flowRunID(c.String("flow-run"), cfg); err != nil {
		return err
	}
	log := service.NewLogger(errOut, cfg.LogLevel)
	t, err := trainer.New(cfg, log)
	if err != nil {
		return err
	}
	tracing, endTracing, err := otlp.Open(c.Context, cfg.Tracing, "trainer", log)
	if err != nil {
		return err
	}
	defer endTracing()
	res, err := t.Train(service.WithTracing(c.Context, tracing), req, func(stage string, fraction float64, msg string) {
		if msg != "" {
			fmt.Fprintf(errOut, "%-9s %3.0f %%  %s\n", stage, math.Floor(100*fraction), msg)
		}
	})
	if err != nil {
		return err
	}
	if dir := c.String("report"); dir != "" {
		if err := writeReport(dir, res.Report); err != nil {
			return fmt.Errorf("version %s is registered, but its report cannot be written: %w", res.Version, err)
		}
	}
	return writeJSON(out, res)
}

func runWorker(c *cli.Context, environ []string, errOut io.Writer) error {
	cfg, err := loadConfig(c, environ)
	if err != nil {
		return err
	}
	cfg.WorkerName = cmp.Or(c.String("name"), cfg.WorkerName)
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the trainer's own program: %w", err)
	}
	// The trainings read the same settings as this process; the folder may have been given by a flag.
	environ = append(environ[:len(environ):len(environ)], "MODELREPO_DIR="+cfg.ModelRepoDir, "MODELREPO_ENV="+cfg.Env)
	w, err := trainer.NewWorker(cfg, []string{self, "train"}, environ, service.NewLogger(errOut, cfg.LogLevel))
	if err != nil {
		return err
	}
	return w.Run(c.Context)
}

// flowRunID returns the flow run that the training belongs to, in the form that the control plane
// knows it by; empty if there is none.
func flowRunID(flag string, cfg trainer.Config) (string, error) {
	text := cmp.Or(flag, cfg.FlowRunID)
	if text == "" {
		return "", nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%w: the flow run %q is no UUID; pass the id that the orchestrator gave the run", errUsage, text)
	}
	return id.String(), nil
}

func runFeatures(c *cli.Context, environ []string, out, errOut io.Writer) error {
	if c.String("job") == "" {
		return fmt.Errorf("%w: name the job by --job", errUsage)
	}
	d, err := loadData(c, environ)
	if err != nil {
		return err
	}
	row, err := d.Job(c.Context, c.String("job"))
	if err != nil {
		return err
	}
	if !row.HeldOut {
		fmt.Fprintf(errOut, "job %s is among the rows the model learns from, so it says little about new jobs; trainer heldout lists others\n", row.ID)
	}
	return writeJSON(out, map[string]any{"features": row.Features})
}

func runHeldOut(c *cli.Context, environ []string, out io.Writer) error {
	if c.Int("n") < 0 {
		return fmt.Errorf("%w: --n must not be negative", errUsage)
	}
	d, err := loadData(c, environ)
	if err != nil {
		return err
	}
	rows, err := d.Heldout(c.Context, c.Int("n"))
	if err != nil {
		return err
	}
	type entry struct {
		ID     string `json:"id"`
		Actual any    `json:"actual"`
	}
	list := make([]entry, len(rows))
	for i, r := range rows {
		list[i] = entry{r.ID, r.Actual}
	}
	return writeJSON(out, list)
}

func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
