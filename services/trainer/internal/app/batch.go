package app

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
	"github.com/mlp-platform/platform/services/trainer/internal/training"
)

const defaultPollSeconds = 10

// checkSlurm reports all settings that prevent jobs from being submitted.
func (c *Config) checkSlurm() error {
	var faults []error
	if c.HPCSSHHost != "" {
		if c.HPCSSHUser == "" || c.HPCSSHPort < 1 || c.HPCSSHPort > 65535 {
			faults = append(faults, errors.New("HPC_SSH_HOST needs HPC_SSH_USER, and HPC_SSH_PORT between 1 and 65535"))
		}
		if _, err := c.runner(); err != nil {
			faults = append(faults, err)
		}
	}
	for _, name := range []string{"sbatch", "squeue", "sacct", "scancel"} {
		if c.HPCSSHHost != "" {
			break
		}
		if _, err := exec.LookPath(name); err != nil {
			faults = append(faults, fmt.Errorf("PLATFORM_SCHEDULER_MODE is slurm, but this machine has no %s", name))
		}
	}
	if !filepath.IsAbs(c.HPCWorkDir) {
		faults = append(faults, errors.New("HPC_WORK_DIR must be the absolute path of a folder that the cluster's nodes share"))
	}
	if c.HPCPollSeconds < 0 {
		faults = append(faults, errors.New("HPC_POLL_SECONDS must not be negative"))
	}
	for name, v := range map[string]string{"HPC_PARTITION": c.HPCPartition, "HPC_ACCOUNT": c.HPCAccount, "HPC_QOS": c.HPCQOS} {
		if strings.ContainsFunc(v, func(r rune) bool { return r < '!' || r > '~' }) {
			faults = append(faults, fmt.Errorf("%s %q must be one word", name, v))
		}
	}
	return errors.Join(faults...)
}

// runner runs Slurm's commands: here, or on the login node.
func (c *Config) runner() (scheduler.Runner, error) {
	if c.HPCSSHHost == "" {
		return scheduler.Local{}, nil
	}
	return scheduler.NewSSH(scheduler.SSHConfig{
		Host: c.HPCSSHHost, Port: c.HPCSSHPort, User: c.HPCSSHUser, Key: []byte(c.HPCSSHKey.Reveal()), HostKey: c.HPCSSHHostKey,
	})
}

// batch is how trainings become jobs; the zero value for the mock scheduler.
func (c *Config) batch() (training.Batch, error) {
	if c.SchedulerMode != scheduler.SlurmMode {
		return training.Batch{}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return training.Batch{}, fmt.Errorf("HPC_TRAINER is not set, and this program's own path is unknown: %w", err)
	}
	run, err := c.runner()
	if err != nil {
		return training.Batch{}, err
	}
	if err := os.MkdirAll(c.HPCWorkDir, 0o700); err != nil {
		return training.Batch{}, fmt.Errorf("HPC_WORK_DIR: %w", err)
	}
	return training.Batch{
		Mode:    scheduler.SlurmMode,
		Cluster: scheduler.Slurm{Runner: run, Partition: c.HPCPartition, Account: c.HPCAccount, QOS: c.HPCQOS},
		Dir:     c.HPCWorkDir, Program: cmp.Or(c.HPCTrainer, filepath.Join(filepath.Dir(self), "trainer")), Poll: time.Duration(cmp.Or(c.HPCPollSeconds, defaultPollSeconds)) * time.Second,
	}, nil
}
