package training

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
)

// framework is the value of the tag of that name: the software that made the model.
const framework = "platform-trainer"

func (f *flow) record(ctx context.Context) (string, error) {
	params := map[string]string{
		"model_name": f.result.Model, "dataset": f.use.Name, "estimator": f.model.Estimator.Kind,
		"framework": framework, "seed": fmt.Sprint(f.model.Estimator.Seed),
	}
	maps.Copy(params, f.outcome.Hyperparameters)
	tags := map[string]string{
		"hpc_job_id": f.jobID,
		// Older readers look for the job's id under this name for any scheduler.
		"slurm_job_id":    f.jobID,
		"dataset_version": f.outcome.Version, "dataset_backend": f.outcome.Backend, "dataset_uri": f.outcome.URI,
		"training_rows": fmt.Sprint(f.outcome.TrainingRows), "data_origin": f.outcome.Origin,
		"artifact_digest": f.result.Digest,
	}
	if err := f.tracker.LogBatch(ctx, f.tracked.ID, tracker.Metrics(f.metrics(), time.Now()), params, tags); err != nil {
		return "", err
	}
	for i, name := range slices.Sorted(maps.Keys(f.files)) {
		if err := f.upload(ctx, modelFolder+"/"+name); err != nil {
			return "", err
		}
		f.say("log", float64(i+1)/float64(len(f.files)+2), name)
	}
	for _, c := range f.result.Report.Charts() {
		if err := f.tracker.UploadArtifact(ctx, f.tracked.ID, chartFolder+"/"+c.Name, bytes.NewReader(c.SVG)); err != nil {
			return "", err
		}
	}
	report, err := json.MarshalIndent(f.result.Report, "", "  ")
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return "metrics, model, charts and report stored", f.tracker.UploadArtifact(ctx, f.tracked.ID, "report.json", bytes.NewReader(append(report, '\n')))
}

func (f *flow) upload(ctx context.Context, name string) error {
	file, err := os.Open(filepath.Join(f.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer file.Close()
	return f.tracker.UploadArtifact(ctx, f.tracked.ID, name, file)
}

func (f *flow) register(ctx context.Context) (string, error) {
	name := f.model.TrackerName()
	if _, err := f.tracker.EnsureRegisteredModel(ctx, name, nil); err != nil {
		return "", err
	}
	// A former attempt may have made the version without our learning of it.
	v, err := f.versionOf(ctx, f.tracked.ID)
	if err != nil {
		return "", err
	}
	if f.version = v.Version; f.version == "" {
		tags := map[string]string{
			"framework": framework, "artifact_digest": f.result.Digest, "modelrepo_commit": f.origin.Commit,
			"definition_digest": f.origin.Digest, "modelrepo_dirty": fmt.Sprint(f.origin.Dirty()), "data_origin": f.outcome.Origin, "dummy": fmt.Sprint(f.Dummy),
		}
		maps.DeleteFunc(tags, func(_, v string) bool { return v == "" })
		v, err := f.tracker.CreateModelVersion(ctx, name, f.tracked.ArtifactURI+"/"+modelFolder, f.tracked.ID, tags)
		if err != nil {
			return "", err
		}
		f.version = v.Version
	}
	f.result.Version = f.version
	// An earlier attempt may have trained elsewhere than this process would.
	if mode := f.scheduler(); mode != scheduler.Mock {
		if f.cfg.Batch.Cluster == nil || f.cfg.Batch.Mode != mode {
			f.log.WarnContext(ctx, "the scheduler of the earlier attempt is not configured here; the cost of its job is not recorded", slog.String("scheduler", mode), slog.String("job", f.jobID))
			return "version " + f.version, nil
		}
		return "version " + f.version, f.account(ctx)
	}
	hours := modelrepo.MockGPUHours(f.result.Model, f.version)
	for key, value := range map[string]string{
		"gpu_hours": fmt.Sprintf("%.2f", hours), "cost_usd": fmt.Sprintf("%.2f", math.Round(hours*f.cfg.GPUCostPerHour*100)/100),
		"cost_synthetic": "true",
	} {
		if err := f.tracker.SetModelVersionTag(ctx, name, f.version, key, value); err != nil {
			return "", err
		}
	}
	return "version " + f.version, nil
}

// scheduler is the mode in which the version was trained.
func (f *flow) scheduler() string {
	if f.resumed && f.tracked.Tags["hpc_scheduler"] != "" {
		return f.tracked.Tags["hpc_scheduler"]
	}
	return cmp.Or(f.cfg.Batch.Mode, scheduler.Mock)
}

// ladder lets the control plane move the aliases. Without one no alias moves: this process only reports the verdicts.
func (f *flow) ladder(ctx context.Context) (string, error) {
	if f.control == nil {
		return "no control plane is configured: no alias was moved", nil
	}
	l, err := f.control.Version(ctx, f.result.Model, f.version, f.FlowRunID)
	if err != nil {
		return "", err
	}
	f.result.Rungs, f.result.PromotionID = l.Rungs, l.PromotionID
	f.result.Aliases = append(f.result.Aliases, l.AliasesSet...)
	msg := "aliases set: none"
	if len(l.AliasesSet) > 0 {
		msg = "aliases set: " + strings.Join(l.AliasesSet, ", ")
	}
	if l.PromotionID != "" {
		msg += "; promotion " + l.PromotionID
	}
	return msg, nil
}
