package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// fluxUsage asks Flux on this machine for the hours of a finished job: what R allots times the run time.
func fluxUsage(ctx context.Context, job string) (gpuHours, cpuHours float64, err error) {
	out, err := runScheduler(ctx, job, "flux", "jobs", "-o", "json", job)
	if err != nil {
		return 0, 0, err
	}
	if !json.Valid(out) { // a Flux that takes json for the text of a format has an option for it
		if out, err = runScheduler(ctx, job, "flux", "jobs", "--json", job); err != nil {
			return 0, 0, err
		}
	}
	j, err := parseFluxJob(out)
	if err != nil {
		return 0, 0, err
	}
	if j.State == fluxEnded && j.R == nil && (j.Cores == nil || j.GPUs == nil) {
		if out, err = runScheduler(ctx, job, "flux", "job", "info", job, "R"); err != nil {
			return 0, 0, err
		}
		if err := json.Unmarshal(out, &j.R); err != nil {
			return 0, 0, noFluxUsage(out)
		}
	}
	return j.hours()
}

// fluxJob is a job as flux jobs prints it; fields that a version of Flux does not print are nil.
type fluxJob struct {
	State    string   `json:"state"`
	Runtime  *float64 `json:"runtime"` // seconds
	Started  *float64 `json:"t_run"`
	Finished *float64 `json:"t_cleanup"`
	Cores    *float64 `json:"ncores"`
	GPUs     *float64 `json:"ngpus"`
	R        *fluxR   `json:"R"`
}

// fluxEnded is the state of a job that is over, however it ended.
const fluxEnded = "INACTIVE"

// fluxR is a job's allocation, R version 1 (Flux RFC 20).
type fluxR struct {
	Execution struct {
		Lite []struct {
			Rank     json.RawMessage   `json:"rank"` // an idset, or one number
			Children map[string]string `json:"children"`
		} `json:"R_lite"`
	} `json:"execution"`
}

func noFluxUsage(out []byte) error {
	return fault.New("no_usage", "flux printed %.200q, which is no usage", bytes.TrimSpace(out))
}

// parseFluxJob reads the one job of an answer: alone, in a list, or in a list under jobs.
func parseFluxJob(out []byte) (fluxJob, error) {
	var listed struct {
		Jobs []fluxJob `json:"jobs"`
	}
	var job fluxJob
	text := bytes.TrimSpace(out)
	var err error
	if bytes.HasPrefix(text, []byte("[")) {
		err = json.Unmarshal(text, &listed.Jobs)
	} else if err = json.Unmarshal(text, &listed); err == nil && listed.Jobs == nil {
		if err = json.Unmarshal(text, &job); err == nil && job.State != "" {
			return job, nil
		}
	}
	switch {
	case err != nil:
		return job, noFluxUsage(out)
	case len(listed.Jobs) != 1:
		return job, fault.New("no_usage", "Flux has no such job")
	}
	return listed.Jobs[0], nil
}

func (j fluxJob) hours() (gpuHours, cpuHours float64, err error) {
	if j.State != fluxEnded {
		return 0, 0, fault.New("job_runs", "the job is still in state %.20s", j.State)
	}
	seconds, cores, gpus := -1.0, -1.0, -1.0
	switch {
	case j.Runtime != nil:
		seconds = *j.Runtime
	case j.Started != nil && j.Finished != nil:
		seconds = *j.Finished - *j.Started
	}
	if j.R != nil {
		cores, gpus = j.R.count("core"), j.R.count("gpu")
	} else if j.Cores != nil && j.GPUs != nil {
		cores, gpus = *j.Cores, *j.GPUs
	}
	for _, n := range []float64{seconds, cores, gpus} {
		if !(n >= 0 && n <= maxAmount) {
			return 0, 0, fault.New("no_usage", "Flux does not report how long the job ran, or on how many cores and GPUs")
		}
	}
	return gpus * seconds / 3600, cores * seconds / 3600, nil
}

// count adds up a kind of resource over all ranks; -1 if R is unclear.
func (r *fluxR) count(kind string) float64 {
	total := 0.0
	for _, part := range r.Execution.Lite {
		each := 0.0
		if ids := part.Children[kind]; ids != "" {
			each = countIDs(ids)
		}
		total += countIDs(strings.Trim(string(part.Rank), `"`)) * each
	}
	if math.IsNaN(total) || len(r.Execution.Lite) == 0 {
		return -1
	}
	return total
}

// countIDs counts an idset such as 0-3,7 (Flux RFC 22); NaN if it is none.
func countIDs(set string) float64 {
	total := 0.0
	for part := range strings.SplitSeq(strings.Trim(set, "[]"), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		low, errLow := strconv.ParseUint(first, 10, 32)
		high, errHigh := strconv.ParseUint(last, 10, 32)
		if errLow != nil || errHigh != nil || high < low {
			return math.NaN()
		}
		total += float64(high-low) + 1
	}
	return total
}
