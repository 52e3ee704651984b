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
	if strings.HasPrefix(job, "-") {
		return 0, 0, fault.New("bad_job", "%q is no id of a job", job)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sacct", "-P", "-n", "-X", "-j", job, "-o", "State,ElapsedRaw,CPUTimeRAW,AllocTRES").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return 0, 0, fault.New("no_sacct", "sacct is not on this machine; record where Slurm is")
	}
	if err != nil {
		return 0, 0, fault.New("sacct_failed", "sacct: %v", err)
	}
	return parseSacct(string(out))
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
