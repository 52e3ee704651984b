package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/orchestrator"
)

type logLine struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
}

func levelName(level int) string {
	switch {
	case level >= orchestrator.Err:
		return "ERROR"
	case level >= orchestrator.Warning:
		return "WARNING"
	case level >= orchestrator.Info:
		return "INFO"
	}
	return "DEBUG"
}

// runsLogs prints a run's log, which the orchestrator keeps, and at its end why the run failed. People read line by line; a
// document is one list, printed when the run has ended if it is followed.
func runsLogs(ctx context.Context, env *Env, id string, tail int, follow bool) error {
	run, err := uuid.Parse(id)
	if err != nil {
		return fault.New("bad_run", "%q is not a valid run id", id).WithHint("see the runs: mlp runs list")
	}
	r, err := env.Config()
	if err != nil {
		return err
	}
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	// The control plane is asked first: it knows which runs are the caller's, and when this one ends.
	status, err := decode[controlplane.RunStatus](cp.GetRetrain(ctx, id))
	if err != nil {
		return runFault(err, id)
	}
	orch := orchestrator.New(r.Get("orchestrator"), env.HTTP, orchestrator.Key(r.Get("orchestrator_token")))
	lines := []logLine{}
	read := 0
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ended := status.IsTerminal // lines that come before the end are read after it
		for {
			page, err := orch.Logs(ctx, run, 0, read)
			if ctx.Err() != nil {
				return fault.New("interrupted", "stopped watching; run %s continues", id).WithHint("cancel it with: mlp runs cancel %s", id)
			}
			if err != nil {
				return orchestratorFault(r.Get("orchestrator"), err)
			}
			for _, l := range page {
				lines = append(lines, logLine{l.Timestamp.UTC(), levelName(l.Level), l.Message})
			}
			read += len(page)
			if len(page) < orchestrator.MaxPage {
				break
			}
		}
		if ended {
			reason, err := readFailure(ctx, orch, run, status)
			if err != nil {
				return orchestratorFault(r.Get("orchestrator"), err)
			}
			lines, read = append(lines, reason...), read+len(reason)
		}
		if tail > 0 && len(lines) > tail {
			lines = lines[len(lines)-tail:]
		}
		if !env.Format.Structured() {
			if err := env.printLog(lines); err != nil {
				return err
			}
			lines, tail = lines[:0], 0
		}
		if !follow || ended {
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		if status, err = decode[controlplane.RunStatus](cp.GetRetrain(ctx, id)); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if !env.Format.Structured() {
		if read == 0 {
			env.Talk("run %s has written no log", id)
		}
		return nil
	}
	g := output.Grid{Columns: []string{"Time", "Level", "Message"}, Doc: lines}
	for _, l := range lines {
		g.Rows = append(g.Rows, []any{l.Time, l.Level, l.Message})
	}
	return env.Printer().Print(g)
}

// readFailure returns why a run failed, as a last line of its log; none for a run that did not fail. The orchestrator
// keeps the reason with the state and not in the log: a run that fails early has written nothing else.
func readFailure(ctx context.Context, orch *orchestrator.Client, run uuid.UUID, status controlplane.RunStatus) ([]logLine, error) {
	if !failed(status) {
		return nil, nil
	}
	flow, err := orch.ReadFlowRun(ctx, run)
	if err != nil || flow.State == nil || flow.State.Message == "" {
		return nil, err
	}
	return []logLine{{flow.State.Timestamp.UTC(), "ERROR", *status.StateType + ": " + flow.State.Message}}, nil
}

// failed reports whether a run ended otherwise than by completing or being cancelled.
func failed(run controlplane.RunStatus) bool {
	state := derefString(run.StateType)
	return run.IsTerminal && (state == string(orchestrator.Failed) || state == string(orchestrator.Crashed))
}

// printLog writes lines as they come; a table would cut them.
func (e *Env) printLog(lines []logLine) error {
	for _, l := range lines {
		if _, err := fmt.Fprintf(e.Out, "%s  %-7s  %s\n", l.Time.Format("15:04:05"), l.Level, output.Clean(l.Message)); err != nil {
			return err
		}
	}
	return nil
}

func orchestratorFault(url string, err error) error {
	var oe *orchestrator.Error
	switch {
	case errors.As(err, &oe) && (oe.Status/100 == 3 || strings.HasPrefix(oe.Detail, "<")):
		f := foreignAnswer("orchestrator", "orchestrator", "orchestrator_token", url, oe.Status)
		f.Cause = err
		return f
	case errors.Is(err, orchestrator.ErrUnreadable):
		f := foreignAnswer("orchestrator", "orchestrator", "orchestrator_token", url, 200)
		f.Cause = err
		return f
	case errors.As(err, &oe):
		f := fault.New("orchestrator_refused", "%v", oe)
		f.Service, f.Status, f.Cause = "orchestrator", oe.Status, err
		if oe.Status == 401 || oe.Status == 403 {
			return f.WithHint("set PREFECT_API_KEY, or run: mlp config set orchestrator_token")
		}
		return f
	case errors.Is(err, context.Canceled):
		return err
	}
	return unreachableFault("orchestrator", "orchestrator", url, err)
}
