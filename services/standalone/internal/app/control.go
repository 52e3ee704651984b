package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
)

// PrintEnv prints the addresses and tokens as export lines for a shell.
func PrintEnv(cfg Config, w io.Writer) error {
	creds, err := credentials.Load(cfg.DataDir)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, creds.Exports(credentials.Addresses{
		ControlPlane: httpURL(cfg.ControlPlaneAddr), Serving: httpURL(cfg.InferenceAddr), ServingGRPC: cfg.InferenceGRPC, Tracker: httpURL(cfg.TrackerAddr),
		Orchestrator: cfg.orchestratorURL(), Evidence: httpURL(cfg.EvidenceAddr), Assistant: httpURL(cfg.AssistantAddr),
		Dashboard: cfg.dashboardURL(), Bus: cfg.busURL(), NATS: cfg.NATSAddr, DataDir: cfg.DataDir,
	}))
	return err
}

// PrintPassword prints the dashboard's password of admins, or of viewers.
func PrintPassword(cfg Config, w io.Writer, viewer bool) error {
	creds, err := credentials.Load(cfg.DataDir)
	if err != nil {
		return err
	}
	password := creds.DashboardAdmin
	if viewer {
		password = creds.DashboardViewer
	}
	_, err = fmt.Fprintln(w, password)
	return err
}

// statusEndpoints are the servers that Status queries. The assistant's readiness includes that of its cluster, also an
// external one.
var statusEndpoints = []struct{ key, probe string }{
	{"dashboard", "/readyz"}, {"control_plane", "/readyz"}, {"inference", "/readyz"}, {"evidence_api", "/readyz"}, {"assistant", "/readyz"}, {"bus", "/readyz"},
	{"tracker", "/health"}, {"orchestrator", "/health"},
}

// Status shows the running parts and whether they are ready; it fails when none runs.
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
	rows := []row{}
	for _, e := range statusEndpoints {
		url := rt.Addresses[e.key]
		if url == "" {
			continue // an earlier version runs, which has no such part
		}
		r := row{e.key, url, "ready"}
		switch code, err := probeStatus(ctx, url+e.probe); {
		case err != nil:
			r.Status = "down"
		case code != http.StatusOK:
			r.Status = "not ready"
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

// probeStatus is the status code with which a URL answers.
func probeStatus(ctx context.Context, url string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// CheckHealth reports whether the running platform's servers are all ready: the error has a line for each that
// is not, and wraps datadir.ErrNotRunning when nothing runs.
func CheckHealth(ctx context.Context, cfg Config) error {
	rt, err := datadir.ReadRuntime(cfg.DataDir)
	if err != nil {
		return err
	}
	endpoints := cfg.endpoints()
	errs := make([]error, len(endpoints)) // in their order, not in that of their answers
	var g errgroup.Group
	for i, e := range endpoints {
		if rt.Addresses[e.key] == "" {
			continue // an earlier version runs, which has no such part
		}
		g.Go(func() error {
			if err := startup.CheckHealth(ctx, rt.Addresses[e.key]+e.probe); err != nil {
				errs[i] = fmt.Errorf("%s: %w", e.name, err)
			}
			return nil
		})
	}
	_ = g.Wait() // always nil
	return errors.Join(errs...)
}

// backStop is how long the stand-ins may take: the trainer's last calls (20 s), the orchestrator's record
// of its runs (10 s), the requests of the tracker (5 s).
const backStop = 35 * time.Second

// stopLimit is the longest clean shutdown: the services' requests, then their workers, then the
// stand-ins, then Postgres.
func (c Config) stopLimit() time.Duration {
	return 2*time.Duration(c.DrainSeconds)*time.Second + backStop + c.StopTimeout
}

// Stop asks the running platform to end and waits until it has released its data directory. The process may stay a
// zombie after that, if its parent does not wait for it.
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
