package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// The trainer begins its tracker run some time after the orchestrator reports the flow run as running: the start is
// announced once the tracker run is known.
func TestJobStartedNamesTheRunInTheTracker(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Tracker.SetIdle(true)
	p.Notice("JPCP", "abc")
	run := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil).Object(t)["flow_run_id"].(string)
	p.Orchestrator.State(run, "RUNNING", "")
	testenv.Eventually(t, 15*time.Second, func() error {
		if s := p.Want(200, "GET", "/retrain/"+run, controlplanetest.Reader, nil).Object(t); s["state_type"] != "RUNNING" {
			return fmt.Errorf("status %v; want RUNNING, whether the tracker knows a run or not", s)
		}
		return nil
	})
	p.Tracker.SetIdle(false)
	testenv.Eventually(t, 30*time.Second, func() error {
		started := p.Events("job.started")
		if len(started) != 1 {
			return fmt.Errorf("%d events job.started, want 1", len(started))
		}
		if got, want := fmt.Sprint(started[0].Data["run_id"]), "tracked-"+run; got != want {
			t.Fatalf("run_id %s, want %s", got, want)
		}
		return nil
	})
}
