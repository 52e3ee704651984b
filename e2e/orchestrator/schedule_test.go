//go:build e2e

package orchestrator

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/orchestrator"
)

var scheduled = workerCase{"what a schedule makes is trained", testScheduled}

// testScheduled has the orchestrator's own scheduler create runs of the nightly deployment, which a model repository
// declares for every minute. The worker trains them like any other.
func testScheduled(t *testing.T, w *workers) {
	repo := filepath.Join(t.TempDir(), "repo")
	if err := os.CopyFS(repo, os.DirFS(w.repo)); err != nil {
		t.Fatal(err)
	}
	registry := filepath.Join(repo, "registries", "base.yaml")
	text, err := os.ReadFile(registry)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(registry, bytes.Replace(text, []byte(`cron: "0 2 * * *"`), []byte(`cron: "* * * * *"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.start(t, "nightly", t.TempDir(), "MODELREPO_DIR="+repo)
	var run orchestrator.FlowRun
	harness.Eventually(t, 4*time.Minute, func() error { // a real server checks schedules once a minute
		d, err := w.client.ReadDeploymentByName(t.Context(), "scheduled_training", "platform-runtimeclass-nightly")
		if err != nil {
			return err
		}
		runs, err := w.client.FilterFlowRuns(t.Context(), orchestrator.Filter{DeploymentIDs: []uuid.UUID{d.ID}, StateTypes: []orchestrator.StateType{orchestrator.Completed}})
		if err == nil && len(runs) == 0 {
			err = errors.New("no run of the schedule has completed")
		}
		if err == nil {
			run = runs[0]
		}
		return err
	})
	if !run.AutoScheduled {
		t.Errorf("got run %+v, want one that the orchestrator scheduled itself", run)
	}
	if v := w.versions(t, run.ID); len(v) != 1 {
		t.Errorf("got versions %v, want one", v)
	}
	w.checkEvents(t, run.ID)
	p.stop(t)
	w.start(t, "restorer", t.TempDir()).stopRegistered(t, w) // nightly again, for the tests after it
}

// stopRegistered ends a worker that has registered the deployments.
func (p *workerProcess) stopRegistered(t *testing.T, w *workers) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() error {
		d, err := w.client.ReadDeploymentByName(t.Context(), "scheduled_training", "platform-runtimeclass-nightly")
		if err == nil && (len(d.Schedules) != 1 || d.Schedules[0].Schedule.Cron != "0 2 * * *") {
			err = fmt.Errorf("schedules %+v, want the nightly one", d.Schedules)
		}
		return err
	})
	p.stop(t)
}

// checkEvents reads the events that a real server has recorded of a run; the stand-in keeps none.
func (w *workers) checkEvents(t *testing.T, run uuid.UUID) {
	t.Helper()
	filter := map[string]any{"filter": map[string]any{"resource": map[string]any{"id": []string{"prefect.flow-run." + run.String()}}}}
	if answer, err := harness.TryCall(http.MethodPost, w.api+"/events/filter", "", filter); err == nil && answer.Status == http.StatusNotFound {
		return
	}
	harness.Eventually(t, time.Minute, func() error { // events are written in batches
		answer, err := harness.TryCall(http.MethodPost, w.api+"/events/filter", "", filter)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, e := range answer.JSON(t)["events"].([]any) {
			seen[e.(map[string]any)["event"].(string)] = true
		}
		for _, state := range []string{"Pending", "Running", "Completed"} { // the scheduler itself writes none
			if !seen["prefect.flow-run."+state] {
				return fmt.Errorf("events of the run: %v; want prefect.flow-run.%s among them", seen, state)
			}
		}
		return nil
	})
}
