package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
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
	p.con.Say(`
  dashboard       %s   password of admin: bin/platform password
  control plane   %s/docs
  inference       %s/docs
  evidence        %s
  assistant       %s/docs
  tracker         %s
  orchestrator    %s
  model repo      %s
  credentials     %s

%s
  eval "$(bin/platform env)"
  bin/mlp status
  bin/mlp models info RuntimeRegressor
  for f in %s/RuntimeRegressor-job-*.json; do bin/mlp predict RuntimeRegressor -f @$f; done
  bin/mlp retrain JPCP --follow
Stop with Ctrl-C, or from another shell: bin/platform stop`,
		p.cfg.dashboardURL(), p.cfg.controlPlaneURL(), p.cfg.inferenceURL(), p.towerLaunch(), p.cfg.assistantURL(), p.cfg.trackerURL(), p.cfg.orchestratorURL(), p.repo, p.path("credentials.json"),
		p.con.Bold("Next:"), p.path("samples"))
}
