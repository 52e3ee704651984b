//go:build e2e && full

package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// frozen starts a training and stops its job's process, so that the job runs until the test is done.
func (s *site) frozen(t *testing.T) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer, id string) {
	t.Helper()
	cmd, stderr = s.command(t, nil, "train", "--model", "RuntimeClass")
	stdout = &bytes.Buffer{}
	cmd.Stdout = stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id = s.running(t)
	harness.Eventually(t, 30*time.Second, func() error {
		pid, err := s.process()
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGSTOP)
	})
	return cmd, stdout, stderr, id
}

// process returns the trainer process that runs as a job.
func (s *site) process() (int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err != nil { // it has ended
			continue
		}
		argv := strings.Split(string(b), "\x00")
		if slices.Contains(argv, "job") && strings.Contains(string(b), s.work) {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, fmt.Errorf("no process of a job in %s", s.work)
}

// finishes waits until the training has ended well, and checks that its cost is the accounting's total over all runs of
// the job.
func (s *site) finishes(t *testing.T, cmd *exec.Cmd, stdout, stderr *bytes.Buffer, id string, times int) {
	t.Helper()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var r result
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if tags := s.run(t, r.RunID).Tags; tags["hpc_job_id"] != id {
		t.Errorf("the run is of job %s; want %s, the same one", tags["hpc_job_id"], id)
	}
	lines := strings.Fields(s.slurm(t, "sacct", "-P", "-n", "-X", "--duplicates", "-j", id, "-o", "CPUTimeRAW"))
	sum := 0.0
	for _, line := range lines {
		seconds, err := strconv.ParseFloat(line, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += seconds
	}
	if len(lines) != times || sum == 0 {
		t.Fatalf("the accounting has job %s with core seconds %v; want %d records", id, lines, times)
	}
	var got []float64
	for _, row := range s.get(t, "/costs?model=RUNTIMECLASS&version="+r.Version)["items"].([]any) {
		got = append(got, row.(map[string]any)["cpu_hours"].(float64))
	}
	if len(got) != 1 || math.Abs(got[0]-sum/3600) > 1e-6 {
		t.Errorf("core hours recorded for version %s: %v; want one record of %v", r.Version, got, sum/3600)
	}
}

func testRequeued(t *testing.T, s *site) {
	cmd, stdout, stderr, id := s.frozen(t)
	s.slurm(t, "scontrol", "requeue", id)
	s.finishes(t, cmd, stdout, stderr, id, 2)
}

func testNodeFails(t *testing.T, s *site) {
	cmd, stdout, stderr, id := s.frozen(t)
	node := s.slurm(t, "squeue", "-h", "-j", id, "-o", "%N")
	s.slurm(t, "scontrol", "update", "nodename="+node, "state=DOWN", "reason=test")
	harness.Eventually(t, 30*time.Second, func() error {
		if got := s.slurm(t, "squeue", "-h", "-j", id, "-o", "%T"); got != "PENDING" {
			return fmt.Errorf("job %s is %s; want PENDING", id, got)
		}
		return nil
	})
	// The node may come back automatically (ReturnToService) at any moment, and then it may not be resumed.
	harness.Eventually(t, 30*time.Second, func() error {
		got := s.slurm(t, "sinfo", "-h", "-n", node, "-o", "%T")
		if strings.HasPrefix(got, "down") {
			if _, err := s.trySlurm("scontrol", "update", "nodename="+node, "state=RESUME"); err != nil {
				return err
			}
		}
		if got != "idle" && got != "mixed" && got != "allocated" {
			return fmt.Errorf("node %s is %s; want it back", node, got)
		}
		return nil
	})
	s.finishes(t, cmd, stdout, stderr, id, 2)
}

func testTimeout(t *testing.T, s *site) {
	cmd, _, stderr, id := s.frozen(t)
	s.slurm(t, "scontrol", "update", "jobid="+id, "EndTime=now")
	if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "job "+id+" of slurm ended TIMEOUT") {
		t.Errorf("%v, %s; want an error that names job %s and TIMEOUT", err, stderr, id)
	}
	if got := s.get(t, "/jobs/"+id+"?scheduler=slurm"); got["state"] != "TIMEOUT" {
		t.Errorf("job at the control plane: %v; want TIMEOUT", got)
	}
}

func testLost(t *testing.T, s *site) {
	cmd, _, stderr, id := s.frozen(t)
	for _, daemon := range []string{"slurmctld", "slurmdbd"} {
		b, err := os.ReadFile(filepath.Join(s.dir, daemon+".pid"))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	err := cmd.Wait()
	if want := "the scheduler no longer knows the job " + id; err == nil || !strings.Contains(stderr.String(), want) {
		t.Errorf("%v, %s; want %q", err, stderr, want)
	}
	if got := s.get(t, "/jobs/"+id+"?scheduler=slurm"); got["state"] != "UNKNOWN" {
		t.Errorf("job at the control plane: %v; want UNKNOWN", got)
	}
	// scancel could not reach the controller either: the job's folder stays, and the log reports it.
	if pid, err := s.process(); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // nothing else can end it now
	}
}
