package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/standalone/internal/seed"
	"github.com/mlp-platform/platform/services/trainer"
)

// seed trains, promotes, baselines and records the samples that are not seeded yet; tr reads the held-out rows.
func (p *platform) seed(ctx context.Context, tr *trainer.Trainer) error {
	if !p.cfg.Seed {
		return nil
	}
	cfg, err := p.trainerConfig()
	if err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	repo, err := modelrepo.Open(p.repo, cfg.Env)
	if err != nil {
		return fmt.Errorf("read the model repository: %w", err)
	}
	var models []seed.Model
	for _, name := range []string{"RuntimeRegressor", "RuntimeClass", "JPCP", "MACK", "MCBound"} {
		m := repo.Models[strings.ToUpper(name)]
		if m == nil || len(m.Datasets) == 0 {
			continue // the user took it out
		}
		models = append(models, seed.Model{Name: strings.ToUpper(name), Display: m.Name, Dataset: m.Datasets[0].Name,
			Alias: "Production", JobLog: strings.HasPrefix(m.Name, "Runtime"), Readme: p.readme(m)})
	}
	stateFile := p.path("seeded.json")
	if seed.Complete(stateFile, models) {
		return nil
	}
	if seed.Trained(stateFile, models) {
		p.con.Say("\nrecording jobs, costs, evaluations and budgets of the samples")
	} else {
		p.con.Say("\nfirst start: training the samples through the ordinary gates")
	}
	display := map[string]string{}
	for _, m := range models {
		display[m.Name] = m.Display
	}
	p.progress.listen(func(model, stage string, fraction float64) {
		p.con.Progress(display[model], stage, fraction*0.95)
	})
	defer p.progress.listen(nil)
	err = seed.Run(ctx, seed.Options{
		Models: models, ControlPlane: p.cfg.controlPlaneURL(), ControlPlaneToken: p.creds.SeedToken,
		Serving: p.cfg.inferenceURL(), ServingToken: p.creds.ServingToken,
		HTTP: &http.Client{Timeout: 20 * time.Second}, StateFile: stateFile, SamplesDir: p.path("samples"),
		Heldout: func(ctx context.Context, model, dataset string, n int) ([]seed.Row, error) {
			rows, err := tr.Heldout(ctx, model, dataset, n)
			out := make([]seed.Row, len(rows))
			for i, r := range rows {
				out[i] = seed.Row{ID: r.ID, Features: r.Features}
			}
			return out, err
		},
		Begin: p.con.Begin, Stage: p.con.Progress, End: p.con.End,
	})
	p.con.Flush()
	return err
}

// readme is the path of a model's README in the model repository, empty if it has none.
func (p *platform) readme(m *modelrepo.Model) string {
	file := path.Join(m.Dir, "README.md")
	if _, err := os.Stat(filepath.Join(p.repo, filepath.FromSlash(file))); err != nil {
		return ""
	}
	return file
}
