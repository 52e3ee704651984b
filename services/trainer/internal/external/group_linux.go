package external

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the command a process group, so that a kill reaches the workers that the command started. If the trainer
// dies before it can do that, the kernel kills the command itself.
func ownGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return nil
}
