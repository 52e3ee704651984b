package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/mlp-platform/platform/libs/cli/invocation"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	dashboard "github.com/mlp-platform/platform/services/dashboard-bff"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd"
	"github.com/mlp-platform/platform/services/trainer"
)

// announce waits for readiness, reports it, seeds on first start, and prints the banner.
func (p *platform) announce(ctx context.Context, tr *trainer.Trainer, since time.Time) error {
	for _, e := range p.cfg.endpoints() {
		if err := awaitReady(ctx, e.url+e.probe); err != nil {
			return fmt.Errorf("%s is not ready: %w", e.name, err)
		}
		p.con.Step(e.name, e.url+e.probe, time.Since(since))
	}
	if err := p.dir.WriteRuntime(p.runtime()); err != nil {
		return err
	}
	if err := p.recordReady(); err != nil {
		return err
	}
	p.con.Say("%s", p.con.Bold(fmt.Sprintf("ready in %.2f s", time.Since(p.begin).Seconds())))
	if err := p.endOrphans(ctx); err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "tracker runs of a killed process are not ended", slog.Any("err", err))
	}
	if err := p.seed(ctx, tr); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		p.log.ErrorContext(ctx, "seeding failed", slog.Any("err", err))
		p.con.Say("some samples are incomplete; they are tried again at the next start:\n  %v", err)
	}
	// Opening models and training leave garbage that an idle process would keep until its next collection.
	debug.FreeOSMemory()
	p.banner()
	<-ctx.Done()
	return nil
}

// awaitReady polls a readiness address until it answers 200. When ctx ends, its error is returned.
func awaitReady(parent context.Context, url string) error {
	ctx, cancel := context.WithTimeout(parent, time.Minute)
	defer cancel()
	hc := &http.Client{Timeout: 2 * time.Second}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := hc.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s answers %s", url, resp.Status)
		}
		select {
		case <-ctx.Done():
			if parent.Err() != nil {
				return parent.Err()
			}
			return err
		case <-time.After(15 * time.Millisecond):
		}
	}
}

// recordReady records which program and schemas this start used, so that a stopped platform can be compared with another
// program.
func (p *platform) recordReady() error {
	schemas := map[string]map[string]int{}
	for _, s := range allSchemas() {
		known, err := s.Known()
		if err != nil {
			return err
		}
		schemas[s.Name] = known
	}
	return p.dir.WriteReady(datadir.Ready{Version: service.Version, At: time.Now().UTC().Truncate(time.Second), Schemas: schemas})
}

// allSchemas are the schemas of the database, with every migration that this program knows.
func allSchemas() []postgres.Schema {
	return []postgres.Schema{
		controlplane.Schema(), inference.Schema(), assistant.Schema(), dashboard.Schema(),
		{Name: trackerd.Schema, Sets: []postgres.Set{trackerd.Migrations()}},
		{Name: orchestratord.Schema, Sets: []postgres.Set{orchestratord.Migrations()}},
	}
}

// runtime returns the description of the running platform for other commands.
func (p *platform) runtime() datadir.Runtime {
	addresses := map[string]string{}
	for _, e := range p.cfg.endpoints() {
		addresses[e.key] = e.url
	}
	return datadir.Runtime{PID: os.Getpid(), Started: p.begin.UTC(), Addresses: addresses}
}

// banner prints the addresses and the next steps; it is the last output of a start.
func (p *platform) banner() {
	here := invocation.Current()
	platform, mlp := here.Command("platform"), here.Command("mlp")
	p.con.Say(`
  dashboard       %[1]s   password of admin: %[12]s password
  control plane   %[2]s/docs
  inference       %[3]s/docs
  evidence        %[4]s
  assistant       %[5]s/docs
  tracker         %[6]s
  orchestrator    %[7]s
  model repo      %[8]s
  credentials     %[9]s

%[10]s
  eval "$(%[12]s env)"
  %[13]s status
  %[13]s models info RuntimeRegressor
  for f in %[11]s/RuntimeRegressor-job-*.json; do %[13]s predict RuntimeRegressor -f @$f; done
  %[13]s retrain JPCP --follow
Stop with Ctrl-C, or from another shell: %[12]s stop`,
		p.cfg.dashboardURL(), p.cfg.controlPlaneURL(), p.cfg.inferenceURL(), p.towerLaunch(), p.cfg.assistantURL(), p.cfg.trackerURL(), p.cfg.orchestratorURL(), p.repo, p.path("credentials.json"),
		p.con.Bold("Next:"), p.path("samples"), platform, mlp)
}
