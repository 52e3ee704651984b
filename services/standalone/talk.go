package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
	"github.com/mlp-platform/platform/services/standalone/internal/seed"
)

// logWriter turns a child's output into log lines.
func logWriter(log *slog.Logger, name string) io.Writer {
	return slog.NewLogLogger(log.With(slog.String("service", name)).Handler(), slog.LevelInfo).Writer()
}

func (p *platform) runtime() datadir.Runtime {
	return datadir.Runtime{PID: os.Getpid(), Started: p.begin.UTC(), Addresses: map[string]string{
		"control_plane": p.controlPlaneURL(), "inference": p.servingURL(), "tracker": p.trackerURL(), "orchestrator": p.orchestratorURL(), "evidence_api": p.evidenceURL(),
		"assistant": p.assistantURL(),
	}}
}

// seed trains, promotes and baselines what is not seeded yet.
func (p *platform) seed(ctx context.Context) error {
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
			Alias: "Production", JobLog: strings.HasPrefix(m.Name, "Runtime")})
	}
	stateFile := p.path("seeded.json")
	if seed.Complete(stateFile, models) {
		return nil
	}
	p.con.Say("\nfirst start: training the samples through the ordinary gates")
	display := map[string]string{}
	for _, m := range models {
		display[m.Name] = m.Display
	}
	p.progress.listen(func(model, stage string, fraction float64) {
		p.con.Progress(display[model], stage, fraction*0.95)
	})
	defer p.progress.listen(nil)
	err = seed.Run(ctx, seed.Options{
		Models: models, ControlPlane: p.controlPlaneURL(), ControlPlaneToken: p.creds.SeedToken,
		Serving: p.servingURL(), ServingToken: p.creds.ServingToken,
		HTTP: &http.Client{Timeout: 20 * time.Second}, StateFile: stateFile, SamplesDir: p.path("samples"),
		Heldout: func(ctx context.Context, model, dataset string, n int) ([]seed.Row, error) {
			rows, err := p.trainer.Heldout(ctx, model, dataset, n)
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

// banner is the last thing printed: where things are, and what to try.
func (p *platform) banner() {
	p.con.Say(`
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
Stop with Ctrl-C, or from another shell: make stop`,
		p.controlPlaneURL(), p.servingURL(), p.towerLaunch(), p.assistantURL(), p.trackerURL(), p.orchestratorURL(), p.repo, p.path("credentials.json"),
		p.con.Bold("Next:"), p.path("samples"))
}

// PrintEnv prints the addresses and tokens as export lines for a shell.
func PrintEnv(cfg Config, w io.Writer) error {
	creds, err := credentials.Load(cfg.DataDir)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, creds.Exports(credentials.Addresses{
		ControlPlane: base(cfg.ControlPlaneAddr), Serving: base(cfg.InferenceAddr), Tracker: base(cfg.TrackerAddr),
		Orchestrator: base(cfg.OrchestratorAddr) + "/api", Evidence: base(cfg.EvidenceAddr), Assistant: base(cfg.AssistantAddr), DataDir: cfg.DataDir,
	}))
	return err
}

// Status shows what runs and whether it is ready; it fails when nothing runs.
func Status(ctx context.Context, cfg Config, w io.Writer, asJSON bool) error {
	rt, err := datadir.ReadRuntime(cfg.DataDir)
	if err != nil {
		return err
	}
	type row struct {
		Name   string `json:"name"`
		URL    string `json:"url"`
		Status string `json:"status"`
	}
	hc := &http.Client{Timeout: 3 * time.Second}
	probe := map[string]string{"control_plane": "/readyz", "inference": "/readyz", "tracker": "/health", "orchestrator": "/health", "evidence_api": "/readyz", "assistant": "/readyz"}
	rows := []row{}
	for _, name := range []string{"control_plane", "inference", "evidence_api", "assistant", "tracker", "orchestrator"} {
		r := row{name, rt.Addresses[name], "ready"}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+probe[name], nil)
		if err != nil {
			return err
		}
		if resp, err := hc.Do(req); err != nil {
			r.Status = "down"
		} else {
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				r.Status = "not ready"
			}
		}
		rows = append(rows, r)
	}
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"pid": rt.PID, "started": rt.Started, "services": rows})
	}
	fmt.Fprintf(w, "platform runs since %s (pid %d)\n", rt.Started.Format(time.RFC3339), rt.PID)
	for _, r := range rows {
		fmt.Fprintf(w, "  %-14s %-10s %s\n", r.Name, r.Status, r.URL)
	}
	return nil
}

// backStop is how long the stand-ins may take: the trainer's last calls (20 s), the orchestrator's record
// of its runs (10 s), the requests of the tracker (5 s).
const backStop = 35 * time.Second

// stopLimit is the longest clean shutdown: the services' requests, then their workers, then the
// stand-ins, then Postgres.
func (c Config) stopLimit() time.Duration {
	return 2*time.Duration(c.DrainSeconds)*time.Second + backStop + c.StopTimeout
}

// Stop asks the running platform to end and waits until it has let its data directory go. The process
// may stay a zombie after that, if whoever started it does not ask how it ended.
func Stop(ctx context.Context, cfg Config, w io.Writer) error {
	rt, err := datadir.ReadRuntime(cfg.DataDir)
	if err != nil {
		return err
	}
	if err := syscall.Kill(rt.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop pid %d: %w", rt.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.stopLimit()+5*time.Second)
	defer cancel()
	for {
		if _, err := datadir.ReadRuntime(cfg.DataDir); errors.Is(err, datadir.ErrNotRunning) {
			_, err := fmt.Fprintln(w, "stopped")
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("pid %d did not end in time; its log is platform.log in the data directory", rt.PID)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
