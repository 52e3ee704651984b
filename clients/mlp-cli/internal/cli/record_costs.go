package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/tracker"
)

// costItem is one version in the result of recording.
type costItem struct {
	Version  string   `json:"version"`
	JobID    *string  `json:"job_id"`
	GPUHours *float64 `json:"gpu_hours"`
	CostUSD  *float64 `json:"cost_usd"`
	Reason   *string  `json:"reason"`
}

type costsRecorded struct {
	Recorded []costItem `json:"recorded"`
	Updated  []costItem `json:"updated"`
	Skipped  []costItem `json:"skipped"`
	Failed   []costItem `json:"failed"`
}

// costJob is the batch job of a version, or why none can be recorded.
type costJob struct {
	version   tracker.ModelVersion
	scheduler string
	id        string
	skip      string
}

// costJobs reads from each version's run which scheduler ran it under which id.
func (e *Env) costJobs(ctx context.Context, model string) (*tracker.Client, string, []costJob, error) {
	tr, url, m, err := e.findRegistered(ctx, model)
	if err != nil {
		return nil, "", nil, err
	}
	var jobs []costJob
	for v, err := range tr.SearchModelVersions(ctx, "name = "+tracker.Quote(m.Name)) {
		if err != nil {
			return nil, "", nil, trackerFault(url, err)
		}
		j := costJob{version: v}
		if v.RunID == "" {
			j.skip = "it has no tracker run"
			jobs = append(jobs, j)
			continue
		}
		run, err := tr.GetRun(ctx, v.RunID)
		if errors.Is(err, tracker.ErrNotFound) {
			j.skip = "its tracker run is gone"
			jobs = append(jobs, j)
			continue
		}
		if err != nil {
			return nil, "", nil, trackerFault(url, err)
		}
		j.id = cmp.Or(run.Tags["hpc_job_id"], run.Tags["slurm_job_id"])
		legacy := ""
		if run.Tags["hpc_job_id"] == "" && run.Tags["slurm_job_id"] != "" {
			legacy = string(controlplane.Slurm)
		}
		j.scheduler = cmp.Or(run.Tags["hpc_scheduler"], legacy, e.Getenv("PLATFORM_HPC_SCHEDULER"), e.Getenv("PLATFORM_SCHEDULER_MODE"), "mock")
		if j.id == "" {
			j.skip = "its run has no tag hpc_job_id"
		}
		jobs = append(jobs, j)
	}
	return tr, url, jobs, nil
}

// recordCosts records the usage of each version's job. The control plane keeps one record for each job, so repeating
// it changes nothing.
func recordCosts(ctx context.Context, env *Env, model string, dryRun bool) error {
	tr, url, jobs, err := env.costJobs(ctx, model)
	if dryRun {
		checks := []Check{}
		if err != nil {
			checks = append(checks, Check{Name: "versions", Detail: err.Error()})
		}
		for _, j := range jobs {
			checks = append(checks, Check{Name: "version " + j.version.Version, Pass: j.skip == "", Detail: cmp.Or(j.skip, j.scheduler+" job "+j.id)})
		}
		return env.DryRun(model, map[string]any{"action": "record usage", "versions": len(jobs)}, checks)
	}
	if err != nil {
		return err
	}
	rates, err := env.hourlyRates()
	if err != nil {
		return err
	}
	yes, err := env.Confirm(ctx, fmt.Sprintf("Record the costs of %d versions of %s?", len(jobs), model), false)
	if err != nil || !yes {
		return err
	}
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	out := costsRecorded{[]costItem{}, []costItem{}, []costItem{}, []costItem{}}
	for _, j := range jobs {
		if ctx.Err() != nil {
			return fault.New("interrupted", "interrupted; %d of %d versions are recorded", len(out.Recorded)+len(out.Updated), len(jobs)).WithHint("run it again: what is recorded stays as it is")
		}
		item := costItem{Version: j.version.Version, JobID: optional(j.id)}
		if j.skip != "" {
			item.Reason = &j.skip
			out.Skipped = append(out.Skipped, item)
			continue
		}
		recorded, err := recordCost(ctx, cp, model, j, rates)
		if err == nil {
			err = tagCost(ctx, tr, url, j, recorded)
		}
		if err != nil {
			item.Reason = new(err.Error())
			out.Failed = append(out.Failed, item)
			continue
		}
		item.GPUHours, item.CostUSD = &recorded.GpuHours, &recorded.CostUsd
		if recorded.Recorded {
			out.Recorded = append(out.Recorded, item)
		} else {
			out.Updated = append(out.Updated, item)
		}
	}
	g := output.Grid{Columns: []string{"Version", "Job ID", "GPU Hours", "Cost (USD)", "Result", "Reason"}, Doc: out, Empty: model + " has no version."}
	for _, part := range []struct {
		name  string
		items []costItem
	}{{"recorded", out.Recorded}, {"updated", out.Updated}, {"skipped", out.Skipped}, {"failed", out.Failed}} {
		for _, i := range part.items {
			g.Rows = append(g.Rows, []any{i.Version, i.JobID, i.GPUHours, i.CostUSD, styledStatus(part.name), i.Reason})
		}
	}
	if len(out.Failed) == 0 {
		return env.Printer().Print(g)
	}
	f := fault.New("costs_not_recorded", "the costs of %d of %d versions are not recorded; the first: version %s: %s", len(out.Failed), len(jobs), out.Failed[0].Version, *out.Failed[0].Reason)
	f.Faults = out.Failed
	return env.failWith(f, g)
}

// hourlyRates are the prices that this machine's environment sets; nil: the control plane's.
type hourlyRates struct{ gpu, cpu *float64 }

func (e *Env) hourlyRates() (rates hourlyRates, err error) {
	for name, rate := range map[string]**float64{"GPU_COST_PER_HOUR": &rates.gpu, "CPU_COST_PER_HOUR": &rates.cpu} {
		text := e.Getenv(name)
		if text == "" {
			continue
		}
		const most = 10_000 // as in the control plane's own settings
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= most) {
			return rates, fault.New("bad_rate", "%s is %q, which is no price in USD from 0 to %d", name, text, most)
		}
		*rate = &v
	}
	return rates, nil
}

func recordCost(ctx context.Context, cp *controlplane.Client, model string, j costJob, rates hourlyRates) (controlplane.CostRecorded, error) {
	in := controlplane.CostInput{Model: model, Version: j.version.Version, JobId: j.id, RunId: &j.version.RunID, Scheduler: controlplane.Scheduler(j.scheduler)}
	if !in.Scheduler.Valid() {
		return controlplane.CostRecorded{}, fault.New("unknown_scheduler", "its scheduler is %q; usage is known of slurm, flux and mock", j.scheduler)
	}
	// The control plane makes up the figures of mock jobs; those of a real one come from its scheduler.
	if usage := map[controlplane.Scheduler]func(context.Context, string) (float64, float64, error){controlplane.Slurm: slurmUsage, controlplane.Flux: fluxUsage}[in.Scheduler]; usage != nil {
		gpu, cpu, err := usage(ctx, j.id)
		if err != nil {
			return controlplane.CostRecorded{}, err
		}
		in.GpuHours, in.CpuHours = &gpu, &cpu
	}
	in.GpuCostPerHour, in.CpuCostPerHour = rates.gpu, rates.cpu
	return decode[controlplane.CostRecorded](cp.RecordCost(ctx, in))
}

// tagCost puts the figures on the version, where the tracker's users look for them.
func tagCost(ctx context.Context, tr *tracker.Client, url string, j costJob, c controlplane.CostRecorded) error {
	for _, t := range [][2]string{{"gpu_hours", fmt.Sprintf("%.2f", c.GpuHours)}, {"cost_usd", fmt.Sprintf("%.2f", c.CostUsd)}, {"cost_synthetic", strconv.FormatBool(c.Synthetic)}} {
		if j.version.Tags[t[0]] == t[1] {
			continue
		}
		if err := tr.SetModelVersionTag(ctx, j.version.Name, j.version.Version, t[0], t[1]); err != nil {
			return trackerFault(url, err)
		}
	}
	return nil
}
