package training

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/tracker"
)

// resume looks for results of earlier attempts at the same flow run; their process was killed, so that the orchestrator
// started the run again. If one registered its version, that version is the run's: a second one of the same rows would
// only move the aliases twice. An attempt that got less far is ended and trained again.
func (f *flow) resume(ctx context.Context, experiment string) error {
	if f.FlowRunID == "" {
		return nil
	}
	earlier, _, err := f.tracker.SearchRuns(ctx, tracker.RunQuery{
		ExperimentIDs: []string{experiment}, Filter: "tags.prefect_flow_run_id = " + tracker.Quote(f.FlowRunID),
	})
	if err != nil {
		return err
	}
	for _, run := range earlier {
		// For any status: an attempt that was stopped between its registration and the ladder ended KILLED or FAILED.
		v, err := f.versionOf(ctx, run.ID)
		if err != nil {
			return err
		}
		if v.Version != "" {
			f.log.InfoContext(ctx, "an earlier attempt at this flow run registered its version", slog.String("run_id", run.ID), slog.String("version", v.Version))
			f.adopt(run, v)
			if run.Tags["failure_reason"] == "" {
				return nil
			}
			return f.tracker.SetTag(ctx, run.ID, "failure_reason", "") // this attempt decides how the run ends
		}
		if run.Status == tracker.Running {
			f.cancelJobsOf(ctx, run)
			if err := f.tracker.SetTag(ctx, run.ID, "failure_reason", "the process that trained it died"); err != nil {
				return err
			}
			if err := f.tracker.UpdateRun(ctx, run.ID, tracker.Killed, time.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// cancelJobsOf ends the jobs of an attempt that died: the one in the tag, and any that its process submitted without
// learning, or storing, the number.
func (f *flow) cancelJobsOf(ctx context.Context, run tracker.Run) {
	c := f.cfg.Batch.Cluster
	if c == nil || run.Tags["hpc_scheduler"] != f.cfg.Batch.Mode {
		return
	}
	var ids []string
	ended := true
	key := run.Tags["training_id"]
	if key != "" {
		var err error
		if ids, err = c.Find(ctx, f.jobName(key)); err != nil {
			ended = false
			f.log.WarnContext(ctx, "the jobs of the earlier attempt could not be looked up", slog.String("name", f.jobName(key)), slog.Any("err", err))
		}
	}
	if id := run.Tags["hpc_job_id"]; id != "" && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	for _, id := range ids {
		if err := c.Cancel(ctx, id); err != nil {
			ended = false
			f.log.WarnContext(ctx, "the job of the earlier attempt could not be cancelled", slog.String("job", id), slog.Any("err", err))
		}
	}
	if ended && f.ownsFolder(key) {
		if err := os.RemoveAll(f.folderOf(key)); err != nil {
			f.log.WarnContext(ctx, "the folder of the earlier attempt's job could not be removed", slog.String("folder", f.folderOf(key)), slog.Any("err", err))
		}
	}
}

// ownsFolder reports whether the job's folder of a training with that key is one of this flow run. Others may
// write the tag that a key is read from.
func (f *flow) ownsFolder(key string) bool {
	if uuid.Validate(key) != nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(f.folderOf(key), requestFile))
	if err != nil {
		return false
	}
	var in jobRequest
	return json.Unmarshal(text, &in) == nil && in.Request.FlowRunID == f.FlowRunID && in.Request.Model == f.Request.Model
}

// adopt takes an earlier attempt's run and version for this one's.
func (f *flow) adopt(run tracker.Run, v tracker.ModelVersion) {
	f.tracked, f.version, f.resumed = run, v.Version, true
	f.jobID = run.Tags["hpc_job_id"]
	if key := run.Tags["training_id"]; f.cfg.Batch.Cluster != nil && f.ownsFolder(key) {
		f.jobDir = f.folderOf(key) // is removed at the end
	}
	f.result.Digest = v.Tags["artifact_digest"]
	f.result.Metrics, f.result.BaselineMetrics = map[string]float64{}, map[string]float64{}
	for name, value := range run.Metrics {
		if strings.HasPrefix(name, "baseline_") {
			f.result.BaselineMetrics[name] = value
		} else {
			f.result.Metrics[name] = value
		}
	}
	f.result.Rungs = f.model.Judge(run.Metrics)
	if f.Dummy {
		f.result.Rungs = modelrepo.CapDummy(f.result.Rungs)
	}
}

// versionOf returns the version that was registered from a run; the zero value if there is none.
func (f *flow) versionOf(ctx context.Context, run string) (last tracker.ModelVersion, err error) {
	for v, err := range f.tracker.SearchModelVersions(ctx, "run_id = "+tracker.Quote(run)) {
		if err != nil {
			return last, err
		}
		last = v
	}
	return last, nil
}
