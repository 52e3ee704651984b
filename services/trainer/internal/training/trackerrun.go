package training

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
)

// ClosingTimeout limits the calls that end a run after its context has ended.
const ClosingTimeout = 20 * time.Second

// open starts the tracker's run before anything can fail, so that every failure has a place to show.
func (f *flow) open(ctx context.Context) error {
	// An attempt whose answer was lost may have made the run; the key finds it.
	key := uuid.Must(uuid.NewV7()).String()
	f.key = key
	tags := map[string]string{
		"training_id": key, "prefect_flow_run_id": f.FlowRunID, "requested_by": f.RequestedBy, "approval_id": f.ApprovalID,
		"tenant": f.Tenant, "modelrepo_commit": f.origin.Commit, "definition_digest": f.origin.Digest,
		"dummy": fmt.Sprint(f.Dummy), "hpc_scheduler": cmp.Or(f.cfg.Batch.Mode, scheduler.Mock), "modelrepo_dirty": fmt.Sprint(f.origin.Dirty()),
	}
	if f.CommitSHA != f.origin.Commit {
		tags["requested_commit"] = f.CommitSHA
	}
	maps.DeleteFunc(tags, func(_, v string) bool { return v == "" })
	_, err := f.retried(ctx, "extract", func(ctx context.Context) (string, error) {
		exp, err := f.tracker.EnsureExperiment(ctx, strings.ToLower(f.model.Name+"_"+f.use.Name))
		if err != nil {
			return "", err
		}
		found, _, err := f.tracker.SearchRuns(ctx, tracker.RunQuery{ExperimentIDs: []string{exp.ID}, Filter: "tags.training_id = " + tracker.Quote(key)})
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			f.tracked = found[0]
			return "", nil
		}
		if err := f.resume(ctx, exp.ID); err != nil || f.resumed {
			return "", err
		}
		f.tracked, err = f.tracker.CreateRun(ctx, tracker.NewRun{ExperimentID: exp.ID, Name: f.model.Name + "_" + f.use.Name, Tags: tags})
		return "", err
	})
	if err != nil {
		return fmt.Errorf("start a run in the tracker: %w", err)
	}
	f.result.RunID = f.tracked.ID
	return nil
}

// close ends the tracker's run: FINISHED, KILLED or FAILED with a reason.
func (f *flow) close(ctx context.Context, err error) error {
	status, reason := tracker.Finished, ""
	switch {
	case err == nil:
	case ctx.Err() != nil:
		status, reason = tracker.Killed, "cancelled"
	default:
		status, reason = tracker.Failed, err.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ClosingTimeout)
	defer cancel()
	ended := time.Now()
	var terr, uerr error
	for delay := f.firstDelay(); ; delay *= 2 {
		if reason != "" {
			// The tracker limits a tag's value to 5,000 bytes.
			terr = f.tracker.SetTag(ctx, f.tracked.ID, "failure_reason", strings.ToValidUTF8(reason[:min(len(reason), 1000)], ""))
		}
		uerr = f.tracker.UpdateRun(ctx, f.tracked.ID, status, ended)
		// Both calls may be made again, so that a tracker that is away for a moment does not undo a whole training.
		if !isTransient(terr) && !isTransient(uerr) {
			break
		}
		f.log.WarnContext(ctx, "the tracker's run is not ended yet, trying again", slog.Duration("in", delay), slog.Any("err", errors.Join(terr, uerr)))
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
			timer.Stop()
		}
		break
	}
	if terr != nil {
		f.log.ErrorContext(ctx, "failure reason not recorded", slog.Any("err", terr))
	}
	if uerr != nil {
		return errors.Join(err, fmt.Errorf("end the tracker's run as %s: %w", status, uerr))
	}
	return err
}

// firstDelay is the pause before a second attempt to end the run, doubled after each; several fit into ClosingTimeout.
func (f *flow) firstDelay() time.Duration {
	delay := time.Second
	for _, d := range f.cfg.RetryDelays {
		delay = min(delay, d)
	}
	return max(delay, time.Millisecond)
}
