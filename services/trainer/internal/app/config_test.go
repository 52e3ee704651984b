package app

import (
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := LoadConfig([]string{"TRACKING_URI=nowhere", "CONTROL_PLANE_TOKEN=changeme", "PLATFORM_SCHEDULER_MODE=punchcards", "GPU_COST_PER_HOUR=-1"})
	for _, want := range []string{"TRACKING_URI", "CONTROL_PLANE_TOKEN", "PLATFORM_SCHEDULER_MODE", "GPU_COST_PER_HOUR"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s in it", err, want)
		}
	}
	if c, err := LoadConfig(nil); err != nil || c.SchedulerMode != "mock" || c.TrackingURI != "http://localhost:15000" {
		t.Errorf(`%+v, %v; want c.SchedulerMode == "mock" && c.TrackingURI == "http://localhost:15000"`, c, err)
	}
}

func TestConfigOfSlurm(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := LoadConfig([]string{"PLATFORM_SCHEDULER_MODE=slurm", "HPC_WORK_DIR=jobs", "HPC_POLL_SECONDS=-1", "HPC_PARTITION=two words"})
	for _, want := range []string{"no sbatch", "no sacct", "HPC_WORK_DIR", "HPC_POLL_SECONDS", "HPC_PARTITION"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s in it", err, want)
		}
	}
}

func TestConfigOfSSH(t *testing.T) {
	t.Parallel()
	base := []string{"PLATFORM_SCHEDULER_MODE=slurm", "HPC_WORK_DIR=" + t.TempDir(), "HPC_SSH_HOST=login"}
	for want, more := range map[string][]string{
		"HPC_SSH_USER": nil, "HPC_SSH_PORT": {"HPC_SSH_USER=ops", "HPC_SSH_PORT=70000"}, "HPC_SSH_KEY": {"HPC_SSH_USER=ops", "HPC_SSH_KEY=no key"},
	} {
		if _, err := LoadConfig(append(base[:len(base):len(base)], more...)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sbatch") {
			t.Errorf("%v: got %v; want %s in it, and no command of this machine", more, err, want)
		}
	}
}
