package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/tracker"
)

// endOrphans ends the tracker runs that a killed process left RUNNING. The orchestrator itself marks its runs CRASHED;
// the tracker cannot know. Only runs of a flow run are touched, and only those begun before this process: others may be
// alive in `mlp pipeline run`.
func (p *platform) endOrphans(ctx context.Context) error {
	repo, err := modelrepo.Open(p.repo, "")
	if err != nil {
		return fmt.Errorf("read the model repository: %w", err)
	}
	tr := tracker.New(p.cfg.trackerURL(), nil, tracker.Token(p.creds.TrackerToken))
	for _, m := range repo.Models {
		for _, d := range m.Datasets {
			exp, err := tr.GetExperimentByName(ctx, strings.ToLower(m.Name+"_"+d.Name))
			if errors.Is(err, tracker.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			for run, err := range tr.Runs(ctx, tracker.RunQuery{ExperimentIDs: []string{exp.ID}, Filter: "attributes.status = 'RUNNING'"}) {
				if err != nil {
					return err
				}
				if run.Tags["prefect_flow_run_id"] == "" || !run.Start.Before(p.begin) {
					continue
				}
				if err := tr.SetTag(ctx, run.ID, "failure_reason", "the process that trained was killed"); err != nil {
					return err
				}
				if err := tr.UpdateRun(ctx, run.ID, tracker.Failed, time.Now()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
