package cli

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// slurmUsage asks Slurm's accounting on this machine for the hours of a finished job.
func slurmUsage(ctx context.Context, job string) (gpuHours, cpuHours float64, err error) {
	out, err := runScheduler(ctx, job, "sacct", "-P", "-n", "-X", "-j", job, "-o", "State,ElapsedRaw,CPUTimeRAW,AllocTRES")
	if err != nil {
		return 0, 0, err
	}
	return parseSacct(string(out))
}

// runScheduler runs a command of a scheduler that is asked about a job.
func runScheduler(ctx context.Context, job, name string, args ...string) ([]byte, error) {
	if job == "" || strings.HasPrefix(job, "-") {
		return nil, fault.New("bad_job", "%q is no id of a job", job)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fault.New("no_"+name, "%s is not on this machine; record where the scheduler is", name)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return nil, fault.New(name+"_failed", "%s: %v: %.200s", name, err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fault.New(name+"_failed", "%s: %v", name, err)
	}
	return out, nil
}

// parseSacct reads "COMPLETED|3600|28800|billing=8,cpu=8,gres/gpu=4,mem=32G,node=1".
func parseSacct(out string) (gpuHours, cpuHours float64, err error) {
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	fields := strings.Split(line, "|")
	if len(fields) != 4 {
		return 0, 0, fault.New("no_usage", "Slurm's accounting has no such job")
	}
	if state, _, _ := strings.Cut(fields[0], " "); state == "PENDING" || state == "RUNNING" || state == "SUSPENDED" {
		return 0, 0, fault.New("job_runs", "the job is still %s", state)
	}
	elapsed, errElapsed := parseAmount(fields[1])
	cpu, errCPU := parseAmount(fields[2])
	if errElapsed != nil || errCPU != nil {
		return 0, 0, fault.New("no_usage", "sacct printed %.200q, which is no usage", line)
	}
	gpus := 0.0
	for part := range strings.SplitSeq(fields[3], ",") {
		if n, ok := strings.CutPrefix(part, "gres/gpu="); ok { // beside it gres/gpu:type counts the same devices again
			if gpus, err = parseAmount(n); err != nil {
				return 0, 0, fault.New("no_usage", "sacct printed %.200q, which is no usage", line)
			}
		}
	}
	return elapsed * gpus / 3600, cpu / 3600, nil
}

// maxAmount is more seconds or devices than any job has, and little enough for their product to be finite.
const maxAmount = 1e15

// parseAmount reads a number of seconds or devices; ParseFloat alone also takes NaN, Inf and negative numbers.
func parseAmount(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && !(n >= 0 && n <= maxAmount) {
		err = strconv.ErrRange
	}
	return n, err
}
