package scheduler

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// State of a batch job.
type State string

// The states. Unknown means that the scheduler does not report one.
const (
	Submitted State = "SUBMITTED"
	Pending   State = "PENDING"
	Running   State = "RUNNING"
	Completed State = "COMPLETED"
	Failed    State = "FAILED"
	Cancelled State = "CANCELLED"
	TimedOut  State = "TIMEOUT"
	Unknown   State = "UNKNOWN"
)

// Ended reports whether the job has ended for good.
func (s State) Ended() bool {
	return s == Completed || s == Failed || s == Cancelled || s == TimedOut
}

// Spec is a batch job to submit.
type Spec struct {
	// Name is the job's alone, so that Find finds it.
	Name      string
	Resources modelrepo.Resources
	// Command is the program and its arguments, Output the file for its output.
	Command []string
	Output  string
	// Export are the variables that the job gets, as NAME=value, or NAME for the value where the scheduler's commands
	// run; no others, for some are secrets. No value may hold a comma.
	Export []string
}

// Usage is the resources allocated to a job, times its duration.
type Usage struct {
	GPUHours, CPUHours float64
	ExitCode           int
}

// SlurmMode is the mode, and the value of the tag hpc_scheduler.
const SlurmMode = "slurm"

// Slurm submits to a Slurm cluster by its commands.
type Slurm struct {
	Runner Runner
	// Partition, Account and QOS are the cluster's defaults if empty.
	Partition, Account, QOS string
}

var jobID = regexp.MustCompile(`^[0-9]+$`)

// Submit returns the job's id.
func (s Slurm) Submit(ctx context.Context, j Spec) (string, error) {
	argv := []string{
		"sbatch", "--parsable", "--job-name=" + j.Name, "--output=" + j.Output, "--requeue", "--ntasks=" + strconv.Itoa(max(1, j.Resources.Nodes)),
		"--export=" + strings.Join(j.Export, ","),
	}
	for option, value := range map[string]string{
		"partition": s.Partition, "account": s.Account, "qos": s.QOS, "mem": j.Resources.Mem, "time": j.Resources.Time,
		"nodes": positive(j.Resources.Nodes), "cpus-per-task": positive(j.Resources.CPUs), "gres": gpus(j.Resources.GPUs),
	} {
		if value != "" {
			argv = append(argv, "--"+option+"="+value)
		}
	}
	out, err := s.Runner.Run(ctx, "#!/bin/sh\nexec "+quote(j.Command)+"\n", argv...)
	if err != nil {
		return "", err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";") // the cluster's name may follow
	if !jobID.MatchString(id) {
		return "", fmt.Errorf("sbatch answered %q; want the number of a job", strings.TrimSpace(out))
	}
	return id, nil
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func gpus(n int) string {
	if n <= 0 {
		return ""
	}
	return "gpu:" + strconv.Itoa(n)
}

// quote joins arguments to a line of a shell script.
func quote(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// State asks squeue for jobs that wait or run, and sacct for those that have ended. Unknown without an error means
// that both answered and neither knows the job.
func (s Slurm) State(ctx context.Context, id string) (State, error) {
	out, qerr := s.Runner.Run(ctx, "", "squeue", "-h", "-j", id, "-o", "%T")
	if st := slurmState(out); qerr == nil && st != Unknown {
		return st, nil
	}
	// squeue fails both for a job that it has forgotten and without a controller: sacct distinguishes them.
	out, err := s.Runner.Run(ctx, "", "sacct", "-P", "-n", "-X", "-j", id, "-o", "State")
	if err != nil {
		return Unknown, errors.Join(qerr, err)
	}
	return slurmState(lastLine(out)), nil
}

// Cancel ends the job; one that has ended stays as it is.
func (s Slurm) Cancel(ctx context.Context, id string) error {
	_, err := s.Runner.Run(ctx, "", "scancel", id)
	return err
}

// Find queries squeue, which lists pending and running jobs, and sacct if squeue does not answer.
func (s Slurm) Find(ctx context.Context, name string) ([]string, error) {
	out, err := s.Runner.Run(ctx, "", "squeue", "-h", "--name="+name, "-o", "%i")
	if err != nil {
		var aerr error
		if out, aerr = s.Runner.Run(ctx, "", "sacct", "-P", "-n", "-X", "--name="+name, "--state=PENDING,RUNNING", "--starttime=now-7days", "--endtime=now", "-o", "JobIDRaw"); aerr != nil {
			return nil, errors.Join(err, aerr)
		}
	}
	var ids []string
	for _, id := range strings.Fields(out) {
		if jobID.MatchString(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Usage reads the job's accounting: of each time that it ran, for a job that was requeued used its nodes before too.
func (s Slurm) Usage(ctx context.Context, id string, gpus int) (total Usage, err error) {
	out, err := s.Runner.Run(ctx, "", "sacct", "-P", "-n", "-X", "--duplicates", "-j", id, "-o", "State,ExitCode,ElapsedRaw,CPUTimeRAW,AllocTRES,JobName")
	if err != nil {
		return total, err
	}
	last := strings.SplitN(lastLine(out), "|", 6)
	if len(last) != 6 {
		return total, fmt.Errorf("sacct answered %q for job %s; want six columns", lastLine(out), id)
	}
	if !slurmState(last[0]).Ended() {
		return total, fmt.Errorf("the accounting of job %s says %s; it has not ended there yet", id, last[0])
	}
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		cells := strings.SplitN(line, "|", 6)
		if len(cells) != 6 || cells[5] != last[5] {
			continue // the number was another job's before
		}
		u, err := usageOf(id, cells, gpus)
		if err != nil {
			return Usage{}, err
		}
		total = Usage{total.GPUHours + u.GPUHours, total.CPUHours + u.CPUHours, u.ExitCode}
	}
	return total, nil
}

// usageOf reads one record: State, ExitCode, ElapsedRaw, CPUTimeRAW, AllocTRES.
func usageOf(id string, cells []string, gpus int) (u Usage, err error) {
	code, _, _ := strings.Cut(cells[1], ":")
	elapsed, cpu := 0.0, 0.0
	for _, n := range []struct {
		text string
		into *float64
	}{{cells[2], &elapsed}, {cells[3], &cpu}} {
		if *n.into, err = parseAmount(n.text); err != nil {
			return u, fmt.Errorf("the accounting of job %s: %w", id, err)
		}
	}
	if u.ExitCode, err = strconv.Atoi(code); err != nil {
		return u, fmt.Errorf("the accounting of job %s: %q is no exit code", id, cells[1])
	}
	u.CPUHours = cpu / 3600
	told := false
	for tres := range strings.SplitSeq(cells[4], ",") {
		if n, ok := strings.CutPrefix(tres, "gres/gpu="); ok {
			count, err := parseAmount(n)
			if err != nil {
				return u, fmt.Errorf("the accounting of job %s: GPUs: %w", id, err)
			}
			u.GPUHours, told = count*elapsed/3600, true
		}
	}
	if gpus > 0 && elapsed > 0 && !told {
		return u, fmt.Errorf("the accounting of job %s has no gres/gpu, though the job requested %d GPUs; add gres/gpu to AccountingStorageTRES of slurm.conf", id, gpus)
	}
	return u, nil
}

// maxAmount is more than any job has of seconds, processor seconds or GPUs. Beyond it a sum would be no number.
const maxAmount = 1e15

// parseAmount reads a number that something can have; Go's parser takes NaN and Inf too.
func parseAmount(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= maxAmount) {
		return 0, fmt.Errorf("%.40q is no amount", text)
	}
	return n, nil
}

// lastLine is the newest record: a job that was requeued may have several.
func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

// slurmState maps Slurm's state names; sacct appends the user who cancelled a job.
func slurmState(word string) State {
	word, _, _ = strings.Cut(strings.TrimSpace(word), " ")
	switch strings.TrimSuffix(word, "+") {
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "RESIZING", "SUSPENDED", "STOPPED":
		return Pending
	case "RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT":
		return Running
	case "COMPLETED":
		return Completed
	case "CANCELLED", "REVOKED":
		return Cancelled
	case "TIMEOUT", "DEADLINE":
		return TimedOut
	case "FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "LAUNCH_FAILED", "RECONFIG_FAIL":
		return Failed
	}
	return Unknown
}
